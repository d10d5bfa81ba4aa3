// The bootstrap of a process that comes later to a job at a NATS server: it passes all barriers at once, and what other processes
// have stored comes from the steward of the job.
import { PamiError } from "../../core/error.js";
import { VERSION } from "../../generated/version.js";
import { decodeText, encodeText } from "../../support/text.js";
import type { Bootstrap, StewardedJob } from "../bootstrap.js";
import { LATER_BEGUN, type Later } from "../later.js";
import type { Came, Comer, Entered } from "./come-later.js";

export class LaterBootstrap implements Bootstrap {
  readonly rank: number;
  readonly size: number;
  readonly localRank = undefined;
  readonly localSize = undefined;
  readonly later: Later;
  readonly stewarded: StewardedJob | undefined;
  readonly #comer: Comer;
  readonly #came: Came;
  readonly #close: () => Promise<void>;
  #entered: Promise<Entered> | undefined;

  /** @param close called once, behind close() or fail() @param stewarded if this process may be the job's steward */
  constructor(comer: Comer, came: Came, close: () => Promise<void>, stewarded?: StewardedJob) {
    const { task, facts, ended, gone } = came;
    const { world, most } = facts;
    this.rank = task;
    this.size = most;
    this.later = { world, most, ended, gone };
    this.stewarded = stewarded;
    this.#comer = comer;
    this.#came = came;
    this.#close = close;
  }

  async put(key: string, value: Uint8Array): Promise<void> {
    const { task, facts } = this.#came;
    // Other values are for processes of the start.
    if (key !== `address-${facts.nodes + task - facts.world}`) return;
    this.#entered = this.#comer.enter(JSON.parse(decodeText(value)));
    await this.#entered;
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    const [, kind, number] = /^(task|address)-(\d+)$/.exec(key) ?? [];
    if (kind === "task") return encodeText(JSON.stringify(this.#introductionOf(Number(number))));
    if (kind === undefined && key !== LATER_BEGUN) return undefined;
    if (this.#entered === undefined)
      throw new PamiError("PAMIR_BOOTSTRAP", `${key} is asked for before the address of this node is there`);
    const { addresses, begun } = await this.#entered;
    const value = kind === undefined ? begun : (addresses[Number(number)] ?? null);
    return encodeText(JSON.stringify(value));
  }

  /** What a task of the start has said of itself (introduce.ts), as far as a later one needs it. */
  #introductionOf(task: number): object {
    const { perNode, machine, network, layoutHash, random, options, isVisible } = this.#came.facts;
    // Tasks with one host are a node. No such name is that of this host.
    const host = `node ${Math.floor(task / perNode)}`;
    const own = { host, why: "", machine, network, pid: 0, started: 0 };
    return { ...own, version: VERSION, layoutHash, random, options, isVisible };
  }

  async barrier(): Promise<void> {}

  async close(): Promise<void> {
    this.#comer.close();
    await this.#close();
  }

  async fail(): Promise<void> {
    await this.#comer.leave();
    await this.close();
  }
}
