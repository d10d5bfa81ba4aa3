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
  /** Threads in C in whose memory the job lies: what each has returned, and whether that memory has grown. */
  async guest(tasks: number, bytes: number) {
    const module = await WebAssembly.compile(await (await fetch("ring.wasm")).arrayBuffer());
    const memory = new WebAssembly.Memory({ initial: 32, maximum: 4096, shared: true });
    const tooEarly = new Proxy({}, { get: (_, name) => () => console.error(`${String(name)} is called too early`) });
    const { exports } = await WebAssembly.instantiate(module, { env: { memory }, pami: tooEarly });
    const allocate = exports.allocate as (bytes: number) => number;
    const block = allocate(bytes);
    const stacks = Array.from({ length: tasks }, () => allocate(65_536) + 65_536);
    const results = new Int32Array(new SharedArrayBuffer(4 * tasks)).fill(-1);
    const before = memory.buffer.byteLength;
    const args = { module, memory, stacks, results, block, bytes };
    const url = new URL("./guest-task.js", import.meta.url);
    const job = await launch(url, { tasks, memory, memoryBase: block, bytes, args });
    await job.exited;
    return { results: [...results], hasGrown: memory.buffer.byteLength > before };
  },
  /** On the page's own thread. */
  async runHere(name: string) {
    const job = await launch(null, { tasks: 1, join: true });
    const program = new Uint8Array(await (await fetch(`${name}.wasm`)).arrayBuffer());
    const options = { args: [name], env: {}, folders: [], write: () => {} };
    return runProgram(job.client, program, options).then(() => "ran", said);
  },
});
