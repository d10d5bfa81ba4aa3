// The PMI server under random requests of several clients, some of them hostile, against a model of a key-value space.
import fc from "fast-check";
import { expect, it } from "vitest";
import { StreamLines } from "../../src/bootstrap/lines.js";
import { PmiServer } from "../../src/bootstrap/pmi/pmi-server.js";
import { LINE_MAX, PlainFraming, parseLine } from "../../src/bootstrap/pmi/pmi-wire.js";
import { nextTurn } from "../../src/support/host.js";
import { connection, type End } from "../support/duplex.js";
import { byEffort } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

const SIZE = 3;
const KEYS = ["a", "b", "c", "d/1"];

const request = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      cmd: fc.constant("put" as const),
      key: fc.constantFrom(...KEYS),
      value: fc.stringMatching(/^[!-~]{0,30}$/),
    }),
  },
  { weight: 4, arbitrary: fc.record({ cmd: fc.constant("get" as const), key: fc.constantFrom(...KEYS, "none") }) },
  { weight: 8, arbitrary: fc.record({ cmd: fc.constant("barrier_in" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ cmd: fc.constantFrom("finalize" as const, "get_maxes" as const, "abort" as const) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ cmd: fc.constant("bytes" as const), bytes: fc.uint8Array({ minLength: 1, maxLength: 40 }) }),
  },
);
type Request = typeof request extends fc.Arbitrary<infer T> ? T : never;

/** One rank: what it has sent, and what has come. */
class Client {
  readonly end: End;
  readonly #framing = new PlainFraming();
  isOver = false;

  constructor(server: PmiServer, rank: number) {
    const [own, other] = connection();
    this.end = own;
    own.on("data", (bytes: Buffer) => this.#framing.push(bytes));
    own.on("close", () => {
      this.isOver = true;
    });
    own.on("end", () => {
      this.isOver = true;
    });
    server.serve(new StreamLines(other, new PlainFraming()), rank);
  }

  take(): { cmd: string; fields: ReadonlyMap<string, string> }[] {
    const lines: { cmd: string; fields: ReadonlyMap<string, string> }[] = [];
    for (let line = this.#framing.next(); line !== undefined; line = this.#framing.next()) {
      expect(line.length).toBeLessThanOrEqual(LINE_MAX);
      lines.push(parseLine(line));
    }
    return lines;
  }
}

/** What the server is to do, in the simplest words. */
class Model {
  readonly values = new Map<string, string>();
  readonly inBarrier = new Set<number>();
  readonly gone = new Set<number>();
  isBroken = false;

  /** @returns the answers that each rank gets, as the first words of lines; undefined: the connection is closed */
  step(rank: number, request: Request): Map<number, string> {
    const answers = new Map<number, string>();
    if (this.inBarrier.has(rank) || request.cmd === "bytes" || request.cmd === "abort") {
      const isAbort = request.cmd === "abort" && !this.inBarrier.has(rank);
      this.inBarrier.delete(rank);
      this.gone.add(rank);
      this.#break(answers);
      if (!isAbort) answers.set(rank, "closed");
    } else if (request.cmd === "put") {
      const isNew = !this.values.has(request.key);
      if (isNew) this.values.set(request.key, request.value);
      answers.set(rank, `put_result ${isNew ? 0 : -1}`);
    } else if (request.cmd === "get") {
      const value = this.values.get(request.key);
      answers.set(rank, value === undefined ? "get_result -1 unknown" : `get_result 0 ${value}`);
    } else if (request.cmd === "get_maxes") answers.set(rank, "maxes 0");
    else if (request.cmd === "finalize") {
      this.gone.add(rank);
      answers.set(rank, "finalize_ack 0");
      if (this.inBarrier.size > 0) this.#break(answers);
    } else {
      this.inBarrier.add(rank);
      if (this.isBroken || this.gone.size > 0) this.#break(answers);
      else if (this.inBarrier.size === SIZE) this.#leave(answers, "barrier_out 0");
    }
    return answers;
  }

  #break(answers: Map<number, string>): void {
    this.isBroken = true;
    this.#leave(answers, "barrier_out -1");
  }

  #leave(answers: Map<number, string>, answer: string): void {
    for (const rank of this.inBarrier) answers.set(rank, answer);
    this.inBarrier.clear();
  }
}

function send(client: Client, request: Request): void {
  const { cmd } = request;
  if (cmd === "bytes") client.end.write(Buffer.concat([request.bytes, Buffer.from("\n")]));
  else if (cmd === "put") client.end.write(`cmd=put kvsname=k key=${request.key} value=${request.value}\n`);
  else if (cmd === "get") client.end.write(`cmd=get kvsname=k key=${request.key}\n`);
  else if (cmd === "abort") client.end.write("cmd=abort exitcode=1\n");
  else client.end.write(`cmd=${cmd}\n`);
}

it(`answers as the model does, and never throws (${replayNote()})`, async () => {
  const random = randomOf(SEED);
  const runs = fc.sample(fc.array(fc.tuple(fc.nat(SIZE - 1), request), { minLength: 5, maxLength: 40 }), {
    seed: SEED,
    numRuns: byEffort({ quick: 60, normal: 120, deep: 600 }),
  });
  let [barriers, closed] = [0, 0];
  for (const steps of runs) {
    const server = new PmiServer({ size: SIZE, kvsname: "k" });
    const model = new Model();
    const clients = Array.from({ length: SIZE }, (_, rank) => new Client(server, rank));
    for (const [rank, request] of steps) {
      const client = clients[rank] as Client;
      if (model.gone.has(rank)) continue;
      // Mostly a client waits for its barrier.
      if (model.inBarrier.has(rank) && random(8) !== 0) continue;
      // A random line may be an unknown command, but no known one: those begin with "cmd=".
      if (request.cmd === "bytes" && random(4) === 0) client.end.write(" ");
      const expected = model.step(rank, request);
      send(client, request);
      await nextTurn();
      await nextTurn();
      for (const [other, { isOver }] of clients.entries()) {
        const got = (clients[other] as Client).take().map(({ cmd, fields }) => {
          const value = cmd === "get_result" ? ` ${fields.get("value")}` : "";
          return `${cmd} ${fields.get("rc")}${value}`;
        });
        const right = expected.get(other);
        const text = `${rank}: ${JSON.stringify(request)}`;
        if (right === "closed") {
          closed++;
          expect([isOver, got], text).toEqual([true, []]);
        } else expect(got, text).toEqual(right === undefined ? [] : [right]);
        if (right === "barrier_out 0") barriers++;
      }
    }
    server.close();
  }
  expect(closed).toBeGreaterThan(0);
  expect(barriers).toBeGreaterThan(0);
});
