// The page of c.test.ts: runs programs in C as its address says, and keeps what they said.
import { launch } from "pamir";
import { launchProgram, runProgram } from "pamir/c";

const entry = new URL("./c-task.js", import.meta.url);

/** What an error says, as a page can hand it out. */
const said = ({ code, message }: { code?: string; message: string }) => ({ code, message });

Object.assign(globalThis, {
  async run(name: string, tasks: number, options: object = {}) {
    const lines: object[] = [];
    try {
      const end = await launchProgram(entry, {
        program: `${name}.wasm`,
        tasks,
        ...options,
        onLine: (line) => lines.push(line),
      });
      const text = (tree: object): object =>
        Object.fromEntries(
          Object.entries(tree).map(([file, value]) => [
            file,
            value instanceof Uint8Array ? new TextDecoder().decode(value) : text(value),
          ]),
        );
      const ranks = end.ranks.map(({ rank, code, error, files }) => ({
        rank,
        code,
        error: error && said(error),
        files: text(files),
      }));
      return { code: end.code, ranks, lines };
    } catch (error) {
      return said(error as Error);
    }
  },
  /** On the page's own thread. */
  async runHere(name: string) {
    const job = await launch(null, { tasks: 1, join: true });
    const program = new Uint8Array(await (await fetch(`${name}.wasm`)).arrayBuffer());
    const options = { args: [name], env: {}, folders: [], write: () => {} };
    return runProgram(job.client, program, options).then(() => "ran", said);
  },
});
