// Random programs over pamir/mpi against a sequential model: after each step, all is carried to where it goes, so the model knows
// which message each receive and each probe gets, also by wildcards.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ANY_SOURCE,
  ANY_TAG,
  type Comm,
  type CommRequest,
  type CommStatus,
  init,
  type Mpi,
} from "../../src/mpi/index.js";
import { type Members, settled, tasksOf } from "../support/collective-rig.js";
import { limitsOf, nodesOf } from "../support/collective-rigs.js";
import { scaled } from "../support/effort.js";
import { portsJob } from "../support/ports-job.js";
import { replayNote, SEED } from "../support/seed.js";

const RANKS = 3;
/** Around the limits of what goes with a message, in one memory and beyond. */
const bytes = fc.oneof(
  fc.integer({ min: 0, max: 300 }),
  fc.constantFrom(16_383, 16_384, 16_385, 65_536, 65_537, 70_000),
);
const rank = fc.integer({ min: 0, max: RANKS - 1 });
const comm = fc.integer({ min: 0, max: 1 });
const tag = fc.integer({ min: 0, max: 2 });
const source = fc.oneof({ weight: 3, arbitrary: rank }, { weight: 2, arbitrary: fc.constant(ANY_SOURCE) });
const anyTag = fc.oneof({ weight: 3, arbitrary: tag }, { weight: 2, arbitrary: fc.constant(ANY_TAG) });
const place = fc.constantFrom("heap", "region");

const command = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("send"),
      comm,
      rank,
      to: rank,
      tag,
      bytes,
      place,
      isSynchronous: fc.boolean(),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("receive"), comm, rank, source, tag: anyTag, bytes, place }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("probe"), comm, rank, source, tag: anyTag }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cancel"), which: fc.nat() }) },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

interface Message {
  readonly from: number;
  readonly tag: number;
  readonly content: Uint8Array;
  readonly request: CommRequest;
}

interface Receive {
  readonly source: number;
  readonly tag: number;
  readonly view: Uint8Array;
  readonly request: CommRequest;
  message?: Message;
  isCanceled: boolean;
}

interface Queues {
  readonly posted: Receive[];
  readonly stored: Message[];
}

const fits = (receive: { source: number; tag: number }, message: Message): boolean =>
  (receive.source === ANY_SOURCE || receive.source === message.from) &&
  (receive.tag === ANY_TAG || receive.tag === message.tag);

const told = ({ source, tag, bytes, isCanceled }: CommStatus): unknown[] => [source, tag, bytes, isCanceled];

/** A program of all ranks, and what the model knows of it. */
class Program {
  readonly #members: Members;
  /** By communicator, then by rank. */
  readonly #comms: readonly (readonly Comm[])[];
  readonly #queues: Queues[][];
  readonly #receives: Receive[] = [];
  readonly #sends: Message[] = [];
  readonly #views: (readonly [rank: number, bytes: number, take: () => void])[] = [];
  #filled = 0;

  constructor(members: Members, comms: readonly (readonly Comm[])[]) {
    this.#members = members;
    this.#comms = comms;
    this.#queues = comms.map((all) => all.map(() => ({ posted: [], stored: [] })));
  }

  async run(commands: readonly Command[]): Promise<void> {
    for (const one of commands) {
      if (one.do === "send") this.#send(one as never);
      else if (one.do === "receive") this.#receive(one as never);
      else if (one.do === "probe") this.#probe(one as never);
      else this.#cancel(one as never);
      await this.#carry();
      this.#check();
    }
    await this.#end();
  }

