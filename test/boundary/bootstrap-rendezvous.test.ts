// The rendezvous on loopback: processes that are late, missing, of another job or without the key; other programs at its port.
import { createServer as createHttpServer } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Bootstrap, PmiBootstrap } from "../../src/bootstrap/bootstrap.js";
import { openRendezvous, type RendezvousOptions } from "../../src/bootstrap/rendezvous/rendezvous.js";
import { tcpPlace } from "../../src/bootstrap/rendezvous/rendezvous-place.js";
import { HANDSHAKE_BYTES } from "../../src/bootstrap/rendezvous/sealed-lines.js";
import type { BootstrapWait } from "../../src/bootstrap/waits.js";
import type { PamiError } from "../../src/core/error.js";
import { freePort } from "../support/free-port.js";

const KEY = Uint8Array.from({ length: 32 }, (_, i) => i + 1);
const OTHER_KEY = Uint8Array.from({ length: 32 }, (_, i) => i + 2);
/** For what must not end by it. */
const LONG_MS = 60_000;

const toClose: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  // All at once: rank 0 waits for the others.
  await Promise.all(toClose.splice(0).map((close) => close()));
});

/** A server of a test; it is closed with its connections. */
async function listen(server: Server, port = 0): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  toClose.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as { port: number }).port;
}

type Given = Partial<Omit<RendezvousOptions, "rank" | "size" | "place">> & { readonly bind?: string };

async function open(rank: number, size: number, port: number, { bind, ...options }: Given = {}): Promise<Bootstrap> {
  const place = tcpPlace({ host: "127.0.0.1", port }, bind);
  const bootstrap = await openRendezvous({ rank, size, place, key: KEY, timeout: LONG_MS, ...options });
  toClose.push(() => bootstrap.close());
  return bootstrap;
}

/** All ranks of a job. */
async function openAll(size: number, options: Given = {}): Promise<{ all: Bootstrap[]; port: number }> {
  const port = await freePort();
  const all = await Promise.all(Array.from({ length: size }, (_, rank) => open(rank, size, port, options)));
  return { all, port };
}

/** Passes faked time in steps, so many times as fast as real time at most: the system may carry packets in threads of its own. */
function passing(step: number, speed: number): () => Promise<void> {
  const now = performance.now.bind(performance);
  const start = now();
  let passed = 0;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  return async () => {
    if (passed <= speed * (now() - start)) {
      passed += step;
      vi.advanceTimersByTime(step);
    }
    await new Promise((resolve) => setImmediate(resolve));
  };
}

/**
 * Runs something in a time that stands still while this thread has sockets to look at: how busy the machine is does not
 * matter to it.
 */
async function inOwnTime(body: () => Promise<void>): Promise<void> {
  const pass = passing(1, 10);
  try {
    let isOver = false;
    const over = body().finally(() => {
      isOver = true;
    });
    over.catch(() => {});
    while (!isOver) await pass();
    await over;
  } finally {
    vi.useRealTimers();
  }
}

const failure = (promise: Promise<unknown>): Promise<PamiError> =>
  promise.then(
    () => expect.fail("it did not reject"),
    (error: PamiError) => error,
  );

/** Sends bytes to a port, and collects what comes until the connection ends. */
function talk(port: number, bytes: Uint8Array): Promise<Buffer> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (part) => parts.push(part));
    // A reset is an end, too.
    socket.on("error", () => {});
    socket.on("close", () => resolve(Buffer.concat(parts)));
  });
}

