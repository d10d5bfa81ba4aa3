// What can be measured: tests, systems, sizes, and which system does which test. Nothing is started here.

import type { LinkKind, LinkWay } from "../../src/link/kind.js";
import { linkKinds, linkModule } from "../../src/link/registry.js";
import { runBareProcesses, runIdle, runStart } from "./jobs.js";
import { runNodes } from "./link.js";
import { type Native, nativeC, nativeMpi, nativeUcx, type Runner } from "./native.js";
import { findPackage, peerDoes, runPamir, runPeer } from "./peers.js";
import { isCollective, type TestName } from "./work.js";

export interface Test {
  readonly name: TestName;
  readonly what: string;
  /** Sizes that are measured unless others are asked for; none: the test has no payload. */
  readonly bytes: readonly number[];
  /** The same with `--link`. */
  readonly linkBytes?: readonly number[];
  /** Which figure the test is about, and whether less of it is better. */
  readonly figure: "latency" | "messages" | "bandwidth";
  /** Length of the timed part of a run. */
  readonly seconds: number;
}

export const TESTS: readonly Test[] = [
  {
    name: "am_lat",
    what: "ping-pong, callback to callback; half a round trip",
    bytes: [8],
    linkBytes: [64],
    figure: "latency",
    seconds: 0.5,
  },
  {
    name: "am_rate",
    what: "one way, windows of 64, then an answer; messages",
    bytes: [8],
    linkBytes: [64],
    figure: "messages",
    seconds: 1,
  },
  {
    name: "am_bw",
    what: "as am_rate; bytes, every cache line touched by the receiver",
    bytes: [1024, 3904, 65536, 1048576],
    linkBytes: [1048576],
    figure: "bandwidth",
    seconds: 1,
  },
  { name: "am_fan", what: "three tasks sending to one, four threads", bytes: [8], figure: "messages", seconds: 1 },
  {
    name: "wake_lat",
    what: "as am_lat, both sides asleep between messages",
    bytes: [8],
    figure: "latency",
    seconds: 0.5,
  },
  { name: "idle", what: "advance() with nothing to do", bytes: [], figure: "latency", seconds: 0.3 },
  {
    name: "put_lat",
    what: "a put and the advance() in which its onLocal is called",
    bytes: [8],
    figure: "latency",
    seconds: 0.3,
  },
  {
    name: "put_bw",
    what: "puts, a fence after 64 of them; nobody reads the data",
    bytes: [65536, 1048576],
    linkBytes: [1048576],
    figure: "bandwidth",
    seconds: 1,
  },
  { name: "get_lat", what: "as put_lat, the other way", bytes: [8], figure: "latency", seconds: 0.3 },
  { name: "get_bw", what: "as put_bw, the other way", bytes: [65536, 1048576], figure: "bandwidth", seconds: 1 },
  { name: "rmw_lat", what: "a fetch-add, its result included", bytes: [], figure: "latency", seconds: 0.3 },
  {
    name: "put_touch_bw",
    what: "as am_bw by puts: the target touches a buffer before it is used again",
    bytes: [4096, 65536, 1048576],
    figure: "bandwidth",
    seconds: 1,
  },
  {
    name: "rndv_bw",
    what: "messages that the engines move from region to region, four under way; nobody reads the data",
    bytes: [1048576, 16777216, 268435456],
    figure: "bandwidth",
    seconds: 1,
  },
  { name: "fence_many", what: "a fence behind 100,000 puts", bytes: [8], figure: "latency", seconds: 1 },
  { name: "fence_one", what: "a fence behind one put", bytes: [8], figure: "latency", seconds: 0.3 },
  {
    name: "fence_other",
    what: "a fence behind one put, and before it 99,999 to another endpoint: caches as cold as in fence_many",
    bytes: [8],
    figure: "latency",
    seconds: 1,
  },
  {
    name: "start",
    what: "from pamir run -n 4 --processes 4 to a first message (--processes)",
    bytes: [],
    figure: "latency",
    seconds: 1,
  },
  {
    name: "idle_cpu",
    what: "processors' time that eight processes take while they wait for 10 s (--processes)",
    bytes: [],
    figure: "latency",
    seconds: 10,
  },
  { name: "barrier", what: "one barrier behind the other", bytes: [], figure: "latency", seconds: 0.5 },
  { name: "broadcast", what: "of bytes, by each task in turn", bytes: [8, 65536], figure: "latency", seconds: 0.5 },
  {
    name: "allreduce",
    what: "sums of f64, so many bytes at each task",
    bytes: [8, 65536, 1048576],
    figure: "latency",
    seconds: 0.5,
  },
  { name: "allgather", what: "so many bytes from each task", bytes: [8, 65536], figure: "latency", seconds: 0.5 },
  {
    name: "alltoall",
    what: "so many bytes from each task to each",
    bytes: [8, 65536],
    figure: "latency",
    seconds: 0.5,
  },
  {
    name: "reduce_scatter",
    what: "as allreduce, and each task gets its part",
    bytes: [65536, 1048576],
    figure: "latency",
    seconds: 0.5,
  },
];

