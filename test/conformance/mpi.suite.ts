// MPI for TypeScript, over whatever carries the messages. All ranks are on this thread, so nothing here blocks.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { UserOperation } from "../../src/index.js";
import {
  ANY_SOURCE,
  ANY_TAG,
  type Comm,
  type CommStatus,
  IN_PLACE,
  init,
  type Mpi,
  PROC_NULL,
  testall,
  waitall,
  waitany,
} from "../../src/mpi/index.js";
import { type Members, settled } from "../support/collective-rig.js";

export interface MpiSuite {
  readonly name: string;
  /** Number of ranks, from 2. */
  readonly size: number;
  /** Whether a megabyte of messages finds no room. */
  readonly fills?: boolean;
  readonly members: () => Promise<Members>;
}

/** Around the limits of what goes with its message, to tasks of the same memory and of others. */
const LENGTHS = [0, 1, 7, 1000, 16_384, 16_385, 65_536, 65_537, 300_000];

const pattern = (length: number, seed: number): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => (i * 31 + seed * 7 + (i >>> 8)) & 255);

export function mpiSuite({ name, size, fills, members: make }: MpiSuite): void {
  describe(`MPI, ${name}, ${size} ranks`, () => {
    let members: Members;
    let all: Mpi[];

    /** Runs a program as all ranks. @returns what each has returned */
    async function ranks<T>(program: (world: Comm, mpi: Mpi, rank: number) => Promise<T>): Promise<T[]> {
      const ends = await settled(
        members,
        all.map((mpi, rank) => program(mpi.world, mpi, rank)),
      );
      return ends.map((end) => {
        if (end.status === "rejected") throw end.reason;
        return end.value;
      });
    }

    beforeAll(async () => {
      members = await make();
      const made = await settled(
        members,
        members.members.map(({ client, context }) => init(client, { context })),
      );
      all = made.map((one) => (one as PromiseFulfilledResult<Mpi>).value);
    });
    afterAll(async () => {
      const ends = await settled(
        members,
        all.map((mpi) => mpi.finalize()),
      );
      await members.close();
      expect(ends.map(({ status }) => status)).toEqual(all.map(() => "fulfilled"));
    });

    it.each(LENGTHS)("%i bytes go round, in views of any memory", async (length) => {
      await ranks(async (world, _, rank) => {
        const right = (rank + 1) % size;
        const left = (rank + size - 1) % size;
        const { client } = members.members[rank] as Members["members"][number];
        using region = client.createRegion(2 * length + 16);
        const inRegion = region.bytes.subarray(8, 8 + length);
        inRegion.set(pattern(length, rank));
        for (const [sent, received] of [
          [pattern(length, rank), new Uint8Array(length + 3)],
          [inRegion, new Uint8Array(length)],
          [pattern(length, rank), region.bytes.subarray(length + 9, 2 * length + 9)],
        ] as const) {
          for (const form of ["isend", "issend"] as const) {
            received.fill(0);
            const request = world[form](sent, right, 3);
            const status = await world.recv(received, left, 3);
            expect([status.source, status.tag, status.bytes, status.isCanceled]).toEqual([left, 3, length, false]);
            await request.wait();
            expect(Buffer.compare(received.subarray(0, length), pattern(length, left))).toBe(0);
            expect(received.subarray(length).every((byte) => byte === 0)).toBe(true);
          }
        }
        await world.barrier();
      });
    });

    it("a status counts elements, and views of any class carry them", async () => {
      await ranks(async (world, _, rank) => {
        const to = (rank + 1) % size;
        for (const view of [Float64Array.of(1.5, -2), Int16Array.of(1, -2, 3), BigInt64Array.of(-5n)]) {
          const received = new (view.constructor as Float64ArrayConstructor)(view.length);
          const status = await world.sendrecv({ view, to }, { view: received });
          expect([...received]).toEqual([...view]);
          expect(status.getCount(view.constructor as Float64ArrayConstructor)).toBe(view.length);
          expect(status.getCount({ BYTES_PER_ELEMENT: 5 })).toBeUndefined();
        }
        const word = new DataView(new ArrayBuffer(4));
        word.setInt32(0, 77);
        const there = new DataView(new ArrayBuffer(4));
        await world.sendrecv({ view: word, to, tag: 1 }, { view: there, tag: 1 });
        expect(there.getInt32(0)).toBe(77);
      });
    });

    it("messages of a rank are received in order, and wildcards take any", async () => {
      await ranks(async (world, _, rank) => {
        const count = 20;
        for (let i = 0; i < count; i++) await world.send(Int32Array.of(rank, i), 0, i % 3);
        if (rank !== 0) return;
        const next = Array.from({ length: size }, () => [0, 1, 2]);
        // Those with tag 2 first, then all others as they come.
        for (const tag of [2, ANY_TAG]) {
          const messages = tag === 2 ? Math.floor(count / 3) : count - Math.floor(count / 3);
          for (let i = 0; i < size * messages; i++) {
            const view = new Int32Array(2);
            const status = await world.recv(view, ANY_SOURCE, tag);
            const [source, number] = view as unknown as [number, number];
            expect(status.source).toBe(source);
            expect(status.tag).toBe(number % 3);
            const expected = next[source] as number[];
            expect(number).toBe(expected[number % 3]);
            expected[number % 3] = number + 3;
          }
        }
      });
      await ranks((world) => world.barrier());
    });

    it("probes tell of the message that a receive gets", async () => {
      await ranks(async (world, _, rank) => {
        const [to, from] = [(rank + 1) % size, (rank + size - 1) % size];
        expect(world.iprobe(from, 9)).toBeUndefined();
        await world.barrier();
        const sent = [world.isend(new Uint8Array(100_000), to, 9), world.isend(Int32Array.of(rank), to, 8)];
        const long = await world.probe(from, 9);
        expect([long.source, long.tag, long.bytes]).toEqual([from, 9, 100_000]);
        const short = await world.probe(ANY_SOURCE, 8);
        expect([short.source, short.tag, short.bytes]).toEqual([from, 8, 4]);
        expect(world.iprobe(from, 9)?.bytes).toBe(100_000);
        const received = [
          world.irecv(new Uint8Array(long.bytes), from, 9),
          world.irecv(new Int32Array(1), short.source, short.tag),
        ];
        await waitall([...received, ...sent]);
        await expect(world.probe(from, 9, { timeout: 5 })).rejects.toMatchObject({
          code: "PAMIR_TIMEDOUT",
          message: `probe() of rank ${rank}: was not over in time`,
        });
        await world.barrier();
      });
    });

    it("ssend is over only once the message is being received", async () => {
      await ranks(async (world, _, rank) => {
        if (rank === 0) {
          const request = world.issend(new Uint8Array(3), 1, 1);
          await world.send(new Uint8Array(1), 1, 2);
          await world.recv(new Uint8Array(1), 1, 3);
          expect(request.test()).toBeUndefined();
          await world.send(new Uint8Array(1), 1, 4);
          await request.wait();
        }
        if (rank === 1) {
          await world.recv(new Uint8Array(1), 0, 2);
          await world.send(new Uint8Array(1), 0, 3);
          await world.recv(new Uint8Array(1), 0, 4);
          await world.recv(new Uint8Array(3), 0, 1);
        }
      });
    });

    it.each([50, 20_000, 100_000])("a message of %i bytes that is longer than its view", async (bytes) => {
      await ranks(async (world, _, rank) => {
        const view = new Uint8Array(bytes - 1);
        const request = world.isend(pattern(bytes, rank), (rank + 1) % size, 6);
        const from = (rank + size - 1) % size;
        await expect(world.recv(view, from, 6)).rejects.toMatchObject({
          code: "PAMIR_TOO_LARGE",
          message: `recv() of rank ${rank}: the message from rank ${from} with tag 6 has ${bytes} bytes, the view ${bytes - 1}`,
        });
        expect(Buffer.compare(view, pattern(bytes, from).subarray(0, bytes - 1))).toBe(0);
        await request.wait();
        await world.barrier();
      });
    });

    it("nothing goes to or comes from PROC_NULL", async () => {
      await ranks(async (world) => {
        await world.send(new Uint8Array(1), PROC_NULL);
        const tell = ({ source, tag, bytes }: CommStatus) => [source, tag, bytes];
        expect(tell(await world.recv(new Uint8Array(1), PROC_NULL, 1))).toEqual([PROC_NULL, ANY_TAG, 0]);
        expect(tell(await world.probe(PROC_NULL))).toEqual([PROC_NULL, ANY_TAG, 0]);
        expect(world.iprobe(PROC_NULL)).toBeDefined();
      });
    });

    it("sends without room wait, in order, and do not block", async () => {
      await ranks(async (world, _, rank) => {
        const count = 600;
        // A short one that finds room must not overtake a long one.
        const lengthOf = (i: number): number => (i % 2 === 0 ? 5000 : 10);
        if (rank === 1) {
          const requests = Array.from({ length: count }, (_, i) => world.isend(pattern(lengthOf(i), i), 0, i));
          if (fills) expect(requests.some((request) => request.test() === undefined)).toBe(true);
          await waitall(requests);
        }
        if (rank !== 0) return;
        for (let i = 0; i < count; i++) {
          const view = new Uint8Array(5000);
          const { tag, bytes } = await world.recv(view, 1);
          expect([tag, bytes]).toEqual([i, lengthOf(i)]);
          expect(Buffer.compare(view.subarray(0, bytes), pattern(bytes, i))).toBe(0);
        }
      });
    });

    it("a blocking operation that is a promise makes progress on sends that nothing awaits", async () => {
      await ranks(async (world, _, rank) => {
        if (rank === 1) for (let i = 0; i < 200; i++) world.isend(pattern(5000, i), 0, 5);
        if (rank === 0) for (let i = 0; i < 200; i++) await world.recv(new Uint8Array(5000), 1, 5);
        await world.barrier();
      });
    });

    it("requests: waitany gives each once, testall all at once, cancel takes a receive back", async () => {
      await ranks(async (world, _, rank) => {
        if (rank === 1) {
          for (const tag of [2, 0, 1]) await world.send(Int32Array.of(tag), 0, tag);
          await world.recv(new Uint8Array(0), 0, 9);
        }
        if (rank !== 0) return;
        const views = [0, 1, 2].map(() => new Int32Array(1));
        const requests = views.map((view, tag) => world.irecv(view, 1, tag));
        const found = new Set<number>();
        for (let i = 0; i < 3; i++) {
          const [index, status] = (await waitany(requests)) as readonly [number, CommStatus];
          expect(status.tag).toBe(index);
          expect(views[index]?.[0]).toBe(index);
          found.add(index);
        }
        expect(found.size).toBe(3);
        expect(await waitany(requests)).toBeUndefined();
        expect(testall(requests)?.map(({ tag }) => tag)).toEqual([0, 1, 2]);
        const unmet = world.irecv(new Int32Array(1), 1, 7);
        expect(testall([...requests, unmet])).toBeUndefined();
        unmet.cancel();
        expect((await unmet.wait()).isCanceled).toBe(true);
        await world.send(new Uint8Array(0), 1, 9);
      });
    });

    it("a receive that is given up leaves its message to the next one", async () => {
      await ranks(async (world, _, rank) => {
        if (rank === 0) {
          const stop = new AbortController();
          const view = new Int32Array(1);
          const given = world.recv(view, 1, 4, { signal: stop.signal });
          stop.abort(new Error("enough"));
          await expect(given).rejects.toMatchObject({ code: "PAMIR_CANCELED" });
          await expect(world.recv(view, 1, 4, { timeout: 5 })).rejects.toMatchObject({ code: "PAMIR_TIMEDOUT" });
          await world.send(view, 1, 4);
          await world.recv(view, 1, 4);
          expect(view[0]).toBe(44);
        }
        if (rank === 1) {
          await world.recv(new Int32Array(1), 0, 4);
          await world.send(Int32Array.of(44), 0, 4);
        }
      });
    });

    it("calls that would block are refused where the thread carries the messages, and nothing of them is left", async () => {
      await ranks(async (world, mpi, rank) => {
        const view = new Int32Array(1);
        const to = (rank + 1) % size;
        for (const call of [
          () => world.recvSync(view),
          () => world.sendSync(view, to),
          () => world.ssendSync(view, to),
          () => world.sendrecvSync({ view, to }, { view }),
          () => world.probeSync(),
          () => world.barrierSync(),
          () => world.dupSync(),
          () => mpi.finalizeSync(),
        ]) {
          expect(call).toThrow(expect.objectContaining({ code: "PAMIR_NOT_ISOLATED" }));
        }
        await world.sendrecv({ view: Int32Array.of(rank), to, tag: 2 }, { view });
        expect(view[0]).toBe((rank + size - 1) % size);
        await world.barrier();
        expect(world.iprobe()).toBeUndefined();
      });
    });

    it("communicators keep their messages apart", async () => {
      await ranks(async (world, mpi, rank) => {
        const [one, other] = await Promise.all([world.dup(), world.dup()]);
        const to = (rank + 1) % size;
        const sent = [one.isend(Int32Array.of(1), to, 5), other.isend(Int32Array.of(2), to, 5)];
        const views = [new Int32Array(1), new Int32Array(1), new Int32Array(1)];
        await other.recv(views[1] as Int32Array, ANY_SOURCE, 5);
        await one.recv(views[0] as Int32Array, ANY_SOURCE, 5);
        await waitall(sent);
        expect(views.map(([value]) => value)).toEqual([1, 2, 0]);
        one.free();
        expect(() => one.isend(Int32Array.of(1), to)).toThrow(/isend\(\) of a communicator that was freed/);
        expect(() => world.free()).toThrow(/world and self stay/);

        const half = (await other.split(rank % 2, -rank)) as Comm;
        expect(half.size).toBe(Math.ceil((size - (rank % 2)) / 2));
        const ofHalf = new Int32Array(half.size);
        await half.allgather(Int32Array.of(rank), ofHalf);
        expect([...ofHalf]).toEqual([...ofHalf].sort((a, b) => b - a));
        expect(await world.split(rank === 0 ? 3 : undefined)).toEqual(rank === 0 ? expect.anything() : undefined);

        const sum = Int32Array.of(5);
        await mpi.self.allreduce(IN_PLACE, sum);
        await mpi.self.barrier();
        expect(sum[0]).toBe(5);
        const own = await mpi.self.sendrecv({ view: sum, to: 0 }, { view: new Int32Array(1) });
        expect(own.source).toBe(0);
      });
    });

    it("groups make communicators", async () => {
      await ranks(async (world, _, rank) => {
        const { group } = world;
        const last = group.incl([size - 1, 0]);
        expect([last.size, last.rank]).toEqual([2, rank === 0 ? 1 : rank === size - 1 ? 0 : undefined]);
        expect(group.excl([0]).size).toBe(size - 1);
        expect(
          group
            .excl([0])
            .union(last)
            .translateRanks([size - 1], group),
        ).toEqual([0]);
        expect(group.intersection(last).translateRanks([0, 1], last)).toEqual([1, 0]);
        expect(group.difference(last).size).toBe(size - 2);
        expect(() => group.incl([size])).toThrow(`incl(): rank ${size} is none of 0 to ${size - 1}`);
        expect(() => group.incl([0, 0])).toThrow("rank 0 is there twice");
        const pair = await world.create(last);
        expect(pair?.rank).toBe(last.rank);
        if (pair === undefined) return;
        const gathered = new Int32Array(2);
        await pair.allgather(Int32Array.of(rank), gathered);
        expect([...gathered]).toEqual([size - 1, 0]);
      });
    });

    it("collective operations", async () => {
      const numbers = Array.from({ length: size }, (_, rank) => rank);
      const total = numbers.reduce((sum, rank) => sum + rank, 0);
      await ranks(async (world, _, rank) => {
        const root = size - 1;
        const isRoot = rank === root;
        const own = Float64Array.of(rank, 1);
        const view = isRoot ? Int32Array.of(4, 5) : new Int32Array(2);
        await world.bcast(view, root);
        expect([...view]).toEqual([4, 5]);

        const sum = new Float64Array(2);
        await world.reduce(own, isRoot ? sum : null, "sum", root);
        expect([...sum]).toEqual(isRoot ? [total, size] : [0, 0]);
        await world.reduce(isRoot ? IN_PLACE : own, isRoot ? sum : null, "max", root);
        if (isRoot) expect([...sum]).toEqual([total, size]);
        await world.allreduce(own, sum);
        expect([...sum]).toEqual([total, size]);
        // Each element is a number and how many digits it has: what is lower stands to the left.
        const appended: UserOperation<Float64Array> = {
          elementBytes: 16,
          combine: (left, right, out) => {
            const [a, aDigits, b, bDigits] = [...left, ...right] as [number, number, number, number];
            out.set([a * 10 ** bDigits + b, aDigits + bDigits]);
          },
        };
        const digits = new Float64Array(2);
        await world.allreduce(Float64Array.of(rank, 1), digits, appended as UserOperation);
        expect([...digits]).toEqual([Number(numbers.join("")), size]);

        const before = new Int32Array(1);
        await world.scan(Int32Array.of(rank), before);
        expect(before[0]).toBe((rank * (rank + 1)) / 2);
        await world.exscan(Int32Array.of(rank), before);
        if (rank > 0) expect(before[0]).toBe((rank * (rank - 1)) / 2);

        const block = new Int32Array(1);
        await world.reduceScatterBlock(Int32Array.from(numbers), block);
        expect(block[0]).toBe(rank * size);
        const counts = numbers.map((one) => (one === 0 ? 2 : 1));
        const part = new Int32Array(counts[rank] as number);
        await world.reduceScatter(new Int32Array(size + 1).fill(2), part, counts);
        expect([...part]).toEqual([...part].fill(2 * size));

        const gathered = new Int32Array(size);
        await world.gather(Int32Array.of(rank), isRoot ? gathered : null, root);
        expect([...gathered]).toEqual(isRoot ? numbers : numbers.map(() => 0));
        await world.allgather(Int32Array.of(rank), gathered);
        expect([...gathered]).toEqual(numbers);
        gathered[rank] = rank * 2;
        await world.allgather(IN_PLACE, gathered);
        expect([...gathered]).toEqual(numbers.map((one) => 2 * one));
        await world.scatter(isRoot ? Int32Array.from(numbers) : null, isRoot ? IN_PLACE : block, root);
        if (!isRoot) expect(block[0]).toBe(rank);
        const turned = new Int32Array(size);
        await world.alltoall(
          Int32Array.from(numbers, (to) => 100 * rank + to),
          turned,
        );
        expect([...turned]).toEqual(numbers.map((from) => 100 * from + rank));

        const triangle = numbers.flatMap((one) => new Array<number>(one).fill(one));
        const rows = new Int32Array(triangle.length);
        const blocks = { view: rows, counts: numbers };
        await world.allgatherv(new Int32Array(rank).fill(rank), blocks);
        expect([...rows]).toEqual(triangle);
        rows.fill(0);
        await world.gatherv(new Int32Array(rank).fill(rank), isRoot ? blocks : null, root);
        expect([...rows]).toEqual(isRoot ? triangle : triangle.map(() => 0));
        const mine = new Int32Array(rank);
        await world.scatterv(isRoot ? blocks : null, mine, root);
        expect([...mine]).toEqual(new Array(rank).fill(rank));
        // Rank a sends b elements to rank b, with gaps of one between them.
        const displacements = numbers.map((to) => (to * (to - 1)) / 2 + to);
        const sent = new Int32Array(triangle.length + size);
        for (const to of numbers) sent.fill(10 * rank + to, displacements[to], (displacements[to] as number) + to);
        const got = new Int32Array(rank * size);
        await world.alltoallv(
          { view: sent, counts: numbers, displacements },
          { view: got, counts: numbers.map(() => rank) },
        );
        expect([...got]).toEqual(numbers.flatMap((from) => new Array<number>(rank).fill(10 * from + rank)));
      });
    });

    it("wrong arguments are refused, and name the value and the limit", async () => {
      await ranks(async (world, _, rank) => {
        if (rank !== 0) return;
        const view = new Uint8Array(1);
        for (const [call, text] of [
          [() => world.isend(view, size), `isend(): rank ${size} is none of 0 to ${size - 1}`],
          [() => world.isend(view, ANY_SOURCE), `isend(): rank -1 is none of 0 to ${size - 1}`],
          [() => world.irecv(view, 0.5), `irecv(): rank 0.5 is none of 0 to ${size - 1}`],
          [() => world.issend(view, 0, ANY_TAG), "issend(): the tag is -2, not one of 0 to 2147483647"],
          [() => world.irecv(view, 0, 2 ** 31), "irecv(): the tag is 2147483648, not one of 0 to 2147483647"],
          [() => world.isend([1] as never, 0), "the view of isend() is 1, not a typed array or DataView"],
          [() => world.splitSync(-1), "splitSync(): the color is -1, not one of 0 to 2147483647"],
          [() => world.splitSync(1, 0.5), "splitSync(): the key is 0.5, not a 32-bit integer"],
        ] as const) {
          expect(call).toThrow(expect.objectContaining({ code: "PAMIR_INVAL", message: text }));
        }
        await expect(world.recv(view, -7)).rejects.toMatchObject({ code: "PAMIR_INVAL" });
        await expect(world.split(1.5)).rejects.toMatchObject({ code: "PAMIR_INVAL" });
        const { context, client } = members.members[0] as Members["members"][number];
        await expect(init(client, { context })).rejects.toMatchObject({ code: "PAMIR_DISPATCH_TAKEN" });
        await expect(init(undefined as never)).rejects.toMatchObject({ code: "PAMIR_INVAL" });
      });
    });
  });
}
