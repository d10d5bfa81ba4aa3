// Labels of the output of tasks: whole lines, however the text is cut, and the colors of a terminal. Its pace: streams pause
// while their destination takes no more.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { PassThrough, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import { drained, labelLines, passOn, takeRest } from "../../src/start/output/labels.js";
import { wholeLines } from "../../src/start/output/whole-lines.js";

/** What comes out of pieces that a task writes. */
async function labeled(task: number, hasColor: boolean, ...pieces: readonly (string | Uint8Array)[]): Promise<string> {
  const [from, to] = [new PassThrough(), new PassThrough()];
  labelLines(task, hasColor, from, to);
  for (const piece of pieces) from.write(piece);
  from.end(() => setImmediate(() => to.end()));
  return await text(to);
}

it.each([
  [0, "\u001b[36m[0]\u001b[0m a\n"],
  [1, "\u001b[33m[1]\u001b[0m a\n"],
  [9, "\u001b[94m[9]\u001b[0m a\n"],
  [10, "\u001b[36m[10]\u001b[0m a\n"],
])("task %d has a color of its own, of ten", async (task, line) => {
  expect(await labeled(task, true, "a\n")).toBe(line);
});

it.each([
  [["a\nb\n"], "[3] a\n[3] b\n"],
  [["a", "b\nc"], "[3] ab\n[3] c\n"],
  [["\n\n"], "[3] \n[3] \n"],
  [[], ""],
  [["x".repeat(65_536), "y", "z"], `[3] ${"x".repeat(65_536)}y\n[3] z\n`],
  [[Uint8Array.of(0xc3), Uint8Array.of(0xa4, 10)], "[3] \u00e4\n"],
])("pieces %#: each line has one label", async (pieces, lines) => {
  expect(await labeled(3, false, ...pieces)).toBe(lines);
});

/** Lets streams pass on what they have. */
async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Sources that each have so many lines, and a destination that nothing reads. All bounds are small. */
function unread(sources: number, lines: number): { all: PassThrough[]; to: PassThrough } {
  const to = new PassThrough({ highWaterMark: 16 });
  const all = Array.from({ length: sources }, (_, task) => {
    const from = new PassThrough({ readableHighWaterMark: 4, writableHighWaterMark: 16 });
    labelLines(task, false, from, to);
    for (let line = 0; line < lines; line++) from.write(`${line}\n`);
    return from;
  });
  return { all, to };
}

it("streams pause while their destination takes no more, with one listener for all; then all comes, in order", async () => {
  const [sources, lines] = [20, 50];
  const { all, to } = unread(sources, lines);
  await settle();
  expect(all.map((from) => from.isPaused())).toEqual(all.map(() => true));
  expect(to.writableLength).toBeLessThan(sources * 16);
  expect(to.listenerCount("drain")).toBe(1);
  for (const from of all) from.end("last");
  void Promise.all(all.map((from) => once(from, "end"))).then(() => setImmediate(() => to.end()));
  const came = (await text(to)).trimEnd().split("\n");
  for (const task of all.keys()) {
    const expected = [...Array.from({ length: lines }, (_, line) => `${line}`), "last"];
    const label = `[${task}] `;
    const own = came.filter((line) => line.startsWith(label)).map((line) => line.slice(label.length));
    expect(own).toEqual(expected);
  }
});

it("a destination that closes lets the streams go on: what comes is dropped", async () => {
  const { all, to } = unread(2, 50);
  to.on("error", () => {});
  await settle();
  to.destroy();
  const ends = all.map((from) => once(from, "end"));
  for (const from of all) from.end();
  await Promise.all(ends);
});

it("what an ended process has left is taken at once, up to a bound", async () => {
  const to = new PassThrough({ highWaterMark: 16 });
  const from = new PassThrough();
  from.on("data", (bytes: Uint8Array) => passOn(bytes, from, to));
  const write = async (): Promise<boolean> => {
    from.write(new Uint8Array(40));
    await settle();
    return from.isPaused();
  };
  expect(await write()).toBe(true);
  takeRest(from, 100);
  expect([await write(), await write(), await write()]).toEqual([false, false, true]);
});

it.each([
  [[4096], [4096]],
  [
    [4096, 1],
    [4096, 1],
  ],
  [[4095, 1], [4096]],
  [
    [4000, 96, 4000, 97],
    [4096, 4000, 97],
  ],
  [[4097], [4097]],
  [
    [1, 70_000, 1, 2],
    [1, 70_000, 3],
  ],
  [new Array(5000).fill(1), [4096, 904]],
])(
  "lines of a process %#: each write has whole lines in at most 4,096 bytes, or a longer line alone",
  async (lengths, pieces) => {
    const text = lengths.map((length) => `${"x".repeat(length - 1)}\n`).join("");
    const written: string[] = [];
    const to = new Writable({
      write(bytes: Buffer, _, onWritten) {
        // No other piece is behind it: Node would write both as one.
        expect(to.writableLength).toBe(bytes.length);
        written.push(bytes.toString());
        setImmediate(onWritten);
      },
    });
    const lines = wholeLines(to);
    lines.end(text);
    await once(lines, "finish");
    expect(written.join("")).toBe(text);
    expect(written.map((one) => one.length)).toEqual(pieces);
  },
);

it.skipIf(process.platform === "win32").each([
  ["nothing else", "sleep 1000 & head -c 100000 /dev/zero", 100_000, 100_000],
  ["more, without an end", "head -c 100000 /dev/zero; cat /dev/zero &", 100_000, Number.POSITIVE_INFINITY],
])("a process has ended, and another one holds its output, and writes %s", async (_, script, least, most) => {
  const shell = spawn("/bin/sh", ["-c", script], { detached: true, stdio: ["ignore", "pipe", "inherit"] });
  try {
    let came = 0;
    shell.stdout.on("data", (bytes: Buffer) => {
      came += bytes.length;
    });
    // Node takes what was not read by the end of a process.
    shell.stdout.pause();
    await once(shell, "exit");
    await drained([shell.stdout]);
    expect(came).toBeGreaterThanOrEqual(least);
    expect(came).toBeLessThanOrEqual(most);
  } finally {
    process.kill(-(shell.pid as number), "SIGKILL");
  }
});

it("a line that has come in part is ended on demand, once; what comes then has a label of its own", async () => {
  const [from, to] = [new PassThrough(), new PassThrough()];
  const endLine = labelLines(3, false, from, to);
  from.write("a\nb");
  await settle();
  endLine();
  endLine();
  from.write("c\n");
  from.end(() => setImmediate(() => to.end()));
  expect(await text(to)).toBe("[3] a\n[3] b\n[3] c\n");
});