export interface System {
  readonly name: string;
  readonly what: string;
  does(test: TestName): boolean;
  /** Finds what the system needs on this machine; asked once, when the first of its runs is due. */
  prepare(): Native;
}

const rates = (test: TestName) => test === "am_rate" || test === "am_bw";
const touches = (test: TestName) => rates(test) || test === "put_touch_bw";
const messages = (test: TestName) => test === "am_lat" || rates(test);
/** Tests of jobs of processes. */
const ofJobs = (test: TestName) => test === "start" || test === "idle_cpu";
const linkDoes = (test: TestName) => messages(test) || test === "put_bw";
const mpiDoes = (test: TestName) => messages(test) || test === "rndv_bw" || isCollective(test);

function pamir(name: string, what: string, kernel: "wasm" | "ts" | readonly ["wasm", "ts"]): System {
  const mixed = typeof kernel === "object";
  return {
    name,
    what,
    does: (test) => !ofJobs(test) && (!mixed || (test !== "am_fan" && test !== "idle")),
    prepare: () => ({ run: (order) => runPamir(kernel, order) }),
  };
}

function peer(name: string, what: string): System {
  return {
    name,
    what,
    does: (test) => peerDoes(name, test),
    prepare: () => ({ run: (order) => runPeer(name, order) }),
  };
}

/** A run that needs a package. */
function withPackage(name: string, run: Runner): Native {
  return findPackage(name) === undefined ? { missing: `the package ${name} is not installed` } : { run };
}

export interface Handoff {
  readonly run: Runner;
  readonly by: "C" | "wasm";
}

/** The hand-off in C, or without a compiler in bare wasm. */
export function prepareHandoff(): Handoff {
  const native = nativeC("handoff");
  if ("run" in native) return { run: native.run, by: "C" };
  return { run: (order) => runPeer("handoff", order), by: "wasm" };
}

/** What is measured beside links, by the names that their kinds give. */
const BESIDE: Readonly<Record<string, string>> = {
  dgram: "bare UDP sockets of Node, messages in datagrams of at most 64 KiB",
  tcp: "bare TCP sockets of Node",
  ws: "bare WebSockets of the package ws",
};

/** The systems of a kind of link. */
function linkSystems({ name, title = name, needs = [], measures }: LinkKind): System[] {
  const { ways, beside } = measures ?? { ways: ["sealed", "open"], beside: [] };
  const option = `(--link ${name})`;
  const ready = (run: Runner): Native => {
    const missing = needs.find((one) => findPackage(one) === undefined);
    return missing === undefined ? { run } : withPackage(missing, run);
  };
  const whats: Record<LinkWay, string> = {
    sealed: `this package, two nodes, sealed ${title} on loopback`,
    open: "the same without a job key",
    inline: "the same, and each task's thread has the agent of its node",
    lossy: `pamir-${name}, and one packet of 100 is lost each way`,
  };
  const options: Partial<Record<LinkWay, Parameters<typeof runNodes>[3]>> = {
    inline: { agent: "inline" },
    lossy: { impairments: { loss: 0.01, seed: 1 } },
  };
  const own = ways.map((way) => ({
    name: way === "sealed" ? `pamir-${name}` : `pamir-${name}-${way}`,
    what: `${whats[way]} ${option}`,
    does: (test: Test["name"]) => (way === "lossy" ? test === "am_bw" || test === "put_bw" : linkDoes(test)),
    prepare: () => ready((order) => runNodes(order, name, way === "sealed" || way === "lossy", options[way])),
  }));
  const others = beside
    .filter((other) => BESIDE[other] !== undefined)
    .map((other) => ({
      ...peer(other, `${BESIDE[other]} ${option}`),
      prepare: () => ready((order) => runPeer(other, order)),
    }));
  return [...own, ...others];
}

