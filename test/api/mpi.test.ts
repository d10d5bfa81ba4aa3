// pamir/mpi on real threads and in processes: ranks that block beside one that does not, ranks in C, waits that sleep, and ends.
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { type Comm, IN_PLACE, init, waitall } from "pamir/mpi";
import { describe, expect, it } from "vitest";
import { run } from "../support/run-command.js";
import { LINKED_VARIANTS, refusalOf, type Variant, withJob } from "./support.js";
import { exchange, pattern } from "./tasks/mpi-exchange.js";

const HEAP = { heapBytes: 64 * 1024 ** 2 };
/** A program in C runs with the kernels in wasm. */
const WITH_C = LINKED_VARIANTS.filter(({ kernels, isMixed }) => kernels.every((name) => name === "wasm") && !isMixed);
const IN_PROCESSES: readonly Variant[] =
  process.platform === "linux" ? [{ name: "wasm, processes", kernels: ["wasm"], processes: "each" }] : [];

describe.each(LINKED_VARIANTS)("$name", (variant) => {
  it("ranks that block and one that does not exchange messages of all lengths", () =>
    withJob(variant, { module: "mpi.js", scenario: "exchange", tasks: 3, ...HEAP }, async ({ client, context }) => {
      const mpi = await init(client, { context });
      await exchange(mpi.world, false);
      await mpi.finalize();
      expect(() => mpi.world.iprobe()).toThrow(expect.objectContaining({ code: "PAMIR_CLOSED" }));
    }));

  it("a receive that is a promise leaves the event loop free, and is woken", () =>
    withJob(variant, { module: "mpi.js", scenario: "sleeper", ...HEAP }, async ({ client, context }) => {
      const mpi = await init(client, { context });
      let turns = 0;
      const timer = setInterval(() => turns++, 5);
      const before = performance.eventLoopUtilization();
      const view = new Int32Array(1);
      await mpi.world.recv(view, 1, 3);
      const { utilization } = performance.eventLoopUtilization(before);
      clearInterval(timer);
      expect(view[0]).toBe(7);
      expect(turns).toBeGreaterThan(5);
      // A loop that polls is always active.
      expect(utilization).toBeLessThan(0.7);
      await mpi.finalize();
    }));

  it("a rank that has ended is told to all that wait for it", () =>
    withJob(
      variant,
      { module: "mpi.js", scenario: "mortal", onError: "ignore", ...HEAP },
      async ({ client, context }) => {
        const { world } = await init(client, { context });
        const waits = [
          () => world.recv(new Uint8Array(1), 1, 5),
          () => world.probe(1, 5),
          () => world.ssend(new Uint8Array(1), 1),
          () => world.send(new Uint8Array(300_000), 1),
          async () => world.recvSync(new Uint8Array(1), 1, 5),
        ];
        const begun = waits.slice(0, 4).map((wait) => refusalOf(wait));
        await world.send(new Uint8Array(0), 1, 1);
        for (const error of await Promise.all(begun)) expect(error).toMatchObject({ code: "PAMIR_SHUTDOWN" });
        for (const wait of waits) expect(await refusalOf(wait)).toMatchObject({ code: "PAMIR_SHUTDOWN" });
        const lost = await refusalOf(() => world.recv(new Uint8Array(300_000)));
        expect(lost).toMatchObject({ code: "PAMIR_SHUTDOWN", message: "recv(): rank 1 has ended" });
      },
    ));

  it("payloads for which a context has no room are fetched later", () => {
    const args = { count: 1000 };
    // No operation may wait beside the slots of the FIFO.
    const context = { pendingBytes: 0 };
    return withJob(
      variant,
      { module: "mpi.js", scenario: "crowd", args, context, ...HEAP },
      async ({ client, context }) => {
        const mpi = await init(client, { context });
        await mpi.world.probe(1, 3);
        const views = Array.from({ length: args.count }, () => new Int32Array(1));
        await waitall(views.map((view) => mpi.world.irecv(view, 1, 2)));
        expect(views.map(([at]) => at)).toEqual(Array.from(views.keys()));
        await mpi.world.recv(new Uint8Array(0), 1, 3);
        await mpi.finalize();
      },
    );
  });
});