  #view(rank: number, length: number, where: string): Uint8Array {
    if (where === "heap") return new Uint8Array(length);
    const region = this.#members.members[rank]?.client.createRegion(length + 9);
    if (region === undefined) throw new Error("no region");
    this.#views.push([rank, length, () => region.close()]);
    return region.bytes.subarray(8, 8 + length);
  }

  #commOf(comm: number, rank: number): Comm {
    return this.#comms[comm]?.[rank] as Comm;
  }

  #queuesOf(comm: number, rank: number): Queues {
    return this.#queues[comm]?.[rank] as Queues;
  }

  #send(given: {
    comm: number;
    rank: number;
    to: number;
    tag: number;
    bytes: number;
    place: string;
    isSynchronous: boolean;
  }): void {
    const { comm, rank, to, tag, isSynchronous } = given;
    const view = this.#view(rank, given.bytes, given.place);
    const seed = ++this.#filled;
    for (let i = 0; i < view.length; i++) view[i] = (i * 7 + seed * 13 + (i >>> 8)) & 255;
    const own = this.#commOf(comm, rank);
    const request = isSynchronous ? own.issend(view, to, tag) : own.isend(view, to, tag);
    const message: Message = { from: rank, tag, content: view.slice(), request };
    this.#sends.push(message);
    const { posted, stored } = this.#queuesOf(comm, to);
    const at = posted.findIndex((receive) => fits(receive, message));
    if (at < 0) stored.push(message);
    else (posted.splice(at, 1)[0] as Receive).message = message;
  }

  #receive(given: { comm: number; rank: number; source: number; tag: number; bytes: number; place: string }): void {
    const { comm, rank, source, tag } = given;
    const view = this.#view(rank, given.bytes, given.place);
    const request = this.#commOf(comm, rank).irecv(view, source, tag);
    const receive: Receive = { source, tag, view, request, isCanceled: false };
    this.#receives.push(receive);
    const { posted, stored } = this.#queuesOf(comm, rank);
    const at = stored.findIndex((message) => fits(receive, message));
    if (at < 0) posted.push(receive);
    else receive.message = stored.splice(at, 1)[0] as Message;
  }

  #probe({ comm, rank, source, tag }: { comm: number; rank: number; source: number; tag: number }): void {
    const found = this.#commOf(comm, rank).iprobe(source, tag);
    const message = this.#queuesOf(comm, rank).stored.find((one) => fits({ source, tag }, one));
    const expected = message && [message.from, message.tag, message.content.length, false];
    expect(found && told(found)).toEqual(expected);
  }

  #cancel({ which }: { which: number }): void {
    const receive = this.#receives[which % Math.max(1, this.#receives.length)];
    if (receive === undefined || receive.isCanceled) return;
    receive.request.cancel();
    if (receive.message !== undefined) return;
    receive.isCanceled = true;
    for (const { posted } of this.#queues.flat()) {
      const at = posted.indexOf(receive);
      if (at >= 0) posted.splice(at, 1);
    }
  }

  /** All that is under way arrives. */
  async #carry(): Promise<void> {
    for (let quiet = 0; quiet < 4; ) {
      let events = 0;
      for (const { context } of this.#members.members) events += context.advance();
      await this.#members.turn();
      quiet = events > 0 ? 0 : quiet + 1;
    }
  }

  #check(): void {
    for (const { request, view, message, isCanceled } of this.#receives) {
      if (message === undefined && !isCanceled) {
        expect(request.test()).toBeUndefined();
        continue;
      }
      let status: CommStatus | undefined;
      let error: { code?: string } | undefined;
      try {
        status = request.test();
      } catch (thrown) {
        error = thrown as { code?: string };
      }
      if (message === undefined) {
        expect(status?.isCanceled).toBe(true);
        continue;
      }
      const { from, tag, content } = message;
      const length = Math.min(content.length, view.length);
      if (content.length > view.length) expect(error?.code).toBe("PAMIR_TOO_LARGE");
      else expect(status && told(status)).toEqual([from, tag, content.length, false]);
      expect(Buffer.compare(view.subarray(0, length), content.subarray(0, length))).toBe(0);
    }
  }

  /** Receives what is left, takes back what waits, and sees that each send is over. */
  async #end(): Promise<void> {
    for (const [comm, all] of this.#queues.entries()) {
      for (const [rank, { posted, stored }] of all.entries()) {
        for (const { request } of posted) request.cancel();
        while (stored.length > 0)
          this.#receive({ comm, rank, source: ANY_SOURCE, tag: ANY_TAG, bytes: 70_000, place: "heap" });
        for (const receive of posted.splice(0)) receive.isCanceled = true;
      }
    }
    await this.#carry();
    this.#check();
    for (const { request } of this.#sends) expect(request.test()).toBeDefined();
    for (const [, , close] of this.#views) close();
    await this.#carry();
  }
}

describe.each([
  [
    "one memory",
    () => nodesOf(RANKS, { tasksPerNode: RANKS, limits: { ...limitsOf(RANKS), regions: 4096, heapBytes: 2 ** 27 } }),
  ],
  [
    "two nodes",
    () => nodesOf(RANKS, { tasksPerNode: 2, limits: { ...limitsOf(RANKS), regions: 4096, heapBytes: 2 ** 27 } }),
  ],
  ["ports", () => tasksOf(portsJob({ ...limitsOf(RANKS), regions: 4096, heapBytes: 2 ** 26 }, ["wasm", "ts"]))],
] as const)("MPI in %s", (_, make) => {
  let members: Members;
  let all: readonly Mpi[];
  let comms: readonly (readonly Comm[])[];

  const values = <T>(ends: readonly PromiseSettledResult<T>[]): T[] =>
    ends.map((end) => {
      if (end.status === "rejected") throw end.reason;
      return end.value;
    });

  beforeAll(async () => {
    members = make();
    all = values(
      await settled(
        members,
        members.members.map(({ client, context }) => init(client, { context })),
      ),
    );
    const worlds = all.map(({ world }) => world);
    const copies = await settled(
      members,
      worlds.map((world) => world.dup()),
    );
    comms = [worlds, values(copies)];
  });
  afterAll(async () => {
    values(
      await settled(
        members,
        all.map((mpi) => mpi.finalize()),
      ),
    );
    await members.close();
  });

  it("each receive and each probe gets the message that the model says", async () => {
    const property = fc.asyncProperty(fc.array(command, { maxLength: 60 }), (commands) =>
      new Program(members, comms).run(commands),
    );
    const details = await fc.check(property, { seed: SEED, numRuns: scaled(60), endOnFailure: true });
    if (details.failed)
      throw new Error(`${replayNote()}\n${fc.defaultReportMessage(details)}`, { cause: details.errorInstance });
  });
});