/** Also of the link that PAMIR_LINK_MODULE names. */
const LINKS = (await linkKinds(linkModule())).map((kind) => ({ kind, systems: linkSystems(kind) }));

export const SYSTEMS: readonly System[] = [
  pamir("pamir-wasm", "this package, kernels in WebAssembly", "wasm"),
  pamir("pamir-ts", "this package, kernels in TypeScript", "ts"),
  {
    name: "pamir-processes",
    what: "this package, each task in a process of its own (only if asked for)",
    does: () => true,
    prepare: () => ({
      run: (order) =>
        order.test === "start"
          ? runStart(order)
          : order.test === "idle_cpu"
            ? runIdle(order)
            : runPamir("wasm", order, true),
    }),
  },
  {
    name: "pamir-plain",
    what: "this package, vectors of collective operations in ordinary arrays",
    does: isCollective,
    prepare: () => ({ run: (order) => runPamir("wasm", { ...order, plain: true }) }),
  },
  pamir("pamir-mixed", "a task with the one, a task with the other (only if asked for)", ["wasm", "ts"]),
  {
    name: "handoff",
    what: "the limit: two threads, two flags, spinning (C, else bare wasm)",
    does: (test) => test === "am_lat",
    prepare: prepareHandoff,
  },
  {
    name: "futex",
    what: "the limit of a wake-up: two threads, two futexes, each asleep meanwhile (C)",
    does: (test) => test === "wake_lat",
    prepare: () => nativeC("futex"),
  },
  { name: "ring", what: "a ring in C that does the same work", does: touches, prepare: () => nativeC("ring") },
  peer("memcpy", "a bare memory.copy in wasm"),
  peer("postMessage", "cloned messages between worker threads"),
  peer("postMessage-transfer", "transferred buffers, filled by the sender"),
  {
    ...peer("ringbuf.js", "the npm package, both sides polling"),
    prepare: () => withPackage("ringbuf.js", (order) => runPeer("ringbuf.js", order)),
  },
  {
    name: "openmpi",
    what: "Open MPI, processes over shared memory",
    does: mpiDoes,
    prepare: () => nativeMpi("openmpi"),
  },
  { name: "mpich", what: "MPICH, likewise", does: mpiDoes, prepare: () => nativeMpi("mpich") },
  { name: "ucx", what: "UCX active messages (ucx_perftest, UCP)", does: messages, prepare: () => nativeUcx("ucx") },
  {
    name: "ucx-uct",
    what: "the layer below, small messages only",
    does: (test) => test === "am_lat" || test === "am_rate",
    prepare: () => nativeUcx("ucx-uct"),
  },
  ...LINKS.flatMap(({ systems }) => systems),
  {
    name: "node",
    what: "four bare processes, node -e 0 (--processes)",
    does: (test) => test === "start",
    prepare: () => ({ run: runBareProcesses }),
  },
  peer("waitnotify", "a bare Atomics.wait/notify hand-off"),
  peer("wasmcall", "a bare call from JavaScript to wasm that loads, or adds to, a word"),
];

/** Systems that `--processes` adds. */
export const PROCESS_SYSTEMS: readonly string[] = ["pamir-processes", "node"];
/** By name of a kind of link: systems of `--link`. */
export const LINK_SYSTEMS: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  LINKS.map(({ kind, systems }) => [kind.name, systems.map(({ name }) => name)]),
);
const LINKED: readonly string[] = Object.values(LINK_SYSTEMS).flat();
export const isLinkSystem = (name: string): boolean => LINKED.includes(name);
/** Systems that are measured only when they are named. */
export const ON_REQUEST: ReadonlySet<string> = new Set(["pamir-mixed", ...PROCESS_SYSTEMS, ...LINKED]);
