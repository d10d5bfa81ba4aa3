// What tasks that share no memory are told of each other, and in which order: before they come, before they listen, and behind
// their end.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Switchboard } from "../../src/start/tasks/switchboard.js";

/** A task of a job of `started` tasks, with what it hears: ports stand behind their news. */
function rig(started: number) {
  const board = new Switchboard(started);
  const heard: Record<number, unknown[]> = {};
  const closed: string[] = [];
  const hear = (task: number) => {
    heard[task] = [];
    return (...[news, ports]: Parameters<Parameters<Switchboard["join"]>[0]>) =>
      void heard[task]?.push(news, ...ports.map(String));
  };
  const port = (name: string) =>
    ({ close: () => void closed.push(name), toString: () => name }) as unknown as MessagePort;
  return { board, heard, closed, hear, port };
}

it("what comes before a task listens waits in order; then it is told at once", () => {
  const { board, heard, hear, port } = rig(2);
  board.join(hear(0));
  board.add(1, hear(1));
  board.hear(0, { connect: 1 }, [port("a")]);
  board.interrupt(1);
  expect(heard).toEqual({ 0: [], 1: [] });
  board.listens(1);
  board.hear(0, { connect: 1 }, [port("b")]);
  expect(heard[1]).toEqual([{ from: 0 }, "a", { interrupt: true }, { from: 0 }, "b"]);
  board.hear(1, { connect: 0 }, [port("c")]);
  expect(heard[0]).toEqual([{ from: 1 }, "c"]);
});

it("a task that comes later has its channels first, then all ends before it; the others hear how many there are", () => {
  const { board, heard, hear, port } = rig(3);
  board.join(hear(0));
  for (const task of [1, 2]) {
    board.add(task, hear(task));
    board.listens(task);
  }
  const error = { name: "Error", message: "why", code: undefined, stack: undefined };
  board.ended(2, error);
  board.hear(0, { connect: 3 }, [port("a")]);
  board.left(1, () => board.ended(1));
  board.add(3, hear(3));
  const [second, first] = [
    { ended: 2, hasLeft: false, error },
    { ended: 1, hasLeft: true },
  ];
  expect(heard).toEqual({ 0: [second, first, { started: 4 }], 1: [second], 2: [], 3: [] });
  board.listens(3);
  expect(heard[3]).toEqual([{ from: 0 }, "a", second, first, { started: 4 }]);
});

it("what a task that has left said to one that does not listen yet is read before its worker ends", async () => {
  const { board, hear } = rig(2);
  board.join(hear(0));
  board.add(1, hear(1));
  board.listens(1);
  const { port1, port2 } = new MessageChannel();
  board.hear(1, { connect: 2 }, [port2]);
  const frame = (number: number) => ({ from: 1, to: 2, frame: { credit: number } });
  const end = { from: 1, to: 2, frame: { end: "task", streams: 2 } };
  port1.postMessage(frame(1));
  let mayEnd = false;
  const ended = new Promise<void>((resolve) =>
    board.left(1, () => {
      mayEnd = true;
      port1.close();
      board.ended(1);
      resolve();
    }),
  );
  expect(board.hasLeft(1)).toBe(true);
  port1.postMessage(frame(2));
  port1.postMessage(end);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(mayEnd).toBe(false);
  port1.postMessage(end);
  await ended;
  const came: unknown[] = [];
  const taken = new Promise<void>((resolve) =>
    board.add(2, (news, [port]) => {
      if (!("from" in news)) return;
      (port as MessagePort).onmessage = ({ data }) => {
        if (came.push(data) < 4) return;
        (port as MessagePort).close();
        resolve();
      };
    }),
  );
  board.listens(2);
  await taken;
  expect(came).toEqual([frame(1), frame(2), end, end]);
});

it("a task that leaves without its last frames ends all the same", () => {
  vi.useFakeTimers();
  const { board, hear } = rig(2);
  board.join(hear(0));
  board.add(1, hear(1));
  const { port1, port2 } = new MessageChannel();
  board.hear(1, { connect: 2 }, [port2]);
  let mayEnd = false;
  board.left(1, () => {
    mayEnd = true;
  });
  vi.advanceTimersByTime(999);
  expect(mayEnd).toBe(false);
  vi.advanceTimersByTime(1);
  expect(mayEnd).toBe(true);
  vi.useRealTimers();
  port1.close();
});

it("ports for a task that has ended, or ends before it listens, are closed", () => {
  const { board, heard, closed, hear, port } = rig(2);
  board.join(hear(0));
  board.add(1, hear(1));
  board.hear(0, { connect: 1 }, [port("a")]);
  board.ended(1);
  expect(closed).toEqual(["a"]);
  board.hear(0, { connect: 1 }, [port("b")]);
  board.interrupt(1);
  expect([closed, heard]).toEqual([["a", "b"], { 0: [{ ended: 1, hasLeft: false }], 1: [] }]);
});

it("a caller that leaves still hears of the others, and later tasks of its end", () => {
  const { board, heard, hear } = rig(2);
  board.join(hear(0));
  board.add(1, hear(1));
  board.listens(1);
  board.callerLeft();
  board.add(2, hear(2));
  board.listens(2);
  board.ended(1);
  const [caller, other] = [
    { ended: 0, hasLeft: true },
    { ended: 1, hasLeft: false },
  ];
  expect(heard).toEqual({
    0: [{ started: 3 }, other],
    1: [caller, { started: 3 }],
    2: [caller, { started: 3 }, other],
  });
});

describe("what all nodes are asked for", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** A job of task 1, which listens, and task 2, which does not yet. */
  function asking() {
    const { board, heard, hear } = rig(3);
    board.ended(0);
    for (const task of [1, 2]) board.add(task, hear(task));
    board.listens(1);
    const given = { heap: "a dump" } as never;
    const states = (timeout: number) => board.dumpAll(timeout).then((all) => all.map(({ state }) => state));
    return { board, heard, given, states };
  }

  it("is answered once every task has, each by the number of its question", async () => {
    const { board, heard, given, states } = asking();
    const [one, other] = [states(1000), states(1000)];
    expect(heard[1]?.slice(1)).toEqual([
      { ask: 0, what: "dump" },
      { ask: 1, what: "dump" },
    ]);
    for (const answer of [1, 0]) for (const task of [1, 2]) board.hear(task, { answer, given }, []);
    expect([await one, await other]).toEqual([
      ["ended", "answered", "answered"],
      ["ended", "answered", "answered"],
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is answered in time, and what comes later, twice or unasked is for nothing", async () => {
    const { board, given, states } = asking();
    const asked = states(1000);
    for (let times = 0; times < 2; times++) board.hear(1, { answer: 0, given }, []);
    vi.advanceTimersByTime(999);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(1);
    expect(await asked).toEqual(["ended", "answered", "silent"]);
    board.hear(2, { answer: 0, given }, []);
    board.hear(2, { answer: 7, given }, []);
    const again = states(Number.POSITIVE_INFINITY);
    board.ended(1);
    board.ended(2);
    expect(await again).toEqual(["ended", "ended", "ended"]);
    // None is left to be asked.
    expect(await states(1000)).toEqual(["ended", "ended", "ended"]);
  });
});