/** This rank's side of collectives() in partner.c. @returns what it has got */
async function collectives(comm: Comm): Promise<void> {
  const { size, rank } = comm;
  const ranks = Array.from({ length: size }, (_, one) => one);
  const total = ranks.reduce((sum, one) => sum + one, 0);
  await comm.barrier();
  comm.bcastSync(Int32Array.of(42, 3));
  const sum = new Float64Array(1);
  await comm.allreduce(Float64Array.of(rank + 1.5), sum);
  expect(sum[0]).toBe(total + 1.5 * size);
  const most = Int32Array.of(rank);
  comm.reduceSync(IN_PLACE, most, "max");
  expect(most[0]).toBe(size - 1);
  const all = new Int32Array(size);
  await comm.gather(Int32Array.of(rank), all);
  expect([...all]).toEqual(ranks);
  const part = new Int32Array(1);
  await comm.scatter(
    Int32Array.from(ranks, (one) => one + 5),
    part,
  );
  comm.allgatherSync(part, all);
  expect([...all]).toEqual(ranks.map((one) => one + 5));
  const turned = new Int32Array(size);
  await comm.alltoall(
    all.map((one) => one * 100 + rank),
    turned,
  );
  expect([...turned]).toEqual(ranks.map((one) => 500 + one));
  await comm.scan(Int32Array.of(rank), part);
  expect(part[0]).toBe(0);
  comm.exscanSync(Int32Array.of(rank), part);
  await comm.reduceScatterBlock(
    all.map((one) => one * 100 + rank),
    part,
    "min",
  );
  expect(part[0]).toBe(500);
  const triangle = ranks.flatMap((one) => new Array<number>(one).fill(one));
  const rows = { view: new Int32Array(triangle.length), counts: ranks };
  await comm.allgatherv(new Int32Array(0), rows);
  expect([...rows.view]).toEqual(triangle);
  rows.view.fill(0);
  comm.gathervSync(new Int32Array(0), rows);
  expect([...rows.view]).toEqual(triangle);
  await comm.scatterv(rows, new Int32Array(0));
  await comm.allreduce(IN_PLACE, sum, "product");
  expect(sum[0]).toBe((total + 1.5 * size) ** size);
  // Those in C do most of these without JavaScript. The order of the sum is that of geometries: neighbors first.
  for (let i = 0; i < 300; i++) {
    comm.allreduceSync(Float64Array.of((rank + i) * 0.1), sum);
    const own = ranks.map((one) => (one + i) * 0.1);
    const pairs = size === 2 ? own : [(own[0] as number) + (own[1] as number), (own[2] as number) + (own[3] as number)];
    expect(sum[0]).toBe((pairs[0] as number) + (pairs[1] as number));
    if (i % 2 === 0) comm.allreduceSync(IN_PLACE, sum, "max");
    else await comm.allreduce(IN_PLACE, sum, "max");
    comm.barrierSync();
  }
}

/** Those of which a rank in C and one in JavaScript share a memory. */
const SHARED = [...WITH_C, ...IN_PROCESSES].filter(({ isLinked }) => isLinked !== true);

