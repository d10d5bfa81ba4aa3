// @ts-check
// Exposes things to task 0 by Comlink, over pamir.
import { deserialize, serialize } from "node:v8";
import * as msgpack from "@msgpack/msgpack";
import * as Comlink from "comlink";
import { attach } from "pamir";
import { portTo } from "pamir/port";

const client = await attach();
const { id, codec } = /** @type {{ id: number, codec: string }} */ (client.args);
const codecs = { msgpack, v8: { encode: serialize, decode: deserialize } };
const context = client.createContext();

class Counter {
  #count = 0;
  /** @param {number} by */
  add(by) {
    this.#count += by;
    return this.#count;
  }
}

const exposed = {
  task: client.task,
  Counter,
  /** @param {number} a @param {number} b */
  add: (a, b) => a + b,
  fail() {
    throw new RangeError("failed over there");
  },
  /** @param {Uint8Array} bytes */
  reversed: (bytes) => bytes.slice().reverse(),
  /** @type {(list: number[], callback: (number: number) => Promise<number>) => Promise<number[]>} */
  async map(list, callback) {
    const mapped = [];
    for (const number of list) mapped.push(await callback(number));
    return mapped;
  },
  never: () => new Promise(() => {}),
  die() {
    setTimeout(() => process.exit(7), 20);
    return new Promise(() => {});
  },
  counter: () => Comlink.proxy(new Counter()),
};
Comlink.expose(
  exposed,
  /** @type {any} */ (portTo(context, client.endpoint(0), { id, codec: codecs[/** @type {"v8"} */ (codec)] })),
);
