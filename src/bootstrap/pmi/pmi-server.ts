// A server of PMI-1: a key-value space and barriers for the processes of one job. `pamir run` serves its children, and
// rank 0 of a rendezvous serves the other ranks.
//
// The server checks all input of a connection. A line that is malformed or out of turn closes its connection, as does silence
// before a connection has said its rank. Values that a rank stores, and answers that wait for a rank, are bounded.
//
// Answers of this server that say more than PMI-1 asks for have a field `pamir`, which other clients ignore.
import { PamiError } from "../../core/error.js";
import { after } from "../../support/timers.js";
import type { Lines } from "../lines.js";
import { quote, runsOf, secondsText } from "../text.js";
import { encodeLine, KEY_MAX, KVSNAME_MAX, messageOf, type PmiLine, parseLine, VALUE_MAX } from "./pmi-wire.js";

/** Version of the answers with a field `pamir`, and of the fields of `initack`. Different versions don't join one job. */
export const RENDEZVOUS_VERSION = 1;

/** Most keys that a rank stores. */
const KEYS_MAX = 4096;
/** Most bytes of keys and values that a rank stores: 16 of the longest values of a client, and their keys. */
const STORED_MAX = 2 * 1024 * 1024;
/** Most lines of one `mcmd` request, which are read only to be skipped. */
const SKIPPED_LINES_MAX = 4096;
/** In milliseconds: how long a connection may take until its first line. */
const FIRST_LINE_MS = 10_000;

export interface PmiServerOptions {
  /** Processes with which the job begins: all of them come to each barrier. */
  readonly size: number;
  /**
   * Processes that may come later, with ranks from `size` on. Later processes pass barriers at once: all other processes have
   * passed them.
   */
  readonly later?: number | undefined;
  /** Name of the key-value space: printable ASCII without spaces, at most 256 characters. */
  readonly kvsname: string;
  /** How long the first process in a barrier waits for the last, in milliseconds (default: for ever). */
  readonly barrierTimeout?: number;
  /** Called with the ranks that did not come to a barrier in time, before other ranks hear of the failure. */
  readonly onTimedOut?: (missing: readonly number[]) => void;
  /** The launcher's name for the job. A process with another name is refused; a process without a name is accepted. */
  readonly job?: string | undefined;
  /** Values that the launcher stores before the processes start. */
  readonly values?: Readonly<Record<string, string>>;
  /**
   * A process that spoke PMI has ended its connection before `finalize`, or has aborted. @param why a text that follows "rank
   * 3"
   */
  readonly onLost?: (rank: number, why: string) => void;
  /** This server has closed a connection. @param why in a sentence @param from the address that serve() got */
  readonly onRefused?: (why: string, from: string) => void;
}

/** The server's state of a connection. */
interface Connection {
  readonly lines: Lines;
  readonly from: string;
  rank: number | undefined;
  isInitialized: boolean;
  isInBarrier: boolean;
  isFinalized: boolean;
  /** Lines of an `mcmd` that are skipped so far; undefined outside of one. */
  skipped: number | undefined;
  /** Requests that belong to the `mcmd` and have not come: all requests of an `mcmd` get one answer. */
  more: number;
  keys: number;
  stored: number;
  /** Stops the wait for the first line. */
  stopWaiting: () => void;
  readonly onJoined: (rank: number) => void;
}

/** Why no barrier succeeds any more. */
interface Broken {
  readonly pamir: "lost" | "timedout";
  readonly ranks: string;
  readonly msg: string;
  /** The reason that an aborting process has sent, as base64url. */
  readonly why?: string;
}

/** The reason that `abort` may send. */
const WHY = /^[\w-]{1,1000}$/;

export class PmiServer {
  readonly #options: PmiServerOptions;
  readonly #values = new Map<string, string>();
  readonly #connections = new Set<Connection>();
  /** By rank; a rank is served once. */
  readonly #ranks = new Map<number, Connection>();
  readonly #watchers: (() => void)[] = [];
  #inBarrier = 0;
  #barriers = 0;
  #finalized = 0;
  #lost = 0;
  #stopBarrier: (() => void) | undefined;
  #broken: Broken | undefined;
  #isClosed = false;

  constructor(options: PmiServerOptions) {
    this.#options = options;
    for (const [key, value] of Object.entries(options.values ?? {})) this.#values.set(key, value);
  }

  /** Ranks that never had a connection. */
  get missing(): number[] {
    return this.#ranksWhere((connection) => connection === undefined);
  }

  /** Ranks that are not in the barrier. */
  get absent(): number[] {
    return this.#ranksWhere((one) => one?.isInBarrier !== true);
  }

  /** Ranks that have not begun to speak PMI, with or without a connection. */
  get silent(): number[] {
    return this.#ranksWhere((connection) => connection?.isInitialized !== true);
  }

