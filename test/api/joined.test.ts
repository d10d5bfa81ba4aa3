// attach() in processes that another launcher has started: they share memory, as those of launch({ processes }) do.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { info, SHUTDOWN } from "pamir";
import { afterAll, afterEach, describe, expect, inject, it } from "vitest";
import { byEffort, SEED } from "../support/effort.js";
import { freePort } from "../support/free-port.js";
import { withoutWaits } from "../support/run-command.js";
import { copyOfPackage } from "./run-program.js";

const program = fileURLToPath(new URL("programs/joined.js", import.meta.url));
const caught = fileURLToPath(new URL("programs/caught.js", import.meta.url));
const bulk = fileURLToPath(new URL("programs/bulk.js", import.meta.url));
const LINKS = ["udp", "websocket"] as const;
/** How nodes of one task are joined: by a link, and where their agents work. */
const WAYS = {
  udp: { link: "udp" },
  websocket: { link: "websocket" },
  "udp, with agents on the tasks' threads": { agent: "inline" },
} as const;
const WAY_NAMES = Object.keys(WAYS) as (keyof typeof WAYS)[];
const INLINE = WAY_NAMES[2] as keyof typeof WAYS;
const find = (name: string): string | undefined =>
  (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
const isLinux = process.platform === "linux";
const HYDRA = find("mpiexec.hydra");
const OPEN_MPI = find("mpirun.openmpi");
if (isLinux && HYDRA === undefined) console.log("not run: attach() under mpiexec.hydra, which is not installed");
if (isLinux && OPEN_MPI === undefined) console.log("not run: attach() under Open MPI's mpirun, which is not installed");

/** What no process of a test inherits: this test may itself run under a launcher. */
const cleanEnv = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(PAMIR|PMI|PMIX|MPI|OMPI|SLURM|RANK|WORLD|LOCAL|MASTER)/.test(name),
  ),
);
const children = new Set<ChildProcess>();
afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
});

interface Said {
  readonly task: number;
  readonly size: number;
  readonly sum: number;
  readonly seen: Readonly<Record<string, number>>;
  readonly pid: number;
  readonly kernel: string;
  readonly blocked: string;
  readonly stopped: number;
  readonly left: number;
  readonly causes: Readonly<Record<number, string>>;
  readonly leaving?: number;
  readonly processes?: string;
  readonly why: string;
  readonly local: readonly number[];
}

const saidIn = (output: string): Said[] =>
  output
    .split("\n")
    .flatMap((line) => (line.includes("{") ? [JSON.parse(line.slice(line.indexOf("{"))) as Said] : []))
    .sort((a, b) => a.task - b.task);

interface Ended {
  readonly said: readonly Said[];
  readonly codes: readonly (number | string | null)[];
  readonly errors: readonly string[];
}

/** Starts processes with a rendezvous, and awaits their ends. */
async function start(
  size: number,
  args: readonly string[],
  env: object = { PAMIR_INSECURE: "1" },
  perNode: number | string = size,
  module: string | readonly string[] = program,
  cwd?: string,
  before: readonly string[] = [],
): Promise<Ended> {
  const port = await freePort();
  const nodeOf = (rank: number) =>
    typeof perNode === "string"
      ? { PAMIR_NODE: perNode[rank] }
      : perNode === size
        ? {}
        : { PAMIR_NODE: `node ${Math.floor(rank / perNode)}` };
  const ends = Array.from({ length: size }, async (_, rank) => {
    const file = typeof module === "string" ? module : (module[rank] as string);
    const [command, ...rest] = [...before, process.execPath, file, ...args] as [string, ...string[]];
    const child = spawn(command, rest, {
      stdio: ["ignore", "pipe", "pipe"],
      cwd,
      env: {
        ...cleanEnv,
        PAMIR_RANK: `${rank}`,
        PAMIR_SIZE: `${size}`,
        PAMIR_RENDEZVOUS: `127.0.0.1:${port}`,
        ...nodeOf(rank),
        ...env,
      },
    });
    children.add(child);
    let [output, error] = ["", ""];
    child.stdout.on("data", (text) => {
      output += text;
    });
    child.stderr.on("data", (text) => {
      error += text;
    });
    const code = await new Promise<number | string | null>((resolve) =>
      child.on("close", (number, signal) => resolve(number ?? signal)),
    );
    return { output, error, code };
  });
  const all = await Promise.all(ends);
  return {
    said: saidIn(all.map(({ output }) => output).join("")),
    codes: all.map(({ code }) => code),
    errors: all.map(({ error }) => withoutWaits(error)),
  };
}

const endsOf = (...tasks: number[]): object => Object.fromEntries(tasks.map((task) => [task, SHUTDOWN]));
/** Milliseconds for which a node that leaves waits for one that is stopped: as in src/start/node/started-agent.ts. */
const LEAVE_MS = 10_000;

/** How a process ends that can't say goodbye. */
const DEATHS = [
  ["kill", "SIGKILL"],
  ["abort", "SIGABRT"],
  ["foreign", "SIGSEGV"],
  ["memory", expect.stringMatching(/^SIG(ABRT|TRAP|ILL)$/)],
] as const;
/** For the tests in which a heap overflows. */
const SMALL_HEAP = "--max-old-space-size=64";
/** What has a name among the memories of this system. */
const memoryNames = (): string[] => readdirSync("/dev/shm").filter((name) => /pamir/.test(name));

const sumOf = (size: number): number => (size * (size - 1)) / 2;
const rightOf = (size: number): unknown[] =>
  Array.from({ length: size }, (_, task) => expect.objectContaining({ task, size, sum: sumOf(size) }));

