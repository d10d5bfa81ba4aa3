// The program of a process of tasks: it runs the monitor whose source comes by the channel.
import { nodeModule } from "../../support/host.js";
import { makeTemporaryFolder } from "../../support/node/temporary-folder.js";

/** The source may import the module of a user's link. */
const PROGRAM =
  'process.once("message",(setup)=>{globalThis.pamirProcess=setup;const vm=process.getBuiltinModule("node:vm");vm.runInThisContext(setup.source,{filename:"pamir monitor",importModuleDynamically:vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER})})';

/** Where PROGRAM is a file: no module is looked for beside the file, and the file is removed once it runs. */
const FILE_BEGIN = 'process.argv.splice(1);require("node:fs").rmSync(__dirname,{recursive:true,force:true});';

/**
 * The arguments of Node that run PROGRAM. PROGRAM is a file, since threads inherit process.execArgv: each process that a task
 * starts with these options would run an `--eval` among them. If no file of this user alone can be made, PROGRAM comes by
 * `--eval`.
 * @returns the arguments, and what removes the file
 */
export function programArguments(): { readonly args: readonly string[]; readonly remove: () => void } {
  const { rmSync, writeFileSync } = nodeModule("fs") as typeof import("node:fs");
  const { permission } = process as { permission?: unknown };
  const byEval = { args: ["--eval", PROGRAM], remove: () => {} };
  // Bun and Deno run such a file in other ways.
  if (permission !== undefined || process.versions.bun !== undefined || process.versions.deno !== undefined)
    return byEval;
  let folder: string | undefined;
  const remove = (): void => {
    try {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    } catch {
      // The directory is this user's alone, and small.
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
