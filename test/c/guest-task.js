// @ts-check
// A thread of a program in whose memory pamir is a guest: started by launch(), or by the test, which has it adopted.
import { parentPort, workerData } from "node:worker_threads";
import { attach } from "pamir";
import { pamirImports } from "pamir/c";

const isAdopted = workerData?.isAdopted === true;
const client = await (isAdopted
  ? attach(/** @type {import("node:worker_threads").MessagePort} */ (parentPort))
  : attach());

/**
 * @typedef {object} GuestArgs
 * @property {WebAssembly.Module} module
 * @property {WebAssembly.Memory} memory
 * @property {readonly number[]} stacks by task
 * @property {Int32Array} results by task
 * @property {number} block
 * @property {number} bytes
 * @property {"run" | "outlive"} name of the function
 * @property {number} [members] tasks that make a geometry, if not all were there when the job began
 */
const { module, memory, stacks, results, block, bytes, name, members } = /** @type {GuestArgs} */ (client.args);
const context = client.createContext();
const all = Array.from({ length: members ?? 0 }, (_, task) => task);
const world = members === undefined ? undefined : await client.createGeometry(all, { context });
const pami = await pamirImports(client, { context, world });
const { exports } = new WebAssembly.Instance(module, { env: { memory }, ...pami.imports });
pami.bind(exports);
/** @type {WebAssembly.Global} */ (exports.__stack_pointer).value = stacks[client.task];
const run = /** @type {(block: number, bytes: number) => number} */ (exports[name]);
results[client.task] = run(block, bytes);
client.close();