  /** How many barriers all processes have passed. */
  get barriers(): number {
    return this.#barriers;
  }

  /** Whether a value is stored. */
  has(key: string): boolean {
    return this.#values.has(key);
  }

  /** Stores a value of the launcher's own, or replaces it. */
  store(key: string, value: string): void {
    this.#values.set(key, value);
  }

  /** How many ranks have, or had, a connection. */
  get joined(): number {
    return this.#ranks.size;
  }

  /** How many ranks have finalized, or are lost. */
  get done(): number {
    return this.#finalized + this.#lost;
  }

  /** The rank whose loss has made the barriers fail. */
  get brokenBy(): number | undefined {
    return this.#broken?.pamir === "lost" ? Number.parseInt(this.#broken.ranks, 10) : undefined;
  }

  /** Calls a function now, and after each change of `joined` and `done`, until the function returns true. */
  watch(look: () => boolean): void {
    if (look()) return;
    const again = (): void => {
      if (!look()) this.#watchers.push(again);
    };
    this.#watchers.push(again);
  }

  /**
   * Serves a process.
   * @param lines the process's connection, which the server owns
   * @param rank known from the connection itself, or undefined: then the process says its rank first, by `initack`
   * @param onJoined called once with the rank, at once if `rank` is given
   * @param from where the process is, for onRefused
   * @throws PAMIR_INVAL if the rank is out of range or is served already
   */
  serve(lines: Lines, rank?: number, onJoined: (rank: number) => void = () => {}, from = ""): void {
    const connection: Connection = {
      lines,
      from,
      rank: undefined,
      isInitialized: false,
      isInBarrier: false,
      isFinalized: false,
      skipped: undefined,
      more: 0,
      keys: 0,
      stored: 0,
      stopWaiting: () => {},
      onJoined,
    };
    if (this.#isClosed) {
      lines.destroy();
      return;
    }
    if (rank !== undefined) {
      const why = this.#whyNot(rank);
      if (why !== undefined) throw new PamiError("PAMIR_INVAL", why);
    }
    this.#connections.add(connection);
    if (rank !== undefined) this.#join(connection, rank);
    else {
      connection.stopWaiting = after(FIRST_LINE_MS, () => {
        this.#refuse(connection, `a connection sent no line within ${secondsText(FIRST_LINE_MS)}`);
      });
    }
    lines.start({
      onLine: (line) => this.#take(connection, line),
      onEnd: (error) => {
        // Bytes that are no line, or don't open.
        if (error?.code === "PAMIR_PMI" || error?.code === "PAMIR_KEY") this.#options.onRefused?.(error.message, from);
        this.#end(connection, error === undefined ? "ended its connection" : `was cut off (${error.message})`);
      },
    });
  }

  /** Ends all connections at once. Processes that wait for an answer get an error. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopBarrier?.();
    for (const connection of this.#connections) {
      connection.stopWaiting();
      connection.lines.end();
    }
    this.#connections.clear();
    this.#changed();
  }

  /** Makes all barriers fail: barriers in which processes wait, and later barriers. The first reason counts. */
  fail(pamir: Broken["pamir"], ranks: readonly number[], why: string): void {
    this.#break({ pamir, ranks: runsOf(ranks), msg: messageOf(why) });
  }

