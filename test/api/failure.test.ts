// A task that fails is heard: what the program prints, and its exit code. Each in a process of its own.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launch, type PamiError } from "pamir";
import { expect, inject, it } from "vitest";

interface Ended {
  readonly out: string;
  readonly err: string;
  readonly code: number | null;
}

const folder = mkdtempSync(join(inject("folder"), "failure-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const FAILING = fileURLToPath(new URL("programs/failing.js", import.meta.url));

/** Runs a program to its end. `heard` is called with what it has printed to standard error so far. */
function run(file: string, parameters: readonly string[], heard: (err: string) => void = () => {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [file, ...parameters], { stdio: ["ignore", "pipe", "pipe"] });
    const timer = setTimeout(() => child.kill("SIGKILL"), 100_000);
    let out = "";
    let err = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text) => {
      err += text;
      heard(err);
    });
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ out, err, code });
    });
  });
}

const fails = (how: string, does: string, options: object = {}, gate = ""): Promise<Ended> =>
  run(FAILING, [how, does, JSON.stringify(options), gate]);

/** How often a text is printed. */
const times = (text: string, part: string): number => text.split(part).length - 1;

it.each(["throw", "later"])(
  "README's own form: the error with its stack and cause is printed, once: %s",
  async (how) => {
    const { out, err, code } = await fails(how, "launch");
    expect({ out, code }).toEqual({ out: "", code: 1 });
    expect(err).toMatch(/^pamir: task 1 failed:\nRangeError: thrown by the task\n {4}at .*failing\.js:\d+/);
    expect(err).toContain("TypeError: what was behind it");
    expect(times(err, "thrown by the task")).toBe(1);
  },
);

