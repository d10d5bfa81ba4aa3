// A client of PMI-1: one process of a job, at a launcher or at a rendezvous.
//
// Requests go out one at a time, in the order of the calls. Only the answer to a barrier waits for other processes. A
// connection that broke, an answer that makes no sense or a timeout fails the client: from then on every call rejects with
// that error.
import { PamiError } from "../../core/error.js";
import { systemClock } from "../../support/clock.js";
import { after } from "../../support/timers.js";
import type { Lines } from "../lines.js";
import { needModule } from "../node.js";
import { quote, ranksText, secondsText } from "../text.js";
import { type OnWait, reportWait } from "../waits.js";
import { encodeLine, KEY_MAX, KVSNAME_MAX, type PmiLine, parseLine, VALUE_MAX } from "./pmi-wire.js";

/** Longest line that MPICH's own PMI code reads, with its line feed, in bytes. */
const PORTABLE_LINE_MAX = 1024;
/** Longest key of `put`, in characters: some servers have 32 bytes, and a suffix for each part of a value. */
export const CLIENT_KEY_MAX = 24;
/** Longest value of `put`, in bytes. */
export const CLIENT_VALUE_MAX = 64 * 1024;
/** Most parts of a value. */
const PARTS_MAX = 999;
/** Most bytes of a reason that `abort` sends, so that its line stays portable. */
const WHY_MAX = 600;
/** Milliseconds from a failure to the end of a launcher's connection: Hydra ends a process with it, unless it has finalized. */
const LAST_WORDS_MS = 1000;
/** Begins the names of key-value spaces of pamir's own servers. */
export const OWN_KVSNAME = "pamir_";
/** Lines that may come before their request is sent: `initack` has three behind its answer. */
const EARLY_LINES_MAX = 8;

const CLIENT_KEY = /^[\w.:-]+$/;

/** A server's answer to `initack`. */
export interface Seat {
  readonly rank: number;
  readonly size: number;
}

/** Longest names and values of a server, in bytes. Its own terminating zero is counted by some servers. */
export interface PmiMaxes {
  readonly kvsname: number;
  readonly key: number;
  readonly value: number;
}

interface ExchangeOptions {
  /** The request in the texts of errors (default: its command). */
  readonly what?: string | undefined;
  /** Whether the caller looks at `rc`. */
  readonly mayFail?: boolean | undefined;
  /** What the request waits for, in the text of a timeout. */
  readonly awaited?: (() => string) | undefined;
}

interface Wait {
  readonly what: string;
  readonly take: (line: PmiLine) => void;
  readonly fail: (error: PamiError) => void;
}

/** A server of pamir refuses a process: another attempt would get the same answer. */
export class RefusedError extends PamiError {}

export class PmiClient {
  readonly #lines: Lines;
  readonly #server: string;
  readonly #timeout: number;
  readonly #onWait: OnWait | undefined;
  /** Settles when the last request is answered. */
  #queue: Promise<unknown> = Promise.resolve();
  #wait: Wait | undefined;
  readonly #early: PmiLine[] = [];
  #failure: PamiError | undefined;
  #kvsname = "";
  #maxes: PmiMaxes = { kvsname: KVSNAME_MAX, key: KEY_MAX, value: VALUE_MAX };

  /**
   * @param lines a connection to the server, which the client owns
   * @param server the server's name in errors, such as "the PMI server at host:4242"
   * @param timeout of each request, in milliseconds
   * @param onWait called every five seconds while the answer to a request is awaited
   */
  constructor(lines: Lines, server: string, timeout: number, onWait?: OnWait) {
    this.#lines = lines;
    this.#server = server;
    this.#timeout = timeout;
    this.#onWait = onWait;
    lines.start({
      onLine: (line) => this.#take(parseLine(line)),
      onEnd: (error) => this.#end(error),
    });
  }