describe.skipIf(!isLinux)("processes that find each other by a rendezvous", () => {
  it.each([1, 2, 5])("%d processes talk over shared memory", async (size) => {
    const { said, codes, errors } = await start(size, []);
    expect({ errors, codes }).toEqual({ errors: new Array(size).fill(""), codes: new Array(size).fill(0) });
    expect(said).toEqual(rightOf(size));
    expect(new Set(said.map(({ pid }) => pid)).size).toBe(size);
  });

  it.each(DEATHS)(
    "one ends without a word: the others go on, learn of it, and operations to it come to SHUTDOWN, by %s",
    async (how, signal) => {
      const files = memoryNames();
      const { said, codes } = await start(4, [how], { PAMIR_INSECURE: "1", NODE_OPTIONS: SMALL_HEAP });
      expect(codes).toEqual([0, signal, 0, 0]);
      expect(memoryNames()).toEqual(files);
      expect(said.map(({ task, seen }) => [task, seen])).toEqual([0, 2, 3].map((task) => [task, { 1: SHUTDOWN }]));
    },
  );

  it("one throws: it ends with its error, and the others learn of it", async () => {
    const { said, codes, errors } = await start(3, ["throw"]);
    expect(codes).toEqual([0, 1, 0]);
    expect(errors[1]).toContain("RangeError: on purpose");
    expect(said.map(({ task, seen }) => [task, seen])).toEqual([0, 2].map((task) => [task, { 1: SHUTDOWN }]));
  });

  it("task 0, which made the memory, leaves first", async () => {
    const { said, codes } = await start(3, ["leave"]);
    expect(codes).toEqual([0, 0, 0]);
    expect(said.map(({ seen }) => seen)).toEqual([{}, { 0: SHUTDOWN }, { 0: SHUTDOWN }]);
  });

  it("without a key, and without leave to go without: an error that names both", async () => {
    const { codes, errors } = await start(2, [], {});
    expect(codes).toEqual([1, 1]);
    for (const error of errors) expect(error).toMatch(/PAMIR_KEY_FILE.*PAMIR_INSECURE=1/);
  });

  it.each([1, 2])("options by PAMIR_OPTIONS, %d in each node", async (perNode) => {
    const options = JSON.stringify({ kernel: "ts", contexts: 2, heapBytes: 4 * 1024 ** 2 });
    const { said, codes } = await start(2, [], { PAMIR_INSECURE: "1", PAMIR_OPTIONS: options }, perNode);
    expect(codes).toEqual([0, 0]);
    expect(said.map(({ kernel }) => kernel)).toEqual(["ts", "ts"]);
  });

  it.each([
    ["{", /PAMIR_OPTIONS is "\{", not JSON/],
    ['{"context":2}', /PAMIR_OPTIONS.*"?context"?/],
    ['{"kernel":"c"}', /kernel of PAMIR_OPTIONS is "c"/],
    ['{"contexts":0}', /contexts is 0, not an integer from 1/],
    ['{"silence":99}', /silence of PAMIR_OPTIONS is 99, not an integer from 100/],
    ['{"link":"tcp"}', /link of PAMIR_OPTIONS is "tcp", not "udp" or "websocket" or "nats"/],
    ['{"packetBytes":1228}', /packetBytes of PAMIR_OPTIONS is 1228, not an integer from 1232 to 65504/],
    ['{"packetBytes":1234}', /packetBytes of PAMIR_OPTIONS is 1234, not a multiple of 4/],
    ['{"port":0}', /port of PAMIR_OPTIONS is 0, not an integer from 1 to 65535/],
    ['{"impairments":{"loss":2}}', /loss in impairments of PAMIR_OPTIONS is 2, not a probability from 0 to 1/],
    ['{"impairments":{"jitter":2}}', /impairments of PAMIR_OPTIONS: there is no "jitter"/],
    ['{"impairments":{"delay":1.5}}', /delay in impairments of PAMIR_OPTIONS is 1.5, not an integer from 0 to 1300/],
    ['{"impairments":{"seed":-1}}', /seed in impairments of PAMIR_OPTIONS is -1, not an integer from 0/],
  ])("PAMIR_OPTIONS is nonsense: %s", async (text, message) => {
    const { codes, errors } = await start(1, [], { PAMIR_OPTIONS: text });
    expect(codes).toEqual([1]);
    expect(errors[0]).toMatch(message);
  });

  it("PAMIR_OPTIONS asks for wasm, which this Node lacks: an error with a code", async () => {
    const env = { PAMIR_INSECURE: "1", PAMIR_OPTIONS: '{"kernel":"wasm"}', NODE_OPTIONS: "--jitless" };
    const { codes, errors } = await start(1, [], env);
    expect(codes).toEqual([1]);
    expect(errors[0]).toMatch(/PamiError.*this host does not compile WebAssembly.*PAMIR_NO_WASM/s);
  });

  it("two builds of pamir: both processes end with an error that names both", async () => {
    const { layout } = info();
    const folder = mkdtempSync(join(inject("folder"), "builds-"));
    const copy = join(folder, "node_modules", "pamir");
    try {
      cpSync(fileURLToPath(new URL("../../dist", import.meta.url)), join(copy, "dist"), { recursive: true });
      cpSync(fileURLToPath(new URL("../../package.json", import.meta.url)), join(copy, "package.json"));
      for (const name of readdirSync(join(copy, "dist"), { recursive: true, encoding: "utf8" })) {
        const path = join(copy, "dist", name);
        if (!path.endsWith(".js")) continue;
        writeFileSync(path, readFileSync(path, "utf8").replaceAll(`${layout}`, `${layout + 1}`));
      }
      const other = join(folder, "joined.mjs");
      cpSync(program, other);
      const { codes, errors } = await start(2, [], { PAMIR_INSECURE: "1" }, 2, [program, other]);
      expect(codes).toEqual([1, 1]);
      for (const error of errors) {
        expect(error).toContain("PAMIR_VERSION");
        for (const hash of [layout, layout + 1]) expect(error).toContain(`layout ${hash})`);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  const withoutFfi = ["--no-experimental-ffi"].filter((option) => process.allowedNodeEnvironmentFlags.has(option));
  it("koffi is absent: the processes talk, one of them says why by a link, and info() too", async () => {
    const copy = copyOfPackage("no-koffi-joined-");
    const other = join(copy.folder, "test/api/programs/joined.js");
    try {
      const env = { PAMIR_INSECURE: "1", NODE_OPTIONS: withoutFfi.join(" ") };
      const { said, codes, errors } = await start(3, [], env, 3, other, copy.folder);
      expect(codes).toEqual([0, 0, 0]);
      expect(said).toEqual(rightOf(3));
      const text = "processes can't share memory here: the package koffi is not installed";
      for (const { processes, why } of said) expect([processes, why]).toEqual(["link", expect.stringContaining(text)]);
      expect(errors.map((error) => error.split("[PAMIR_LINK]").length - 1)).toEqual([1, 0, 0]);
      expect(errors[0]).toContain(text);
    } finally {
      copy.remove();
    }
  });

  it("no file may be as large as the memory (ulimit -f): the same", async () => {
    const limited = join(inject("folder"), "limited.sh");
    writeFileSync(limited, 'ulimit -f 400; exec "$@"\n');
    const { said, codes, errors } = await start(2, [], { PAMIR_INSECURE: "1" }, 2, program, undefined, [
      "/bin/sh",
      limited,
    ]);
    expect(codes).toEqual([0, 0]);
    expect(said).toEqual(rightOf(2));
    for (const { why } of said) expect(why).toMatch(/ftruncate to \d+ bytes fails with errno 27/);
    expect(errors.map((error) => error.split("[PAMIR_LINK]").length - 1)).toEqual([1, 0]);
  });

  it("each process has a node of its own by PAMIR_NODE, or is alone: there is nothing to say", async () => {
    for (const size of [1, 2]) {
      const { said, errors } = await start(size, [], undefined, 1);
      expect(errors).toEqual(new Array(size).fill(""));
      for (const { processes, why } of said) expect([processes, why]).toEqual([undefined, ""]);
    }
  });

  it("WebSockets without the package ws: an error that says so", async () => {
    const copy = copyOfPackage("no-ws-");
    const other = join(copy.folder, "joined.mjs");
    cpSync(program, other);
    try {
      const env = { PAMIR_INSECURE: "1", PAMIR_OPTIONS: '{"link":"websocket"}' };
      const { codes, errors } = await start(2, [], env, 1, other, copy.folder);
      expect(codes).toEqual([1, 1]);
      const text = /link of PAMIR_OPTIONS is "websocket", but the package ws is not installed/;
      expect(errors.filter((error) => text.test(error) && error.includes("PAMIR_ADDRESS"))).not.toEqual([]);
    } finally {
      copy.remove();
    }
  });

  it("rank 0 says for whom it waits, and once why it has refused others: with another key, they hear nothing", async () => {
    const folder = mkdtempSync(join(inject("folder"), "wrong-key-"));
    try {
      const files = [0, 1].map((rank) => join(folder, `key-${rank}`));
      for (const file of files) writeFileSync(file, randomBytes(32), { mode: 0o600 });
      const port = await freePort();
      const [first, second] = files.map((PAMIR_KEY_FILE, rank) => {
        const place = { PAMIR_RANK: `${rank}`, PAMIR_SIZE: "2", PAMIR_RENDEZVOUS: `127.0.0.1:${port}`, PAMIR_KEY_FILE };
        const child = spawn(process.execPath, [program], {
          stdio: ["ignore", "ignore", "pipe"],
          env: { ...cleanEnv, ...place },
        });
        children.add(child);
        let text = "";
        child.stderr.on("data", (part) => {
          text += part;
        });
        return { said: () => text, closed: new Promise((resolve) => child.on("close", resolve)) };
      });
      // It tries more often than once in a second.
      expect(await second?.closed).toBe(1);
      expect(second?.said()).toMatch(
        /PAMIR_KEY.*rank 1 has another job key than rank 0|rank 1 has another job key.*PAMIR_KEY/s,
      );
      const lines = (): string[] => first?.said().split("\n") ?? [];
      // On a busy machine, rank 0 may say that it waits before rank 1 has come.
      const refusals = (): string[] => lines().filter((line) => line.includes("refused"));
      const waits = (): string | undefined => lines().find((line) => line.startsWith("pamir: for "));
      while (waits() === undefined || refusals().length === 0 || lines().at(-1) !== "")
        await new Promise((r) => setTimeout(r, 50));
      expect(waits()).toMatch(/^pamir: for \d+ of 300 s, attach\(\) waits for rank 1$/);
      expect(refusals()).toHaveLength(1);
      expect(refusals()[0]).toMatch(
        /^pamir: attach\(\) has refused a process: 127\.0\.0\.1:\d+: it has another job key$/,
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("a variable that is nonsense is named", async () => {
    const { codes, errors } = await start(1, [], { PAMIR_SIZE: "many" });
    expect(codes).toEqual([1]);
    expect(errors[0]).toMatch(/PAMIR_SIZE.*many/);
  });
});

describe.skipIf(!isLinux)("processes in several nodes, joined by a link", () => {
  const folder = mkdtempSync(join(inject("folder"), "joined-"));
  const keyFile = join(folder, "key");
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });

  it.each([
    [2, 1],
    [3, 1],
    [4, 2],
  ])("%d tasks, %d in each node; packets are sealed", async (size, perNode) => {
    const { said, codes, errors } = await start(size, [], { PAMIR_KEY_FILE: keyFile }, perNode);
    expect({ errors, codes }).toEqual({ errors: new Array(size).fill(""), codes: new Array(size).fill(0) });
    expect(said).toEqual(rightOf(size));
  });

  it("nodes of different sizes: each process is a node", async () => {
    const { said, codes } = await start(3, [], { PAMIR_KEY_FILE: keyFile }, 2);
    expect(codes).toEqual([0, 0, 0]);
    expect(said).toEqual(rightOf(3));
  });

  it.each([
    ["aaaabb", 2, "ranks 0-3 of one host are nodes of 2"],
    ["abab", 1, "ranks 0, 2 of one host are nodes of 1"],
  ])(
    "hosts of uneven numbers or with ranks by turns, %s: nodes of %d, and one says so",
    async (hosts, perNode, text) => {
      const { said, codes, errors } = await start(hosts.length, [], { PAMIR_KEY_FILE: keyFile }, hosts);
      expect(codes).toEqual(new Array(hosts.length).fill(0));
      expect(said).toEqual(rightOf(hosts.length));
      for (const { task, local } of said) {
        const first = task - (task % perNode);
        expect(local).toEqual(Array.from({ length: perNode }, (_, place) => first + place));
      }
      expect(errors.map((error) => error.split("[PAMIR_LINK]").length - 1)).toEqual([
        1,
        ...errors.slice(1).map(() => 0),
      ]);
      expect(errors[0]).toContain(text);
    },
  );

  it.each(WAY_NAMES)("attach() fails in one of two processes, by %s: both hear it, and both end", async (name) => {
    const udp = createSocket("udp4");
    const first = await freePort(2);
    const port = first + 1;
    await new Promise<void>((resolve) => udp.bind(port, "127.0.0.1", resolve));
    const tcp = createServer();
    await new Promise<void>((resolve) => tcp.listen(port, "127.0.0.1", resolve));
    const env = { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: JSON.stringify({ ...WAYS[name], port: first }) };
    const { said, codes } = await start(2, [], env, 1, caught);
    udp.close();
    tcp.close();
    expect(codes).toEqual([0, 0]);
    expect(said).toEqual([
      { task: 0, code: "PAMIR_BOOTSTRAP" },
      { task: 1, code: "PAMIR_ADDRESS" },
    ]);
  });

  it.each(LINKS)(
    "port of PAMIR_OPTIONS over %s: node 1 has the next one, and says so if it is in use",
    async (link) => {
      const kind = link === "udp" ? "udp4" : undefined;
      const taken = kind === undefined ? createServer() : createSocket(kind);
      const first = await freePort(2);
      const port = first + 1;
      await new Promise<void>((resolve) => {
        if ("bind" in taken) taken.bind(port, "127.0.0.1", resolve);
        else taken.listen(port, "127.0.0.1", resolve);
      });
      const env = {
        PAMIR_KEY_FILE: keyFile,
        PAMIR_OPTIONS: JSON.stringify({ link, port: first, packetBytes: 1232 }),
      };
      const { codes, errors } = await start(2, [], env, 1);
      expect(codes).toEqual([1, 1]);
      expect(errors[1]).toMatch(
        new RegExp(`PAMIR_ADDRESS.*127\\.0\\.0\\.1:${port}\\b|127\\.0\\.0\\.1:${port}\\b.*PAMIR_ADDRESS`, "s"),
      );
      expect(errors[0]).toMatch(new RegExp(`barrier failed: rank 1 failed: .*:${port}\\b.*PAMIR_ADDRESS`));
      await new Promise<void>((resolve) => taken.close(() => resolve()));
      const { said, codes: free } = await start(2, [], env, 1);
      expect({ said, free }).toEqual({ said: rightOf(2), free: [0, 0] });
    },
  );

  it("agents on the tasks' threads: each process is a node, and waits that block say why they can't", async () => {
    const env = { PAMIR_INSECURE: "1", PAMIR_OPTIONS: JSON.stringify(WAYS[INLINE]) };
    const { said, codes, errors } = await start(3, [], env);
    expect({ errors, codes }).toEqual({ errors: ["", "", ""], codes: [0, 0, 0] });
    expect(said).toEqual(rightOf(3));
    const thread = 'agent of PAMIR_OPTIONS is "inline", so that this thread carries them';
    for (const { task, local, blocked, processes, why } of said) {
      expect(local).toEqual([task]);
      expect(blocked).toBe(`PAMIR_NOT_ISOLATED advanceUntil() would get no messages: ${thread}. Await progress()`);
      expect([processes, why]).toEqual([
        "link",
        'agent of PAMIR_OPTIONS is "inline", so that each process is a node of its own',
      ]);
    }
  });

  it.each([
    ['{"agent":"both"}', /agent of PAMIR_OPTIONS is "both", not "thread" or "inline"/],
    ['{"agent":"inline","link":"websocket"}', /agent of PAMIR_OPTIONS is "inline", but link is "websocket"/],
  ])("PAMIR_OPTIONS=%s: an error that names the value", async (options, text) => {
    const { codes, errors } = await start(2, [], { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: options }, 1);
    expect(codes).toEqual([1, 1]);
    for (const error of errors) expect(error).toMatch(text);
  });

  it("a port of PAMIR_OPTIONS behind which the nodes have too few", async () => {
    const { codes, errors } = await start(2, [], { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: '{"port":65535}' }, 1);
    expect(codes).toEqual([1, 1]);
    expect(errors[1]).toMatch(/port of PAMIR_OPTIONS is 65535, so node 1 would have port 65536: the last is 65535/);
  });

  it.each([{}, WAYS[INLINE], { link: "websocket" }])(
    "a node at IPv4, one at IPv6, %j: an error, or they talk",
    async (options) => {
      const env = { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: JSON.stringify(options) };
      const script = 'test $PAMIR_RANK = 0 || export PAMIR_BIND_HOST=::1; exec "$@"';
      const { codes, errors, said } = await start(2, [], env, 1, program, undefined, ["sh", "-c", script, "sh"]);
      if ("link" in options) expect({ said, codes }).toEqual({ said: rightOf(2), codes: [0, 0] });
      else {
        expect(codes).toEqual([1, 1]);
        const text =
          /at udp:127\.0\.0\.1:\d+.* at udp:\[::1\]:\d+: UDP does not go between IPv4 and IPv6.*PAMIR_BIND_HOST/;
        expect(errors[0]).toMatch(text);
        expect(errors[0]).toContain("PAMIR_ADDRESS");
      }
    },
  );

  it("without a key, if all that reach the addresses are trusted", async () => {
    const { said, codes } = await start(2, [], { PAMIR_INSECURE: "1" }, 1);
    expect(codes).toEqual([0, 0]);
    expect(said).toEqual(rightOf(2));
  });

  it.each([
    [4, 1, {}],
    [4, 2, {}],
    [4, 1, WAYS[INLINE]],
  ])(
    "programs that end without closing their clients: %d tasks, %d in each node, %j",
    async (size, perNode, options) => {
      const env = { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: JSON.stringify(options) };
      const { said, codes } = await start(size, ["open"], env, perNode);
      expect(codes).toEqual(new Array(size).fill(0));
      expect(said).toEqual(rightOf(size));
    },
  );

  it.each([1, 2])(
    "process.exit() behind the last message: everything that was sent comes, and then the end, %d in each node",
    async (perNode) => {
      const env = { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: JSON.stringify({ silence: 86_400_000 }) };
      const { said, codes } = await start(2 * perNode, ["exit"], env, perNode);
      expect(codes).toEqual(new Array(2 * perNode).fill(0));
      const ends = perNode === 1 ? { 0: [1] } : { 0: [2, 3], 1: [2, 3], 3: [0, 1] };
      expect(Object.fromEntries(said.map(({ task, seen }) => [task, seen]))).toEqual(
        Object.fromEntries(Object.entries(ends).map(([task, others]) => [task, endsOf(...others)])),
      );
    },
  );

  // At the exit of a process, its thread can repeat nothing that is lost. With a loss of 0.5 in each direction, some 10 % of the
  // runs need more than the 10 s for which a node that leaves waits; with 0.2, all 8 runs without `drain` lost something.
  it("client.close({ drain: true }), and process.exit(): everything comes by an inline agent that loses packets", async () => {
    const options = { agent: "inline", silence: 86_400_000, impairments: { loss: 0.2, seed: SEED } };
    const env = { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: JSON.stringify(options) };
    const { said, codes } = await start(2, ["exit", "drained"], env, 1);
    expect(codes).toEqual([0, 0]);
    expect(said.map(({ task, seen }) => [task, seen])).toEqual([[0, endsOf(1)]]);
  });

  const FAULTS = { loss: 0.01, duplicate: 0.01, reorder: 0.02, seed: SEED };
  const ROWS = WAY_NAMES.flatMap((name) => {
    const way = WAYS[name];
    const perNode = name === INLINE ? 1 : 2;
    return [
      { name, options: way, size: 2, perNode: 1 },
      { name, options: way, size: 4, perNode },
      { name: `${name}, that loses packets`, options: { ...way, impairments: FAULTS }, size: 3, perNode: 1 },
      { name: `${name}, that loses packets`, options: { ...way, impairments: FAULTS }, size: 4, perNode },
      {
        name: `${name}, with 20 ms of delay and losses`,
        options: { ...way, impairments: { ...FAULTS, delay: 20 } },
        size: 2,
        perNode: 1,
      },
    ];
  });
  it.each(ROWS)(
    "messages, offers, puts, gets and rmws by $name: $size tasks, $perNode in each node",
    async ({ options, size, perNode }) => {
      const env = { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: JSON.stringify(options) };
      const { said, codes, errors } = await start(size, ["3"], env, perNode, bulk);
      expect({ errors, codes }).toEqual({ errors: new Array(size).fill(""), codes: new Array(size).fill(0) });
      expect(said).toEqual(
        Array.from({ length: size }, (_, task) => expect.objectContaining({ task, done: 3, wrong: [] })),
      );
    },
  );

  it.each(WAY_NAMES.flatMap((name) => ["close", "exit"].map((how) => [name, how] as const)))(
    "a node is killed: a node that leaves before it learns of that does not wait for acknowledgments, by %s, by %s",
    async (name, how) => {
      const env = { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: JSON.stringify({ ...WAYS[name], silence: 86_400_000 }) };
      const { said, codes } = await start(2, ["orphan", how], env, 1);
      expect(codes).toEqual([0, "SIGKILL"]);
      expect(said.find(({ leaving }) => leaving !== undefined)?.leaving as number).toBeLessThan(LEAVE_MS);
    },
  );

  it("a task is killed once all others have left: their processes end", async () => {
    const { codes } = await start(4, ["late"], { PAMIR_KEY_FILE: keyFile }, 2);
    expect(codes).toEqual([0, "SIGKILL", 0, 0]);
  });

  it.each(DEATHS)(
    "a task ends without a word: those of its node and of other nodes learn of it, by %s",
    async (how, signal) => {
      const { said, codes } = await start(4, [how], { PAMIR_KEY_FILE: keyFile, NODE_OPTIONS: SMALL_HEAP }, 2);
      expect(codes).toEqual([0, signal, 0, 0]);
      expect(said.map(({ task, seen }) => [task, seen])).toEqual([0, 2, 3].map((task) => [task, { 1: SHUTDOWN }]));
    },
  );

  it.each([{}, WAYS[INLINE]])(
    "with a key and koffi, agents seal by OpenSSL and use the system's calls of UDP, %j",
    async (options) => {
      const first = join(folder, "counting.cjs");
      const counting = `
      const koffi = require(${JSON.stringify(createRequire(import.meta.url).resolve("koffi"))});
      const { load } = koffi;
      const calls = { EVP_CipherFinal_ex: 0, sendto: 0, recvmmsg: 0 };
      koffi.load = (...names) => {
        const library = load(...names);
        return {
          func(name, ...type) {
            const call = library.func(name, ...type);
            return name in calls ? (...values) => (calls[name]++, call(...values)) : call;
          },
        };
      };
      process.on("exit", () => {
        if (calls.recvmmsg > 0) require("node:fs").writeSync(2, JSON.stringify(calls) + "\\n");
      });`;
      writeFileSync(first, counting);
      const env = {
        PAMIR_KEY_FILE: keyFile,
        PAMIR_OPTIONS: JSON.stringify(options),
        NODE_OPTIONS: `--require ${first}`,
      };
      const { said, codes, errors } = await start(2, [], env, 1);
      expect({ said, codes }).toEqual({ said: rightOf(2), codes: [0, 0] });
      for (const error of errors) {
        const { EVP_CipherFinal_ex: packets, sendto, recvmmsg } = JSON.parse(error);
        // It seals one in any case, to see whether node:crypto opens it.
        expect(packets).toBeGreaterThan(1);
        expect(sendto).toBeGreaterThan(0);
        expect(recvmmsg).toBeGreaterThan(0);
      }
    },
  );

  it("a task throws, and one of another node is killed: the error is the cause within the node, and of no other end", async () => {
    const { said, codes } = await start(4, ["causes"], { PAMIR_KEY_FILE: keyFile }, 2);
    expect(codes).toEqual([0, "SIGKILL", 0, 1]);
    expect(said.map(({ task, causes }) => [task, causes])).toEqual([
      [0, { 1: "", 3: "" }],
      [2, { 1: "", 3: "RangeError: on purpose" }],
    ]);
  });

  it.each([
    [5, "Error: task 3 exited with code 5"],
    [0, expect.stringMatching(/^Error: task 3 ended with exit code 0, but did not close its client: /)],
  ])("a process exits with its client open: its code is the cause within the node, %j", async (code, cause) => {
    const { said, codes } = await start(4, ["causes", `${code}`], { PAMIR_KEY_FILE: keyFile }, 2);
    expect(codes).toEqual([0, "SIGKILL", 0, code]);
    expect(said.map(({ task, causes }) => [task, causes])).toEqual([
      [0, { 1: "", 3: "" }],
      [2, { 1: "", 3: cause }],
    ]);
  });

  it.each(WAY_NAMES)(
    "a node is killed in the middle of a collective operation: the others hear so, and go on without it, by %s",
    async (name) => {
      const env = { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: JSON.stringify({ ...WAYS[name], silence: 86_400_000 }) };
      const { said, codes, errors } = await start(4, ["collective"], env, 1);
      expect({ errors, codes }).toEqual({ errors: ["", "", "", ""], codes: [0, 0, "SIGKILL", 0] });
      expect(said.map(({ task, left, seen }) => [task, left, seen])).toEqual(
        [0, 1, 3].map((task) => [task, 0 + 1 + 3, { 2: SHUTDOWN }]),
      );
    },
  );

  it.each([
    [
      "its agent gets no memory for packets",
      `if (!threads.isMainThread) WebAssembly.Memory = class { constructor() { throw new RangeError("no"); } };`,
      /PamiError.*16842752 bytes of shared memory, for the packets of node 0: .*ulimit -v.*PAMIR_MEMORY/s,
    ],
    [
      "the system starts no thread",
      `threads.Worker = class { constructor() { throw Object.assign(new Error("EAGAIN"), { code: "ERR_WORKER_INIT_FAILED" }); } };`,
      /PamiError.*the system starts no thread \(EAGAIN\): see ulimit -u.*PAMIR_NO_WORKERS/s,
    ],
  ])("%s: an error with a code, which names the limit", async (_, code, text) => {
    const first = join(folder, "first.cjs");
    writeFileSync(first, `const threads = require("node:worker_threads");\n${code}\n`);
    const env = { PAMIR_KEY_FILE: keyFile, NODE_OPTIONS: `--require ${first}` };
    const { codes, errors } = await start(2, [], env, 1);
    expect(codes).toEqual([1, 1]);
    expect(errors[0]).toMatch(text);
  });

  it("the process with the agent is killed: its sibling is cut off at once, whatever the silence", async () => {
    const env = { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: JSON.stringify({ silence: 86_400_000 }) };
    const { said, codes } = await start(4, ["agent", "siblings"], env, 2);
    expect(codes).toEqual([0, 0, "SIGKILL", 0]);
    expect(said.find(({ task }) => task === 3)?.seen).toEqual(endsOf(0, 1, 2));
  });

  it.each(LINKS)(
    "the process with the agent is killed: for nodes of this machine, all tasks of its node have ended, whatever the silence, by %s",
    async (link) => {
      const env = { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: JSON.stringify({ link, silence: 86_400_000 }) };
      const { said, codes } = await start(4, ["agent"], env, 2);
      expect(codes).toEqual([0, 0, "SIGKILL", 0]);
      expect(said.map(({ task, seen }) => [task, seen])).toEqual([
        [0, endsOf(2, 3)],
        [1, endsOf(2, 3)],
        [3, endsOf(0, 1, 2)],
      ]);
    },
  );

  it.each(WAY_NAMES)(
    "a task has left before others send to it: they learn of that, whatever the silence, by %s",
    async (name) => {
      const env = { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: JSON.stringify({ ...WAYS[name], silence: 86_400_000 }) };
      const { said, codes } = await start(3, ["early", join(folder, `left-${name}`)], env, 1);
      expect(codes).toEqual([0, 0, 0]);
      expect(said.map(({ task, seen }) => [task, seen])).toEqual([0, 2].map((task) => [task, endsOf(1)]));
    },
  );

  it.each([{}, WAYS[INLINE]].flatMap((options) => [true, false].map((hasKey) => [options, hasKey] as const)))(
    "a node states the address of another one: it and those that it misleads say by whom they are refused, and why; waits end, %j, with a key: %s",
    async (options, hasKey) => {
      const first = join(folder, "misled.cjs");
      const port = await freePort(3);
      // Addresses of this machine that are no other test's. Without koffi, the socket is one of node:dgram.
      const code = `
        const rank = Number(process.env.PAMIR_RANK);
        process.env.PAMIR_BIND_HOST = "127.0.83." + (1 + rank);
        const modules = require("node:module");
        const resolve = modules._resolveFilename;
        modules._resolveFilename = function (name, ...rest) {
          if (name === "koffi") throw Object.assign(new Error("none"), { code: "MODULE_NOT_FOUND" });
          return resolve.call(this, name, ...rest);
        };
        const { Socket } = require("node:dgram");
        const { address } = Socket.prototype;
        if (rank === 1) Socket.prototype.address = function () {
          return { ...address.call(this), address: "127.0.83.3", port: ${port + 2} };
        };`;
      writeFileSync(first, code);
      const { said, codes, errors } = await start(
        3,
        ["refused", join(folder, `seen-${port}`)],
        {
          ...(hasKey ? { PAMIR_KEY_FILE: keyFile } : { PAMIR_INSECURE: "1" }),
          PAMIR_OPTIONS: JSON.stringify({ ...options, port }),
          NODE_OPTIONS: `--require ${first}`,
        },
        1,
      );
      const tail = /PAMIR_LINK|trace-warnings/;
      const lines = errors.map((error) => error.split("\n").filter((line) => line !== "" && !tail.test(line)));
      const misled = (node: number) =>
        `pamir: node ${node} is refused at udp:127.0.83.3:${port + 2} (PAMIR_REFUSED): that is not node 1, but another node of this job; for node ${node}, the tasks of node 1 have ended`;
      const refused = (other: number) =>
        `pamir: node 1 is refused by node ${other} (PAMIR_REFUSED): its packets do not come from udp:127.0.83.3:${port + 2}, the address that it has stated, as behind NAT; or another process is node 1; for node 1, the tasks of node ${other} have ended`;
      expect(lines[0]).toEqual([misled(0)]);
      expect(lines[2]).toEqual([misled(2)]);
      expect(lines[1]?.toSorted()).toEqual([refused(0), refused(2)]);
      expect(codes).toEqual([0, 0, 0]);
      expect(said.map(({ task, seen }) => [task, seen])).toEqual([
        [0, endsOf(1)],
        [1, endsOf(0, 2)],
        [2, endsOf(1)],
      ]);
    },
  );

  const STOPPED = [
    ...LINKS.map((link) => ["blocking", link] as const),
    ...WAY_NAMES.map((name) => ["awaiting", name] as const),
  ];
  it.each(STOPPED)(
    "a node is stopped beyond the silence: it is given up, and ends with an error once it goes on; its task is %s, by %s",
    async (how, name) => {
      const silence = byEffort({ quick: 3000, normal: 3000, deep: 5000 });
      const env = { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: JSON.stringify({ ...WAYS[name], silence }) };
      const time = byEffort({ quick: "0", normal: "0", deep: "15000" });
      const { said, codes, errors } = await start(2, ["stop", how, time], env, 1);
      expect(codes).toEqual([0, 1]);
      expect(errors[1]).toContain("PAMIR_GIVEN_UP");
      expect(errors[1]).toContain(`node 1 was given up by node 0, which it did not answer for ${silence} ms`);
      expect(said.map(({ task, seen }) => [task, seen])).toEqual([[0, endsOf(1)]]);
      expect((said[0] as Said).stopped / silence).toBeGreaterThan(1);
    },
  );

  it.each([{}, WAYS[INLINE]])("a node is stopped for less than the silence: nothing is lost, %j", async (options) => {
    const env = { PAMIR_KEY_FILE: keyFile, PAMIR_OPTIONS: JSON.stringify(options) };
    const { said, codes } = await start(2, ["pause"], env, 1);
    expect(codes).toEqual([0, 0]);
    expect(said.map(({ task, seen }) => [task, seen])).toEqual([
      [0, {}],
      [1, {}],
    ]);
  });
});

it("attach() in a program that no launcher has started", () => {
  const { status, stderr } = spawnSync(process.execPath, [program], { encoding: "utf8", env: cleanEnv });
  expect(status).toBe(1);
  expect(stderr).toContain("PAMIR_NOT_IN_JOB");
});

const LAUNCHERS: readonly (readonly [string, string | undefined, readonly string[], object])[] = [
  ["Hydra, PMI_FD", HYDRA, [], {}],
  ["Hydra, PMI_PORT", HYDRA, ["-pmi-port"], {}],
  [
    "Open MPI",
    OPEN_MPI,
    ["--oversubscribe", ...(process.getuid?.() === 0 ? ["--allow-run-as-root"] : [])],
    { PAMIR_INSECURE: "1" },
  ],
];
describe.skipIf(!isLinux)("processes of a launcher", () => {
  it.each(LAUNCHERS.filter(([, path]) => path !== undefined))("%s", (_, path, args, env) => {
    const { status, stdout, stderr } = spawnSync(path as string, [...args, "-n", "4", process.execPath, program], {
      encoding: "utf8",
      timeout: 100_000,
      env: { ...cleanEnv, NO_COLOR: "1", ...env },
    });
    expect({ status, stderr: withoutWaits(stderr) }).toEqual({ status: 0, stderr: "" });
    expect(saidIn(stdout)).toEqual(rightOf(4));
  });

  it.each(LAUNCHERS.filter(([, path]) => path !== undefined))(
    "%s: one fails in attach(), and the others hear why at once",
    async (_, path, flags, more) => {
      const taken = createSocket("udp4");
      const first = await freePort(2);
      await new Promise<void>((resolve) => taken.bind(first + 1, "127.0.0.1", resolve));
      const part = (node: string) => ["-n", "1", "env", `PAMIR_NODE=${node}`, process.execPath, program];
      const { status, signal, stderr } = spawnSync(path as string, [...flags, ...part("a"), ":", ...part("b")], {
        encoding: "utf8",
        timeout: 100_000,
        env: { ...cleanEnv, NO_COLOR: "1", PAMIR_OPTIONS: JSON.stringify({ port: first }), ...more },
      });
      taken.close();
      expect({ status, signal }).toEqual({ status: 1, signal: null });
      expect(stderr).toMatch(/barrier failed: rank 1 failed: .*PAMIR_ADDRESS/);
    },
  );

  it.each(LAUNCHERS.filter(([, path]) => path !== undefined))(
    "%s: one never attaches: the other says that it waits, for how many, and how long, and ends after PAMIR_START_TIMEOUT",
    (name, path, flags, more) => {
      const args = [...flags, "-n", "1", process.execPath, program, ":", "-n", "1", "sleep", "60"];
      const { status, signal, stderr } = spawnSync(path as string, args, {
        encoding: "utf8",
        timeout: 100_000,
        env: { ...cleanEnv, NO_COLOR: "1", PAMIR_START_TIMEOUT: "7", ...more },
      });
      // Hydra's has the signal that ended the other process in it.
      expect(status).toBeGreaterThan(0);
      expect(signal).toBe(null);
      const awaited = name === "Open MPI" ? "rank 1\\n" : "a barrier of 2 processes at the PMI server at ";
      expect(stderr).toMatch(new RegExp(`^pamir: for [56] of 7 s, attach\\(\\) waits for ${awaited}`, "m"));
      expect(stderr).toMatch(/within 7(\.\d+)? s(.|\n)*PAMIR_TIMEDOUT/);
    },
  );

  it.each(LAUNCHERS.filter(([name]) => name.startsWith("Hydra") && HYDRA !== undefined))(
    "%s: PAMIR_START_TIMEOUT is nonsense in one, and the other hears why at once",
    (_, path, flags, more) => {
      const part = ["-n", "1", "env", "PAMIR_START_TIMEOUT=soon", process.execPath, program];
      const args = [...flags, "-n", "1", process.execPath, program, ":", ...part];
      const { status, stderr } = spawnSync(path as string, args, {
        encoding: "utf8",
        timeout: 100_000,
        env: { ...cleanEnv, NO_COLOR: "1", ...more },
      });
      expect(status).toBe(1);
      expect(stderr).toMatch(/barrier failed: rank 1 failed: the variable PAMIR_START_TIMEOUT is "soon"/);
    },
  );

  it.each(LAUNCHERS.filter(([name]) => name.startsWith("Hydra") && HYDRA !== undefined))(
    "%s: one has no right to its key file, and the other hears why at once",
    (_, path, flags, more) => {
      const part = (file: string) => ["-n", "1", "env", `PAMIR_KEY_FILE=${file}`, process.execPath, program];
      const args = [...flags, "-n", "1", process.execPath, program, ":", ...part("/nowhere/key")];
      const { status, signal, stderr } = spawnSync(path as string, args, {
        encoding: "utf8",
        timeout: 100_000,
        env: { ...cleanEnv, NO_COLOR: "1", ...more },
      });
      expect({ status, signal }).toEqual({ status: 1, signal: null });
      expect(stderr).toMatch(/barrier failed: rank 1 failed: .*nowhere.*PAMIR_KEY/);
    },
  );
});
