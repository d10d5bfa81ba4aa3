// A thread of a program on a page, in whose memory pamir is a guest: test/c/guests/ring.c.
import { attach } from "pamir";
import { pamirImports } from "pamir/c";

const client = await attach();
const { module, memory, stacks, results, block, bytes } = client.args as {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  readonly stacks: readonly number[];
  readonly results: Int32Array;
  readonly block: number;
  readonly bytes: number;
};
const pami = await pamirImports(client);
const { exports } = new WebAssembly.Instance(module, { env: { memory }, ...pami.imports });
pami.bind(exports);
(exports.__stack_pointer as WebAssembly.Global).value = stacks[client.task];
results[client.task] = (exports.run as (block: number, bytes: number) => number)(block, bytes);
client.close();