it.each(SHARED.map((variant) => [variant.name, variant] as const))(
  "barriers and reductions of few bytes need JavaScript once: %s",
  (_, variant) =>
    withJob(
      variant,
      { module: "mpi.js", scenario: "short", tasks: 2, heapBytes: 256 * 1024 ** 2 },
      async ({ job, client, context, flags }) => {
        const times = 60;
        const mpi = await init(client, { context });
        const own = Int32Array.of(0);
        for (let i = times; i > 0; i--) {
          mpi.world.barrierSync();
          own[0] = 0;
          mpi.world.allreduceSync(IN_PLACE, own, "max");
          expect(own[0]).toBe(i);
        }
        await mpi.finalize();
        expect((await job.exited).filter(({ code }) => code !== 0)).toEqual([]);
        // The first ones, the barrier of MPI_Finalize(), and those for which this rank has come late.
        expect(Atomics.load(flags, 1)).toBeGreaterThan(1);
        expect(Atomics.load(flags, 2)).toBeGreaterThan(0);
        expect(Atomics.load(flags, 1)).toBeLessThan(times / 2);
        expect(Atomics.load(flags, 2)).toBeLessThan(times / 2);
      },
    ),
);

describe.each([...WITH_C, ...IN_PROCESSES])("ranks in C: $name", (variant) => {
  it.each([2, 4])("one of %i ranks is in JavaScript", (tasks) =>
    withJob(
      variant,
      {
        module: "mpi.js",
        scenario: "c",
        tasks,
        debug: tasks === 2 && variant.processes === undefined,
        heapBytes: 256 * 1024 ** 2,
      },
      async ({ job, client, context, flags }) => {
        const mpi = await init(client, { context });
        const { world } = mpi;
        for (let to = 1; to < tasks; to++) {
          for (const [place, length] of [0, 1, 100, 2048, 2049, 8193, 50_000].entries()) {
            const sent = new Float64Array(pattern(8 * length, 3).fill(1)).subarray(0, length);
            const received = new Float64Array(length);
            const tag = 1 + (place % 2);
            if (place % 3 === 0) {
              world.sendSync(sent, to, tag);
              expect(world.recvSync(received, to).tag).toBe(10 + tag);
            } else {
              const [, status] = await waitall([world.issend(sent, to, tag), world.irecv(received)]);
              expect([status?.source, status?.tag, status?.bytes]).toEqual([to, 10 + tag, 8 * length]);
            }
            expect(received).toEqual(sent.map((number) => 2 * number));
          }
          await world.send(new Float64Array(0), to, 9);
          for (const k of [1, 0]) {
            const every = new Float64Array(2560);
            await world.recv(every, to, 20 + k);
            expect(every).toEqual(Float64Array.from(every, (_, i) => 10_000 * k + 2 * i));
          }
        }
        await collectives(world);
        const copy = await world.dup();
        // In C, the keys are -rank: so rank 1 of the world comes first.
        const half = (await copy.split(1, 0)) as Comm;
        expect([half.rank, half.size]).toEqual([1, 2]);
        const got = new Int32Array(1);
        const status = await half.sendrecv({ view: Int32Array.of(77), to: 0, tag: 3 }, { view: got, from: 0, tag: 3 });
        expect([status.source, got[0]]).toEqual([0, 1]);
        await collectives(copy);
        half.free();
        copy.free();
        await mpi.finalize();
        const ends = await job.exited;
        expect(ends.filter(({ code }) => code !== 0)).toEqual([]);
        expect(Atomics.load(flags, 1)).toBe(2 * (tasks - 1) + 1);
      },
    ),
  );
});

describe("abort()", () => {
  const task = fileURLToPath(new URL("./tasks/mpi-abort.js", import.meta.url));
  it.each([
    [[], 7],
    [["--processes", "2"], 7],
  ] as const)("ends the job with its code: %j", (how, code) => {
    if (how.length > 0 && process.platform !== "linux") return;
    const { status, stdout, stderr } = run("-n", "2", "--no-labels", ...how, task, String(code));
    expect(stderr).toContain(`task 1 exited with code ${code}`);
    expect({ status, stdout }).toEqual({ status: code, stdout: "" });
  });

  it("refuses a code that is none, and goes on", () => {
    const { status, stdout, stderr } = run("-n", "2", "--no-labels", task, "0");
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: "PAMIR_INVAL: abort(): the code is 0, not one of 1 to 255\n",
      stderr: "",
    });
  });
});
