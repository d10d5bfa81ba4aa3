// The program of a process of tasks: it runs the monitor whose source comes by the channel.
import { nodeModule } from "../../support/host.js";
import { makeTemporaryFolder } from "../../support/node/temporary-folder.js";

const PROGRAM =
  'process.once("message",(setup)=>{globalThis.pamirProcess=setup;process.getBuiltinModule("node:vm").runInThisContext(setup.source,{filename:"pamir monitor"})})';

/** Where PROGRAM is a file: nothing is looked for beside it, and it is gone once it runs. */
const FILE_BEGIN = 'process.argv.splice(1);require("node:fs").rmSync(__dirname,{recursive:true,force:true});';

/**
 * The arguments of Node that run PROGRAM. It comes as a file, since threads inherit process.execArgv: `--eval` there would be
 * run by each process that a task starts with these options. Where no file of this user alone can be made, it comes by
 * `--eval`.
 * @returns the arguments, and what removes the file
 */
export function programArguments(): { readonly args: readonly string[]; readonly remove: () => void } {
  const { rmSync, writeFileSync } = nodeModule("fs") as typeof import("node:fs");
  const { permission } = process as { permission?: unknown };
  const byEval = { args: ["--eval", PROGRAM], remove: () => {} };
  // Bun and Deno run what they find in a file in other ways.
  if (permission !== undefined || process.versions.bun !== undefined || process.versions.deno !== undefined)
    return byEval;
  let folder: string | undefined;
  const remove = (): void => {
    try {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    } catch {
      // It is this user's alone, and small.
    }
    folder = undefined;
  };
  try {
    folder = makeTemporaryFolder("pamir-process");
    const file = `${folder}/process.cjs`;
    writeFileSync(file, FILE_BEGIN + PROGRAM, { mode: 0o600, flag: "wx" });
    return { args: [file], remove };
  } catch {
    remove();
    return byEval;
  }
}