  /**
   * Says which process this is, as the first request of a connection by `PMI_PORT`.
   * @param more further fields, which a rendezvous compares
   */
  initack(id: string, more: Readonly<Record<string, string | number>> = {}): Promise<Seat> {
    return this.#inTurn(async () => {
      await this.#exchange("initack", { pmiid: id, ...more }, "initack");
      const seat = { size: -1, rank: -1, debug: -1 };
      for (const name of ["size", "rank", "debug"] as const) {
        const { fields } = await this.#next("set", `set ${name}, behind initack`);
        seat[name] = this.#integer(fields, name, "set");
      }
      const { rank, size } = seat;
      if (rank >= size) throw this.#fail(`answered initack with rank ${rank} of ${size}`);
      return { rank, size };
    });
  }

  /** Begins. @throws PAMIR_PMI if the server speaks no PMI of version 1 */
  init(): Promise<void> {
    return this.#inTurn(async () => {
      const versions = { pmi_version: 1, pmi_subversion: 1 };
      const { fields } = await this.#exchange("init", versions, "response_to_init");
      const version = fields.get("pmi_version");
      if (version !== "1") throw this.#fail(`speaks version ${quote(version ?? "")} of PMI, not 1`);
    });
  }

  /** The longest names and values of the server. `put` respects them from then on. */
  getMaxes(): Promise<PmiMaxes> {
    return this.#inTurn(async () => {
      const { fields } = await this.#exchange("get_maxes", {}, "maxes");
      this.#maxes = {
        kvsname: this.#integer(fields, "kvsname_max", "maxes"),
        key: this.#integer(fields, "keylen_max", "maxes"),
        value: this.#integer(fields, "vallen_max", "maxes"),
      };
      return this.#maxes;
    });
  }

  /** The name of the job's key-value space. `put` and `get` use it from then on. */
  getMyKvsname(): Promise<string> {
    return this.#inTurn(async () => {
      const { fields } = await this.#exchange("get_my_kvsname", {}, "my_kvsname");
      const name = fields.get("kvsname") ?? "";
      if (name === "" || name.length > KVSNAME_MAX) throw this.#fail(`answered get_my_kvsname with ${quote(name)}`);
      this.#kvsname = name;
      return name;
    });
  }

  /**
   * Stores a value, for all processes behind the next barrier.
   * @param key 1 to 24 characters: letters, digits, "_", ".", ":" and "-"; no process stores it twice
   * @param value at most 64 KiB, which travels as base64url, in several parts if it is long.
   * @throws PAMIR_INVAL before anything is sent; PAMIR_PMI if the server refuses it
   */
  async put(key: string, value: Uint8Array): Promise<void> {
    checkKey(key);
    if (!(value instanceof Uint8Array) || value.length > CLIENT_VALUE_MAX) {
      const given = value instanceof Uint8Array ? `${value.length} bytes` : typeof value;
      throw new PamiError(
        "PAMIR_INVAL",
        `the value of ${key} is ${given}, not a Uint8Array of at most ${CLIENT_VALUE_MAX} bytes`,
      );
    }
    const text = base64url(value);
    const partLength = this.#partLength(key);
    const parts = Math.max(1, Math.ceil(text.length / partLength));
    if (parts > PARTS_MAX) {
      const most = `${PARTS_MAX} of ${partLength} characters`;
      throw new PamiError(
        "PAMIR_PMI",
        `the value of ${key} needs ${parts} parts at ${this.#server}, not at most ${most}`,
      );
    }
    // The first part says how many there are.
    for (let part = 0; part < parts; part++) {
      const characters = text.slice(part * partLength, (part + 1) * partLength);
      await this.putText(partKey(key, part), part === 0 ? `${parts}.${characters}` : characters);
    }
  }

  /**
   * A value that some process stored before the last barrier.
   * @returns undefined if no process stored a value
   * @throws PAMIR_PMI if another program stored the value, in another form
   */
  async get(key: string): Promise<Uint8Array | undefined> {
    checkKey(key);
    const first = await this.getText(key);
    if (first === undefined) return undefined;
    const [, count, begin] = /^([1-9]\d{0,2})\.([\w-]*)$/.exec(first) ?? [];
    if (count === undefined)
      throw new PamiError("PAMIR_PMI", `the value of ${key} was not stored by pamir: ${quote(first)}`);
    const texts = [begin as string];
    for (let part = 1; part < Number(count); part++) {
      const text = await this.getText(partKey(key, part));
      if (text === undefined || !/^[\w-]+$/.test(text)) {
        const found = text === undefined ? "missing" : quote(text);
        throw new PamiError("PAMIR_PMI", `part ${part} of ${count} of the value of ${key} is ${found}`);
      }
      texts.push(text);
    }
    return new Uint8Array(needModule("buffer").Buffer.from(texts.join(""), "base64url"));
  }

  /** Stores a text of printable ASCII characters without spaces as it is. */
  putText(key: string, value: string): Promise<void> {
    return this.#inTurn(async () => {
      await this.#exchange("put", { kvsname: this.#kvsname, key, value }, "put_result", { what: `put of ${key}` });
    });
  }

  /** A text as some process, or the launcher, stored it; undefined if the key has no text. */
  getText(key: string): Promise<string | undefined> {
    return this.#inTurn(async () => {
      const what = `get of ${key}`;
      const { fields } = await this.#exchange("get", { kvsname: this.#kvsname, key }, "get_result", {
        what,
        mayFail: true,
      });
      // Servers have several codes and texts for a missing key.
      return (fields.get("rc") ?? "0") === "0" ? fields.get("value") : undefined;
    });
  }

  /**
   * Resolves once all processes of the job are in a barrier.
   * @param awaited what `onWait` says of this wait
   * @throws PAMIR_BOOTSTRAP if a process has gone; PAMIR_TIMEDOUT with the ranks that did not come, if the server tells
   */
  barrier(awaited?: () => string): Promise<void> {
    return this.#inTurn(async () => {
      const what = "barrier_in, which waits for all processes";
      const { fields } = await this.#exchange("barrier_in", {}, "barrier_out", { what, mayFail: true, awaited });
      if ((fields.get("rc") ?? "0") !== "0") throw this.#failWith(barrierError(fields));
    });
  }

  /** Says that this process has done with the server, and ends the connection. */
  finalize(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#exchange("finalize", {}, "finalize_ack");
      this.#failure = new PamiError("PAMIR_CLOSED", `the connection to ${this.#server} is finalized`);
      this.#lines.end();
    });
  }

  /** Names the awaited processes of a barrier if only the server knows which processes are missing. */
  barrierText(processes: number): string {
    return `a barrier of ${processes} processes at ${this.#server}`;
  }

  /** Whether the server is one of pamir, which hands on the reason of `abort`. */
  get isOwn(): boolean {
    return this.#kvsname.startsWith(OWN_KVSNAME);
  }

  /** Says that this process has failed, and ends the connection. @param why the reason; a long reason is cut */
  abort(why: string): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#failure !== undefined) return;
      const text = needModule("buffer").Buffer.from(why).subarray(0, WHY_MAX).toString("base64url");
      this.#lines.send(encodeLine("abort", { exitcode: 1, why: text }));
      this.#failure = new PamiError("PAMIR_CLOSED", `the connection to ${this.#server} is aborted`);
      this.#lines.end();
    });
  }

  /** Ends the connection at once. Calls that wait reject. */
  destroy(reason = new PamiError("PAMIR_CLOSED", `the connection to ${this.#server} was closed`)): void {
    this.#failWith(reason);
    this.#lines.destroy();
  }

  /** Like abort(), but a launcher's connection stays open for a second, in which this process can say why it ends. */
  destroySoon(): void {
    this.#failWith(new PamiError("PAMIR_CLOSED", `the connection to ${this.#server} was closed`));
  }

  /** Characters of a part of a value: as many as the server takes, and as old clients and servers read in one line. */
  #partLength(key: string): number {
    const { key: keyMax, value } = this.#maxes;
    const longest = `${key}/${PARTS_MAX}`;
    if (longest.length >= keyMax) {
      const most = `less than ${keyMax}`;
      throw new PamiError("PAMIR_PMI", `the key ${longest} has ${longest.length} bytes; ${this.#server} takes ${most}`);
    }
    const names = `cmd=put kvsname=${this.#kvsname} key=${longest} value=${PARTS_MAX}.\n`.length;
    const answer = `cmd=get_result rc=0 msg=success value=${PARTS_MAX}.\n`.length;
    const ofValue = Math.min(value, VALUE_MAX) - 1 - `${PARTS_MAX}.`.length;
    const ofLine = PORTABLE_LINE_MAX - 1 - Math.max(names, answer);
    return Math.max(1, Math.min(ofValue, ofLine));
  }

  /** Calls something when all earlier requests are answered. */
  #inTurn<T>(call: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(call);
    this.#queue = result.catch(() => {});
    return result;
  }

  /** Sends a request and waits for its answer. */
  async #exchange(
    cmd: string,
    fields: Readonly<Record<string, string | number>>,
    answer: string,
    { what = cmd, mayFail = false, awaited }: ExchangeOptions = {},
  ): Promise<PmiLine> {
    const line = encodeLine(cmd, fields);
    if (this.#failure !== undefined) throw this.#failure;
    this.#lines.send(line);
    const answered = await this.#next(answer, what, awaited);
    const rc = answered.fields.get("rc") ?? "0";
    if (rc !== "0" && !mayFail) throw refused(this.#server, what, answered.fields);
    return answered;
  }

  /** The next line, which is to have this command. */
  #next(cmd: string, what: string, awaited = () => `the answer of ${this.#server} to ${what}`): Promise<PmiLine> {
    return new Promise((resolve, reject) => {
      const take = (line: PmiLine): void => {
        if (line.cmd === cmd && !line.isMultiple) resolve(line);
        else reject(this.#fail(`answered ${what} with ${quote(line.cmd)}, not with ${cmd}`));
      };
      const early = this.#early.shift();
      if (early !== undefined) return take(early);
      if (this.#failure !== undefined) return reject(this.#failure);
      const began = systemClock.now();
      const stop = after(this.#timeout, () => {
        const text = `${this.#server} did not answer within ${secondsText(systemClock.now() - began)}: ${what}`;
        this.#failWith(new PamiError("PAMIR_TIMEDOUT", text));
      });
      const stopReports = reportWait(this.#onWait, this.#timeout, awaited);
      const done = (): void => {
        stop();
        stopReports();
        this.#wait = undefined;
      };
      this.#wait = {
        what,
        take(line) {
          done();
          take(line);
        },
        fail(error) {
          done();
          reject(error);
        },
      };
    });
  }

  #take(line: PmiLine): void {
    if (this.#wait !== undefined) this.#wait.take(line);
    else if (this.#early.length < EARLY_LINES_MAX) this.#early.push(line);
    else this.#fail(`sent ${quote(line.cmd)}, for which it was not asked`);
  }

  #end(error: PamiError | undefined): void {
    const during = this.#wait === undefined ? "" : ` while this process waited for the answer to ${this.#wait.what}`;
    if (error === undefined) {
      this.#failWith(new PamiError("PAMIR_BOOTSTRAP", `${this.#server} ended the connection${during}`));
    } else {
      this.#failWith(new PamiError(error.code, `${this.#server} failed${during}: ${error.message}`, { cause: error }));
    }
  }

  #integer(fields: ReadonlyMap<string, string>, name: string, cmd: string): number {
    const text = fields.get(name) ?? "";
    if (!/^\d{1,9}$/.test(text)) throw this.#fail(`sent ${cmd} with ${name}=${quote(text)}, not with a number`);
    return Number(text);
  }

  #fail(did: string): PamiError {
    return this.#failWith(new PamiError("PAMIR_PMI", `${this.#server} ${did}`));
  }

  /** The first failure counts. @returns the first failure */
  #failWith(error: PamiError): PamiError {
    if (this.#failure !== undefined) return this.#failure;
    this.#failure = error;
    if (this.isOwn) this.#lines.destroy();
    else after(LAST_WORDS_MS, () => this.#lines.destroy(), false);
    this.#wait?.fail(error);
    return error;
  }
}