it.each([
  ["reject", 1, /^pamir: task 1 failed:\nError: a top-level await\n {4}at .*failing\.js:\d+/],
  ["unhandled", 1, /^pamir: task 1 failed:\nError: handled by none\n {4}at .*failing\.js:\d+/],
  ["nothing", 1, /^pamir: task 1 failed: undefined\n$/],
  ["null", 1, /^pamir: task 1 failed: null\n$/],
  ["odd", 1, /^pamir: task 1 failed: \{ name: 3, message: 5, code: 7, stack: \{\} \}\n$/],
  ["code", 1, /^pamir: task 1 failed:\nError: a long code\n {4}at .*failing\.js:\d+/],
  ["exit", 3, /^pamir: task 1 exited with code 3\n$/],
  ["exitCode", 4, /^pamir: task 1 exited with code 4\n$/],
  ["unsettled", 13, /^pamir: task 1 exited with code 13: a top-level await of its program can't settle any more\n$/],
] as const)("a task that ends by %s: the exit code is %i", async (how, expected, text) => {
  const { err, code } = await fails(how, "launch");
  expect(code).toBe(expected);
  expect(err).toMatch(text);
});

it("a task that runs out of memory", async () => {
  const workerOptions = { resourceLimits: { maxOldGenerationSizeMb: 16 } };
  const { err, code } = await fails("memory", "exited", { workerOptions });
  expect(code).toBe(1);
  expect(err).toMatch(/^pamir: task 1 ran out of memory: .*JS heap out of memory.*resourceLimits.*\n$/m);
  expect(err).not.toContain("node:internal");
});

it("it is printed while the launching thread is blocked", async () => {
  const gate = join(folder, "gate");
  const { out, err, code } = await run(FAILING, ["throw", "blocked", "{}", gate], (text) => {
    if (text.includes("failing.js:")) writeFileSync(gate, "");
  });
  expect({ out, code }).toEqual({ out: "heard\n", code: 1 });
  expect(err).toMatch(/^pamir: task 1 failed:\nRangeError: thrown by the task/);
});

it("to await job.exited does not silence it; the others are not killed", async () => {
  const { out, err, code } = await fails("throw", "exited");
  expect(out).toBe('[[0,0,"exit"],[1,1,"error"]]\n');
  expect(code).toBe(1);
  expect(err).toContain("thrown by the task");
});

it.each([
  ["onExit", {}],
  ["launch", { onError: "ignore" }],
] as const)("silent: %s %j", async (does, options) => {
  expect(await fails("throw", does, options)).toEqual({ out: "", err: "", code: 0 });
});

it("with onExit, it is heard if that is asked for", async () => {
  const { err, code } = await fails("throw", "onExit", { onError: "report" });
  // The program's own: it handles the end.
  expect(code).toBe(0);
  expect(err).toContain("pamir: task 1 failed:\nRangeError: thrown by the task");
});

it("an exit code that is set stays", async () => {
  const { err, code } = await fails("throw", "preset");
  expect(code).toBe(7);
  expect(err).toContain("thrown by the task");
});

it.each([
  ["sleep", "terminate"],
  ["sleep", "terminateOne"],
  ["return", "launch"],
])("no failure: %s, %s", async (how, does) => {
  expect(await fails(how, does)).toEqual({ out: "", err: "", code: 0 });
});

it("abort ends the job, also where its launcher is blocked in it", async () => {
  const { out, err, code } = await fails("throw", "abort", { onError: "abort" });
  const [json, soon] = out.split("\n");
  expect(JSON.parse(json as string)).toEqual({
    result: 1002,
    exits: [
      [1, "error"],
      [2, "terminated"],
      [3, "terminated"],
    ],
    closed: true,
  });
  expect(soon).toBe("soon");
  expect(code).toBe(1);
  expect(err).toMatch(/^pamir: task 1 failed, the job ends:\nRangeError/);
  expect(times(err, "pamir:")).toBe(1);
});

it("a task that was spawned", async () => {
  const { err, code } = await fails("throw", "spawn");
  expect(code).toBe(1);
  expect(err).toMatch(/^pamir: task 1 failed:\nRangeError: thrown by the task/);
});

it.each([
  [
    "throw",
    1,
    '[[1,"error","RangeError: thrown by the task"]]',
    /^pamir: task 1 failed:\nRangeError.*\n {4}at .*failing/,
  ],
  ["exit", 3, '[[3,"exit",null]]', /^pamir: task 1 exited with code 3\n$/],
  ["return", 0, '[[0,"exit",null]]', /^$/],
] as const)("a worker of another's that was adopted: %s", async (how, expected, exits, text) => {
  const { out, err, code } = await fails(how, "adopt");
  expect(out).toBe(`${exits}\n`);
  expect(code).toBe(expected);
  expect(err).toMatch(text);
});

it("two tasks that fail alike are told of in one line more", async () => {
  const file = join(folder, "alike.mjs");
  const library = new URL("../../dist/index.js", import.meta.url).href;
  writeFileSync(
    file,
    `import { isMainThread } from "node:worker_threads";
     import { launch } from ${JSON.stringify(library)};
     if (isMainThread) await launch(new URL(import.meta.url), { tasks: 3 });
     else throw new Error("all alike");`,
  );
  const { err, code } = await run(file, []);
  expect(code).toBe(1);
  expect(times(err, "Error: all alike")).toBe(1);
  expect(err.match(/^pamir: task \d failed as task \d did$/gm)?.length).toBe(2);
});

it("a call to a dead task carries that task's error as its cause", async () => {
  const { out } = await fails("later", "call", { onError: "ignore" });
  expect(JSON.parse(out)).toMatchObject({
    code: "PAMIR_SHUTDOWN",
    cause: { name: "RangeError", message: "thrown by the task" },
    hasStack: true,
    room: ["PAMIR_SHUTDOWN", "RangeError"],
  });
});

it("an operation of a geometry carries the error of a dead member as its cause", async () => {
  const { out } = await fails("later", "barrier", { onError: "ignore" });
  expect(JSON.parse(out)).toEqual({
    code: "PAMIR_SHUTDOWN",
    cause: { name: "RangeError", message: "thrown by the task" },
  });
});

it("what is told of an error is bounded", async () => {
  const { out, err } = await fails("long", "call");
  const { cause } = JSON.parse(out);
  expect(cause.message).toMatch(/^much to say much/);
  expect(cause.message.length).toBeLessThan(4096);
  expect(cause.length).toBeLessThan(4096 + 100);
  expect(err.length).toBeLessThan(70_000);
});

it.each([
  ["exit", "task 1 exited with code 3"],
  ["unsettled", "task 1 exited with code 13: a top-level await of its program can't settle any more"],
  [
    "return",
    "task 1 ended with exit code 0, but did not close its client: does it lack a loop of progress, `while (!context.closed) await context.progress()`?",
  ],
])("a dead task without an error is told of by how it ended: %s", async (how, message) => {
  const { out } = await fails(how, "call", { onError: "ignore" });
  const text = { code: "PAMIR_SHUTDOWN", cause: { name: "Error", message }, room: ["PAMIR_SHUTDOWN", "Error"] };
  expect(JSON.parse(out)).toMatchObject(text);
});

it.each([
  ["threads", "order", {}, "exit"],
  ["processes", "order", { processes: 1 }, "exit"],
  ["processes, killed", "order", { processes: 1 }, "kill"],
  ["linked processes", "orderLinked", { processes: 1 }, "exit"],
  ["linked processes, killed", "orderLinked", { processes: 1 }, "kill"],
])("onExit comes before calls reject, which say how the task ended: %s", async (_, does, options, how) => {
  const { out, code } = await fails(how, does, options);
  const exitCode = how === "exit" ? 3 : 137;
  const { order, message, ...told } = JSON.parse(out);
  expect(order).toEqual([["onExit", exitCode], "PAMIR_SHUTDOWN", "PAMIR_SHUTDOWN"]);
  expect(message).toMatch(how === "exit" ? /: task 1 exited with code 3$/ : /: its process \d+ was killed by SIGKILL$/);
  expect(told).toEqual(how === "exit" ? { exitCode } : { exitCode, signal: "SIGKILL" });
  // The program's own: it handles the end.
  expect(code).toBe(0);
});

it.each(["replace", "replaceAsync"])("an onExit that spawns after terminate() is not uncaught: %s", async (does) => {
  expect(await fails("sleep", does)).toEqual({ out: '["terminated","terminated"]\n', err: "", code: 0 });
});

it("another error of onExit is uncaught, as that of any event", async () => {
  const { err, code } = await fails("exit", "broken");
  expect(err).toContain("TypeError: thrown by onExit");
  expect(code).toBe(1);
});

it.each([
  ["module", "task.ts", "const a: number = 1;"],
  ["module", "task.mts", "const a: number = 1;"],
  ["commonjs", "task.ts", "const a: number = 1;"],
  ["commonjs", "task.cts", "const a: number = 1;"],
])("a %s in TypeScript, %s, where Node does not load it", async (type, name, source) => {
  const place = mkdtempSync(join(folder, "ts-"));
  const library = new URL("../../dist/index.js", import.meta.url).href;
  writeFileSync(join(place, "package.json"), JSON.stringify({ type }));
  writeFileSync(join(place, name), source);
  writeFileSync(
    join(place, "main.mjs"),
    `import { launch } from ${JSON.stringify(library)};
     const job = await launch(new URL(${JSON.stringify(name)}, import.meta.url), { tasks: 1 });
     console.log((await job.exited)[0].error);`,
  );
  const { out, err, code } = await run(join(place, "main.mjs"), []);
  if ((process.features as { typescript?: unknown }).typescript) {
    expect({ err, code }).toEqual({ err: "", code: 0 });
    return;
  }
  const plain = `Node ${process.version} does not load TypeScript in a task: name the compiled module, use Node 22.18 or later, or start node with a loader that it registers in each thread: "node --import ./register.mjs"`;
  expect(code).toBe(1);
  expect(err).toContain(plain);
  expect(out).toContain(plain);
});

// As the hint and docs/hosts.md say of tsx, whose loader takes another line.
it("tasks in TypeScript, by a loader that node --import registers", async () => {
  const place = mkdtempSync(join(folder, "loader-"));
  const library = new URL("../../dist/index.js", import.meta.url).href;
  const esbuild = import.meta.resolve("esbuild");
  const main = join(place, "main.ts");
  writeFileSync(join(place, "package.json"), '{ "type": "module" }');
  writeFileSync(
    join(place, "hooks.mjs"),
    `import { readFile } from "node:fs/promises";
     import { transform } from ${JSON.stringify(esbuild)};
     export async function load(url, context, next) {
       if (!url.endsWith(".ts")) return next(url, context);
       const { code } = await transform(await readFile(new URL(url)), { loader: "ts", format: "esm" });
       return { format: "module", source: code, shortCircuit: true };
     }`,
  );
  const register = join(place, "register.mjs");
  writeFileSync(register, 'import { register } from "node:module"; register("./hooks.mjs", import.meta.url);');
  writeFileSync(
    main,
    `import { isMainThread } from "node:worker_threads";
     import { attach, launch } from ${JSON.stringify(library)};
     enum Words { up = "up" }
     if (isMainThread) await launch(new URL(import.meta.url), { tasks: 2 });
     else console.log(Words.up, (await attach()).task satisfies number);`,
  );
  const { out, err, code } = await run("--import", [pathToFileURL(register).href, main]);
  expect({ out: out.trim().split("\n").sort(), err, code }).toEqual({ out: ["up 0", "up 1"], err: "", code: 0 });
});

it("a plain mistake in a module in JavaScript says nothing of TypeScript", async () => {
  const place = mkdtempSync(join(folder, "js-"));
  const library = new URL("../../dist/index.js", import.meta.url).href;
  writeFileSync(join(place, "task.mjs"), "const a: number = 1;");
  writeFileSync(
    join(place, "main.mjs"),
    `import { launch } from ${JSON.stringify(library)};
     await launch(new URL("task.mjs", import.meta.url), { tasks: 1 });`,
  );
  const { err, code } = await run(join(place, "main.mjs"), []);
  expect(code).toBe(1);
  expect(err).toMatch(/^pamir: task 0 failed:\n.*SyntaxError/s);
  expect(err).not.toContain("TypeScript");
});

it("onError is one of three", async () => {
  const refused = launch(null, { tasks: 1, join: true, onError: "shout" as never });
  await expect(refused).rejects.toMatchObject({
    code: "PAMIR_INVAL",
    message: 'onError is "shout", not "report", "abort" or "ignore"',
  } satisfies Partial<PamiError>);
});

/** A program that launches two tasks, and prints how it goes. */
function launcher(kernel: "wasm" | "ts"): string {
  const file = join(folder, `launcher-${kernel}.mjs`);
  const library = new URL("../../dist/index.js", import.meta.url).href;
  writeFileSync(
    file,
    `import { isMainThread } from "node:worker_threads";
     import { launch } from ${JSON.stringify(library)};
     if (isMainThread) {
       const entry = new URL(process.argv[2] ?? import.meta.url, import.meta.url);
       await launch(entry, { tasks: 2, kernel: "${kernel}" }).then(
         async (job) => console.log((await job.exited).map(({ code }) => code).join()),
         ({ code, message }) => console.log(code, message),
       );
     }`,
  );
  return file;
}

/** Node 20 has the permission model behind another flag than later ones. */
const PERMISSION = process.allowedNodeEnvironmentFlags.has("--permission")
  ? "--permission"
  : "--experimental-permission";

it.each([
  [["--allow-fs-read=*"], [], /^PAMIR_NO_WORKERS this process may start no workers: .*--allow-worker/],
  [["--allow-fs-read=*", "--allow-worker"], [], /^0,0\n$/],
  [
    [`--allow-fs-read=${folder}/*`, "--allow-worker"],
    ["/etc/passwd"],
    /^PAMIR_ENTRY .* may not be read: .*--allow-fs-read/,
  ],
] as const)("under the permission model, with %j: %j", async (flags, parameters, text) => {
  const file = launcher("wasm");
  const own = fileURLToPath(new URL("../../dist/", import.meta.url));
  const { out } = await run(PERMISSION, [...flags, `--allow-fs-read=${own}*`, file, ...parameters]);
  expect(out).toMatch(text);
});

/** V8 reserves 10 GiB for a WebAssembly.Memory; from Node 24 on it does with less where the system refuses that. */
const REFUSED =
  Number(process.versions.node.split(".")[0]) < 24
    ? /^PAMIR_MEMORY .* V8 reserves 10 GiB of addresses \(see ulimit -v\): .*kernel: "ts"/
    : /^0,0\n$/;

it.runIf(process.platform === "linux").each([
  ["wasm", 6_000_000, REFUSED],
  ["wasm", 16_000_000, /^0,0\n$/],
  ["ts", 6_000_000, /^0,0\n$/],
] as const)("kernel %s, with ulimit -v %i", async (kernel, kibibytes, text) => {
  const command = `ulimit -v ${kibibytes}; exec "$0" "$1"`;
  const { stdout } = spawnSync("sh", ["-c", command, process.execPath, launcher(kernel)], { encoding: "utf8" });
  expect(stdout).toMatch(text);
});