describe.each([
  ["sealed", {}],
  ["insecure", { key: undefined, insecure: true }],
] as const)("%s", (_, options) => {
  it.each([1, 2, 5])("%d processes exchange values", async (size) => {
    const { all } = await openAll(size, options);
    await Promise.all(
      all.map(async (own) => {
        expect([own.rank, own.size]).toEqual([all.indexOf(own), size]);
        await own.put(`from-${own.rank}`, Uint8Array.of(own.rank, 1, 2));
        await own.barrier();
        for (let rank = 0; rank < size; rank++)
          expect(await own.get(`from-${rank}`)).toEqual(Uint8Array.of(rank, 1, 2));
        expect(await own.get("none")).toBeUndefined();
        await own.barrier();
        await own.close();
        await own.close();
        await expect(own.barrier()).rejects.toMatchObject({ code: "PAMIR_CLOSED" });
      }),
    );
  });

  it("those that are early try again until rank 0 is there", async () => {
    const port = await freePort();
    const early = [open(1, 3, port, options), open(2, 3, port, options)];
    // An attempt fails at once where nothing listens.
    await new Promise((resolve) => setTimeout(resolve, 100));
    const all = await Promise.all([open(0, 3, port, options), ...early]);
    await Promise.all(all.map((own) => own.barrier()));
  });

  it("a process that ends before it has closed fails the barriers of the others, by its rank", async () => {
    const { all, port } = await openAll(3, options);
    expect(port).toBeGreaterThan(0);
    const [first, second, third] = all as [Bootstrap, Bootstrap, Bootstrap];
    const barriers = [failure(first.barrier()), failure(third.barrier())];
    // Its end does what a finalize does, as far as barriers go.
    await second.close();
    for (const error of await Promise.all(barriers)) {
      expect(error).toMatchObject({
        code: "PAMIR_BOOTSTRAP",
        message: expect.stringMatching(/^the barrier failed: rank 1 /),
      });
    }
  });

  it.each([0, 1])("rank %d fails: the others hear why, also at later barriers", async (rank) => {
    const { all } = await openAll(3, options);
    const others = all.filter((own) => own.rank !== rank);
    const barriers = [failure((others[0] as Bootstrap).barrier())];
    const failed = (all[rank] as PmiBootstrap).fail(`größer als 3 (PAMIR_ADDRESS)${"!".repeat(3000)}`);
    barriers.push(failure((others[1] as Bootstrap).barrier()));
    for (const error of await Promise.all(barriers)) {
      expect(error).toMatchObject({
        code: "PAMIR_BOOTSTRAP",
        message: expect.stringMatching(
          new RegExp(`^the barrier failed: rank ${rank} failed: größer als 3 \\(PAMIR_ADDRESS\\)!{500,600}$`),
        ),
      });
    }
    await Promise.all([failed, ...others.map((own) => own.close())]);
  });

  it("the others hear of rank 0's end, and for what they waited", () =>
    inOwnTime(async () => {
      const { all } = await openAll(2, { ...options, timeout: 1500 });
      const [first, second] = all as [Bootstrap, Bootstrap];
      // Rank 0 waits no longer than its timeout for the others.
      await first.close();
      expect(await failure(second.put("a", new Uint8Array(1)))).toMatchObject({
        code: "PAMIR_BOOTSTRAP",
        message: expect.stringMatching(/^the rendezvous at 127\.0\.0\.1:\d+ ended the connection/),
      });
    }));

  it("ranks that don't come are named, to rank 0 and to those that have come", () =>
    inOwnTime(async () => {
      const port = await freePort();
      const rank0 = failure(open(0, 6, port, { ...options, timeout: 1500 }));
      const others = await Promise.all([1, 4].map((rank) => open(rank, 6, port, { ...options, timeout: LONG_MS })));
      const barriers = others.map((own) => failure(own.barrier()));
      expect(await rank0).toMatchObject({
        code: "PAMIR_TIMEDOUT",
        message: `ranks 2-3, 5 did not come to 127.0.0.1:${port} within 1.5 s`,
      });
      for (const error of await Promise.all(barriers)) {
        expect(error).toMatchObject({
          code: "PAMIR_TIMEDOUT",
          message: "the barrier failed: ranks 2-3, 5 did not come within 1.5 s",
        });
      }
    }));

  it("ranks that don't enter a barrier are named to all that have", () =>
    inOwnTime(async () => {
      const { all } = await openAll(4, { ...options, timeout: 1500 });
      const barriers = [all[0], all[2]].map((own) => failure((own as Bootstrap).barrier()));
      for (const error of await Promise.all(barriers)) {
        expect(error).toMatchObject({
          code: "PAMIR_TIMEDOUT",
          message: "the barrier failed: ranks 1, 3 did not come within 1.5 s",
        });
      }
    }));

  it.each<[string, number, number, Given, RegExp]>([
    ["a rank that is taken", 1, 3, {}, /rank 1 is taken/],
    ["a rank out of range", 3, 4, {}, /rank 3 is not from 0 to 2/],
    ["another size", 2, 4, {}, /another job: its size is 4, not 3/],
    ["another job", 2, 3, { job: "8" }, /another job: its job is 8, not 7/],
  ])("%s is refused at once, rank 0 says whence it came, and the job goes on", async (_, rank, size, other, why) => {
    const port = await freePort();
    const common = { ...options, job: "7" };
    const refused: string[] = [];
    const rank0 = open(0, 3, port, { ...common, onRefused: (text) => refused.push(text) });
    const rank1 = await open(1, 3, port, common);
    expect(await failure(open(rank, size, port, { ...common, ...other }))).toMatchObject({
      code: "PAMIR_BOOTSTRAP",
      message: expect.stringMatching(why),
    });
    expect(refused).toEqual([expect.stringMatching(new RegExp(`^127\\.0\\.0\\.1:\\d+: ${why.source}`))]);
    const all = [await open(2, 3, port, common), rank1, await rank0];
    await Promise.all(all.map((own) => own.barrier()));
  });

  it("a port in use is named", async () => {
    const port = await listen(createServer());
    expect(await failure(open(0, 2, port, options))).toMatchObject({
      code: "PAMIR_BOOTSTRAP",
      message: expect.stringMatching(
        new RegExp(`^rank 0 can't listen at 127\\.0\\.0\\.1:${port}: .*EADDRINUSE.*; another program listens there`),
      ),
    });
  });

  it("an address of another host is named, and PAMIR_BIND", async () => {
    const error = await failure(open(0, 2, 7117, { ...options, bind: "192.0.2.77" }));
    expect(error).toMatchObject({ code: "PAMIR_BOOTSTRAP" });
    expect(error.message).toMatch(/^rank 0 can't listen at 192\.0\.2\.77:7117: .*EADDRNOTAVAIL.*PAMIR_BIND/);
  });

  it("an address where nothing listens is named, with how long and why", () =>
    inOwnTime(async () => {
      const port = await freePort();
      const error = await failure(open(1, 2, port, { ...options, timeout: 1500 }));
      expect(error).toMatchObject({ code: "PAMIR_TIMEDOUT" });
      expect(error.message).toMatch(
        new RegExp(
          `^rank 1 did not reach rank 0 at 127\\.0\\.0\\.1:${port} within 1\\.5 s \\(attempts: \\d+\\): .*ECONNREFUSED`,
        ),
      );
    }));

  it("a program that closes connections at once is named", () =>
    inOwnTime(async () => {
      const port = await listen(createServer((socket) => socket.destroy()));
      const error = await failure(open(1, 2, port, { ...options, timeout: 1500 }));
      expect(error.code).toBe("PAMIR_TIMEDOUT");
      expect(error.message).toMatch(
        /(attempts: \d+\).*(closed the connection|ended the connection|the connection broke|ECONNRESET))/,
      );
    }));

  it("a program that speaks HTTP is named", () =>
    inOwnTime(async () => {
      const port = await listen(createHttpServer((_, response) => response.end("no")));
      const error = await failure(open(1, 2, port, { ...options, timeout: 1500 }));
      expect(error.code).toBe("key" in options ? "PAMIR_PMI" : "PAMIR_TIMEDOUT");
      expect(error.message).toMatch(
        "key" in options ? /malformed line.*HTTP\/1\.1 400/ : /bytes that are no handshake of a job/,
      );
    }));

  it.each([
    [1, "1 connection was refused, at last: "],
    [2, "2 connections were refused, at last: "],
  ])("rank 0 says how many connections it has refused: %i", (count, text) =>
    inOwnTime(async () => {
      const port = await freePort();
      const rank0 = failure(open(0, 2, port, { ...options, timeout: 1000 }));
      for (let refused = 0; refused < count; ) {
        // Rank 0 may not listen yet.
        const isOpen = await new Promise<boolean>((resolve) => {
          const socket = connect(port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
          socket.on("error", () => {}).resume();
          socket.on("close", () => resolve(socket.bytesWritten > 0));
        });
        if (isOpen) refused++;
      }
      expect((await rank0).message).toContain(`rank 1 did not come to 127.0.0.1:${port} within 1 s; ${text}`);
    }),
  );

  it("hostile connections don't keep the others out", async () => {
    const port = await freePort();
    const rank0 = open(0, 2, port, options);
    // More than may be pending, silent; and some that say something.
    const silent: Socket[] = [];
    const closed = new Set<Socket>();
    for (let i = 0; i < 100; i++) {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {});
      socket.on("close", () => closed.add(socket));
      // The end of a connection that nothing reads is not seen.
      socket.resume();
      silent.push(socket);
    }
    toClose.push(() => {
      for (const socket of silent) socket.destroy();
    });
    const http = Buffer.from("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    // The most that a line may have, without an end.
    const endless = Buffer.alloc(100_000, "x");
    for (const bytes of [http, endless, Buffer.alloc(HANDSHAKE_BYTES), Buffer.from([0])]) {
      if (bytes.length > 1) expect(await talk(port, bytes)).toHaveLength(0);
    }
    const all = await Promise.all([rank0, open(1, 2, port, options)]);
    await Promise.all(all.map((own) => own.barrier()));
    // Two ranks and 64 more may be pending; the oldest made room.
    while (closed.size < 34) await new Promise((resolve) => setImmediate(resolve));
    for (const socket of silent.slice(0, 30)) expect(closed.has(socket)).toBe(true);
    // It was not their time that ended them.
    expect(closed.has(silent[99] as Socket)).toBe(false);
  });
});

it("onWait tells every five seconds what is awaited, for how long, and how long at most", async () => {
  const port = await freePort();
  const pass = passing(100, 100);
  try {
    const waits: BootstrapWait[][] = [[], []];
    const late = open(1, 3, port, { onWait: (wait) => waits[1]?.push(wait) });
    while (waits[1]?.length !== 2) await pass();
    const rank0 = open(0, 3, port, { onWait: (wait) => waits[0]?.push(wait) });
    while (waits[0]?.length !== 2) await pass();
    const last = open(2, 3, port);
    for (let isOpen = false; !isOpen; )
      isOpen = await Promise.race([Promise.all([rank0, late, last]).then(() => true), pass().then(() => false)]);
    expect(waits[0]?.map(({ waited }) => Math.round(waited / 1000))).toEqual([5, 10]);
    expect(waits.flat().map(({ most }) => most)).toEqual(waits.flat().map(() => LONG_MS));
    for (const { what } of waits[0] ?? []) expect(what).toMatch(/^ranks? (1, )?2$|^ranks 1-2$/);
    expect(waits[1]?.slice(0, 2).map(({ waited }) => Math.round(waited / 1000))).toEqual([5, 10]);
    expect(waits[1]?.[0]?.what).toMatch(new RegExp(`^127\\.0\\.0\\.1:${port} \\(.*ECONNREFUSED`));
    // In a barrier, rank 0 names those that are not in it.
    const [first, second] = await Promise.all([rank0, late, last]);
    for (const told of waits) told.length = 0;
    const barriers = [first, second].map((own) => own?.barrier());
    while (waits.some((told) => told.length === 0)) await pass();
    expect(waits.map(([wait]) => wait?.what)).toEqual([
      "rank 2",
      `a barrier of 3 processes at the rendezvous at 127.0.0.1:${port}`,
    ]);
    await Promise.all([...barriers, (await last).barrier()]);
  } finally {
    vi.useRealTimers();
  }
});

it("a host that does not resolve is named", async () => {
  const place = tcpPlace({ host: "no-such-host.invalid", port: 7117 });
  const common = { key: KEY, size: 2, place, timeout: 500 };
  expect(await failure(openRendezvous({ ...common, rank: 1 }))).toMatchObject({
    code: "PAMIR_TIMEDOUT",
    message: expect.stringMatching(/no-such-host\.invalid:7117 within 0\.5 s .*(ENOTFOUND|EAI_AGAIN)/),
  });
  expect(await failure(openRendezvous({ ...common, rank: 0 }))).toMatchObject({
    code: "PAMIR_BOOTSTRAP",
    message: expect.stringMatching(/^rank 0 can't listen at no-such-host\.invalid:7117: .*(ENOTFOUND|EAI_AGAIN)/),
  });
});

describe("without a key", () => {
  it("is refused, unless insecure", async () => {
    for (const rank of [0, 1]) {
      expect(await failure(open(rank, 2, 7117, { key: undefined }))).toMatchObject({
        code: "PAMIR_KEY",
        message: expect.stringMatching(/^the rendezvous at 127\.0\.0\.1:7117 needs a job key: .*PAMIR_INSECURE=1/),
      });
    }
    expect(await failure(open(0, 2, 7117, { key: undefined, insecure: false }))).toMatchObject({ code: "PAMIR_KEY" });
    expect(await failure(open(0, 2, 7117, { key: new Uint8Array(16) }))).toMatchObject({ code: "PAMIR_KEY" });
    expect(await failure(open(0, 2, 7117, { key: new Uint8Array(32) }))).toMatchObject({ code: "PAMIR_KEY" });
  });

  it("one process needs neither key nor address", async () => {
    const own = await openRendezvous({ rank: 0, size: 1, place: undefined });
    await own.put("a", Uint8Array.of(1));
    await own.barrier();
    expect(await own.get("a")).toEqual(Uint8Array.of(1));
    await own.close();
  });
});

describe("processes with different keys", () => {
  const NO_KEY: Given = { key: undefined, insecure: true };
  it.each<[string, Given, Given, string]>([
    ["another key", {}, { key: OTHER_KEY }, "it has another job key"],
    ["no key", {}, NO_KEY, "it has no job key"],
    ["a key, and rank 0 has none", NO_KEY, {}, "it has a job key, and this process has none"],
  ])("%s: neither side says anything, and both sides name the reason", (_, own, other, why) =>
    inOwnTime(async () => {
      const port = await freePort();
      const told: string[] = [];
      const rank0 = failure(open(0, 2, port, { timeout: 1000, ...own, onRefused: (text) => told.push(text) }));
      const rank1 = await failure(open(1, 2, port, { timeout: 500, ...other }));
      expect(rank1.code).toBe("PAMIR_TIMEDOUT");
      expect(rank1.message).toMatch(
        /closed the connection during the handshake; its job key|ended the connection.*; rank 0 may have a job key/,
      );
      expect(await rank0).toMatchObject({
        code: "PAMIR_TIMEDOUT",
        message: expect.stringMatching(
          new RegExp(`^rank 1 did not come to .*; (1 connection was|\\d+ connections were) refused, at last: .*${why}`),
        ),
      });
      expect(told).toEqual([expect.stringMatching(new RegExp(`^127\\.0\\.0\\.1:\\d+: ${why}$`))]);
    }),
  );

  it("another key is named long before the timeout, and the job goes on without that process", async () => {
    const port = await freePort();
    const rank0 = open(0, 2, port);
    const error = await failure(open(1, 2, port, { key: OTHER_KEY, pauseMax: 50 }));
    expect(error).toMatchObject({ code: "PAMIR_KEY" });
    expect(error.message).toBe(
      `rank 1 has another job key than rank 0, or another program is at 127.0.0.1:${port}: 16 times in a row, it closed the connection during the handshake`,
    );
    const all = [await open(1, 2, port), await rank0];
    await Promise.all(all.map((own) => own.barrier()));
  });

  it("connections that end instead of a handshake don't end a process, if something else happens in between", async () => {
    let connections = 0;
    const server = createServer((socket) => {
      // Every eighth one answers with bytes that are no handshake.
      if (++connections % 8 === 0) socket.end("something else");
      else socket.once("data", () => socket.end());
    });
    const port = await listen(server);
    // In this time, an unloaded machine makes more than sixteen.
    expect(await failure(open(1, 2, port, { timeout: 1500, pauseMax: 50 }))).toMatchObject({ code: "PAMIR_TIMEDOUT" });
  });
});