  #break(broken: Broken): void {
    this.#broken ??= broken;
    this.#stopBarrier?.();
    this.#stopBarrier = undefined;
    this.#inBarrier = 0;
    for (const connection of this.#ranks.values()) {
      if (!connection.isInBarrier) continue;
      connection.isInBarrier = false;
      this.#answerBroken(connection, this.#broken);
    }
  }

  #ranksWhere(is: (connection: Connection | undefined) => boolean): number[] {
    const ranks: number[] = [];
    for (let rank = 0; rank < this.#options.size; rank++) if (is(this.#ranks.get(rank))) ranks.push(rank);
    return ranks;
  }

  #changed(): void {
    for (const look of this.#watchers.splice(0)) look();
  }

  #whyNot(rank: number): string | undefined {
    const { size, later = 0 } = this.#options;
    const most = size + later - 1;
    if (!Number.isInteger(rank) || rank < 0 || rank > most) return `rank ${rank} is not from 0 to ${most}`;
    if (!this.#ranks.has(rank)) return undefined;
    return `rank ${rank} is taken: another process has it, or had it before`;
  }

  #join(connection: Connection, rank: number): void {
    connection.stopWaiting();
    connection.rank = rank;
    this.#ranks.set(rank, connection);
    connection.onJoined(rank);
    this.#changed();
  }

  #end(connection: Connection, why: string): void {
    connection.stopWaiting();
    if (!this.#connections.delete(connection)) return;
    const { rank, isFinalized } = connection;
    if (rank === undefined || isFinalized) return;
    // The process gets no answer any more.
    connection.isInBarrier = false;
    this.#lose(connection, rank, `${why} before it finalized`);
  }

  #lose(connection: Connection, rank: number, why: string, told?: string): void {
    this.#lost++;
    // A program that speaks no PMI has not failed.
    if (connection.isInitialized) this.#options.onLost?.(rank, why);
    this.#break({ pamir: "lost", ranks: `${rank}`, msg: messageOf(why), ...(told === undefined ? {} : { why: told }) });
    this.#changed();
  }

  /** Closes a connection without an answer. */
  #refuse(connection: Connection, why: string): void {
    connection.lines.destroy();
    this.#options.onRefused?.(why, connection.from);
    this.#end(connection, `was cut off (${why})`);
  }

  #take(connection: Connection, line: string): void {
    if (!this.#connections.has(connection)) return;
    if (connection.skipped !== undefined) {
      this.#skip(connection, line);
      return;
    }
    let why: string | undefined;
    try {
      const request = parseLine(line);
      why = this.#answer(connection, request);
      if (why !== undefined) why = `${why}: ${quote(line)}`;
    } catch (error) {
      if (!(error instanceof PamiError)) throw error;
      why = error.message;
    }
    if (why !== undefined) this.#refuse(connection, why);
  }

  /** Answers a request. @returns why the connection is to be closed instead */
  #answer(connection: Connection, { cmd, isMultiple, fields }: PmiLine): string | undefined {
    const { size, kvsname } = this.#options;
    const send = (answer: string, values: Readonly<Record<string, string | number>>): undefined => {
      connection.lines.send(encodeLine(answer, values));
    };
    if (connection.rank === undefined) {
      if (cmd !== "initack" || isMultiple) return "the first line is not initack";
      return this.#initack(connection, fields);
    }
    if (connection.isInBarrier) return "a line came while its sender was in a barrier";
    if (connection.isFinalized) return "a line came after finalize";
    if (isMultiple) {
      connection.skipped = 0;
      connection.more = 0;
      return undefined;
    }
    switch (cmd) {
      case "init": {
        connection.isInitialized = true;
        const rc = fields.get("pmi_version") === "1" ? 0 : -1;
        return send("response_to_init", { pmi_version: 1, pmi_subversion: 1, rc });
      }
      case "get_maxes":
        return send("maxes", { rc: 0, kvsname_max: KVSNAME_MAX, keylen_max: KEY_MAX, vallen_max: VALUE_MAX });
      case "get_appnum":
        return send("appnum", { rc: 0, appnum: 0 });
      case "get_my_kvsname":
        return send("my_kvsname", { rc: 0, kvsname });
      case "get_universe_size":
        return send("universe_size", { rc: 0, size });
      case "put":
        return send("put_result", this.#put(connection, fields));
      case "get":
        return send("get_result", this.#get(fields));
      case "barrier_in":
        return this.#barrier(connection);
      case "finalize":
        return this.#finalize(connection);
      case "abort":
        return this.#abort(connection, fields);
      case "publish_name":
        return send("publish_result", { rc: -1, msg: "names_are_not_published" });
      case "unpublish_name":
        return send("unpublish_result", { rc: -1, msg: "names_are_not_published" });
      case "lookup_name":
        return send("lookup_result", { rc: -1, msg: "names_are_not_published" });
      case "spawn":
        return send("spawn_result", { rc: -1, msg: "spawn_is_not_supported" });
      default:
        return "the command is unknown";
    }
  }

  #initack(connection: Connection, fields: ReadonlyMap<string, string>): undefined {
    const { size, job } = this.#options;
    const rank = /^\d{1,9}$/.test(fields.get("pmiid") ?? "") ? Number(fields.get("pmiid")) : -1;
    const why = this.#whyNot(rank) ?? whyOther(fields, { size: `${size}`, job, version: `${RENDEZVOUS_VERSION}` });
    if (why !== undefined) {
      connection.lines.send(encodeLine("initack", { rc: -1, pamir: "refused", msg: messageOf(why) }));
      connection.stopWaiting();
      this.#connections.delete(connection);
      connection.lines.end();
      this.#options.onRefused?.(why, connection.from);
      return undefined;
    }
    connection.lines.send(encodeLine("initack", { rc: 0 }));
    for (const [name, value] of Object.entries({ size, rank, debug: 0 })) {
      connection.lines.send(encodeLine("set", { [name]: value }));
    }
    this.#join(connection, rank);
    return undefined;
  }

  #put(connection: Connection, fields: ReadonlyMap<string, string>): Record<string, string | number> {
    const key = fields.get("key") ?? "";
    const value = fields.get("value");
    const no = (msg: string) => ({ rc: -1, pamir: "refused", msg: messageOf(msg) });
    if (fields.get("kvsname") !== this.#options.kvsname) return no("no such key-value space");
    if (key === "" || key.length > KEY_MAX || value === undefined) return no(`a put of key ${quote(key)}`);
    if (this.#values.has(key)) return no(`duplicate key ${key}`);
    const bytes = key.length + value.length;
    if (connection.keys === KEYS_MAX) return no(`a process stores at most ${KEYS_MAX} keys`);
    if (connection.stored + bytes > STORED_MAX) return no(`a process stores at most ${STORED_MAX} bytes`);
    connection.keys++;
    connection.stored += bytes;
    this.#values.set(key, value);
    return { rc: 0, msg: "success" };
  }

  #get(fields: ReadonlyMap<string, string>): Record<string, string | number> {
    const key = fields.get("key") ?? "";
    const isKnown = fields.get("kvsname") === this.#options.kvsname;
    const value = isKnown ? this.#values.get(key) : undefined;
    if (value !== undefined) return { rc: 0, msg: "success", value };
    const msg = isKnown ? `key_${key}_not_found` : "kvs_not_found";
    return { rc: -1, msg: messageOf(msg), value: "unknown" };
  }

  #barrier(connection: Connection): undefined {
    const { size, barrierTimeout } = this.#options;
    if ((connection.rank as number) >= size) {
      connection.lines.send(encodeLine("barrier_out", { rc: 0 }));
      return undefined;
    }
    if (this.#broken !== undefined) {
      this.#answerBroken(connection, this.#broken);
      return undefined;
    }
    connection.isInBarrier = true;
    this.#inBarrier++;
    if (this.#finalized > 0) {
      this.#failBehindFinalize();
    } else if (this.#inBarrier === size) {
      this.#stopBarrier?.();
      this.#stopBarrier = undefined;
      this.#inBarrier = 0;
      this.#barriers++;
      for (const one of this.#ranks.values()) {
        if (!one.isInBarrier) continue;
        one.isInBarrier = false;
        one.lines.send(encodeLine("barrier_out", { rc: 0 }));
      }
    } else if (this.#inBarrier === 1 && barrierTimeout !== undefined) {
      this.#stopBarrier = after(barrierTimeout, () => {
        const { absent } = this;
        this.#options.onTimedOut?.(absent);
        this.fail("timedout", absent, `did not come within ${secondsText(barrierTimeout)}`);
      });
    }
    return undefined;
  }

  #failBehindFinalize(): void {
    const finalized = this.#ranksWhere((one) => one?.isFinalized === true);
    this.fail("lost", finalized, "finalized and enters no more barriers");
  }

  #answerBroken(connection: Connection, broken: Broken): void {
    connection.lines.send(encodeLine("barrier_out", { rc: -1, ...broken }));
  }

  #finalize(connection: Connection): undefined {
    connection.isFinalized = true;
    this.#finalized++;
    connection.lines.send(encodeLine("finalize_ack", { rc: 0 }));
    if (this.#inBarrier > 0) this.#failBehindFinalize();
    this.#changed();
    return undefined;
  }

  #abort(connection: Connection, fields: ReadonlyMap<string, string>): undefined {
    connection.isFinalized = true;
    const why = fields.get("why") ?? "";
    const text = `aborted with exit code ${fields.get("exitcode") ?? "?"}`;
    this.#lose(connection, connection.rank as number, text, WHY.test(why) ? why : undefined);
    return undefined;
  }

  /** A line of an `mcmd`, which asks for further processes. */
  #skip(connection: Connection, line: string): void {
    connection.skipped = (connection.skipped as number) + 1;
    const [, total] = /^totspawns=(\d{1,9})$/.exec(line) ?? [];
    const [, place] = /^spawnssofar=(\d{1,9})$/.exec(line) ?? [];
    connection.more += Number(total ?? 0) - Number(place ?? 0);
    if (line.trim() === "endcmd") {
      connection.skipped = undefined;
      if (connection.more > 0) return;
      connection.lines.send(encodeLine("spawn_result", { rc: -1, msg: "spawn_is_not_supported" }));
    } else if (connection.skipped > SKIPPED_LINES_MAX) {
      this.#refuse(connection, `a request of several lines has more than ${SKIPPED_LINES_MAX}`);
    }
  }
}

/** Why a process is of another job than this server. Processes of other launchers' jobs don't say all fields. */
function whyOther(
  fields: ReadonlyMap<string, string>,
  own: Readonly<Record<"size" | "job" | "version", string | undefined>>,
): string | undefined {
  for (const [name, value] of Object.entries(own)) {
    const other = fields.get(name);
    if (other === undefined || value === undefined || other === value) continue;
    return `another job: its ${name} is ${other}, not ${value}`;
  }
  return undefined;
}