/** A short value in the form that put() stores, in one part. */
export function storedText(value: Uint8Array): string {
  return `1.${base64url(value)}`;
}

function base64url(value: Uint8Array): string {
  return needModule("buffer").Buffer.from(value).toString("base64url");
}

function checkKey(key: string): void {
  if (typeof key === "string" && key.length <= CLIENT_KEY_MAX && CLIENT_KEY.test(key)) return;
  const allowed = `1 to ${CLIENT_KEY_MAX} letters, digits, "_", ".", ":" or "-"`;
  throw new PamiError("PAMIR_INVAL", `the key is ${quote(String(key))}, not ${allowed}`);
}

function partKey(key: string, part: number): string {
  return part === 0 ? key : `${key}/${part}`;
}

/** The error of an answer with a code other than 0. pamir's own servers say more than a code. */
function refused(server: string, what: string, fields: ReadonlyMap<string, string>): PamiError {
  const msg = fields.get("msg") ?? "";
  const text = `${server} refused ${what}: rc=${fields.get("rc")}${msg === "" ? "" : `, ${msg.replaceAll("_", " ")}`}`;
  return fields.has("pamir") ? new RefusedError("PAMIR_BOOTSTRAP", text) : new PamiError("PAMIR_PMI", text);
}

/** Why a barrier failed, from the answer of pamir's server. */
function barrierError(fields: ReadonlyMap<string, string>): PamiError {
  const given = fields.get("why");
  const why =
    given === undefined
      ? (fields.get("msg") ?? "without a reason").replaceAll("_", " ")
      : `failed: ${needModule("buffer").Buffer.from(given, "base64url").toString()}`;
  const runs = fields.get("ranks");
  const text = `the barrier failed: ${runs === undefined ? "" : `${ranksText(runs)} `}${why}`;
  return new PamiError(fields.get("pamir") === "timedout" ? "PAMIR_TIMEDOUT" : "PAMIR_BOOTSTRAP", text);
}
