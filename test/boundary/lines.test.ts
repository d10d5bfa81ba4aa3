// Lines over a stream: peers that don't read, that end, or that break off.
import { describe, expect, it, vi } from "vitest";
import { linkedLines, StreamLines } from "../../src/bootstrap/lines.js";
import { PmiServer } from "../../src/bootstrap/pmi/pmi-server.js";
import { PlainFraming } from "../../src/bootstrap/pmi/pmi-wire.js";
import { PamiError } from "../../src/core/error.js";
import { nextTurn } from "../../src/support/host.js";
import { connection } from "../support/duplex.js";

const turns = async (count = 5): Promise<void> => {
  for (let i = 0; i < count; i++) await nextTurn();
};

describe("a peer that asks, and does not read", () => {
  it("is not answered further until it reads; then it gets all answers in order", async () => {
    const [peer, end] = connection();
    const server = new PmiServer({ size: 1, kvsname: "k" });
    server.serve(new StreamLines(end, new PlainFraming()), 0);
    const value = "v".repeat(1000);
    peer.write(`cmd=put kvsname=k key=a value=${value}\n`);
    await turns();
    end.hold(true);
    const count = 5000;
    for (let i = 0; i < count; i++) peer.write("cmd=get kvsname=k key=a\n");
    await turns(50);
    // 64 KiB of answers, and the one that went above; a thousand bytes each.
    expect(end.writableLength).toBeGreaterThan(64 * 1024);
    expect(end.writableLength).toBeLessThan(64 * 1024 + 1100);
    end.hold(false);
    let bytes = 0;
    peer.on("data", (part: Buffer) => {
      bytes += part.length;
    });
    for (let i = 0; i < 100 && peer.readableLength + end.writableLength > 0; i++) await turns(20);
    await turns(50);
    const answer = `cmd=get_result rc=0 msg=success value=${value}\n`;
    expect(bytes).toBe("cmd=put_result rc=0 msg=success\n".length + count * answer.length);
    expect(end.destroyed).toBe(false);
  });
});

describe("the end of a connection", () => {
  /** Lines at one end, and what they tell. */
  function rig() {
    const [peer, end] = connection();
    const lines = new StreamLines(end, new PlainFraming());
    const got: string[] = [];
    const ends: (string | undefined)[] = [];
    const start = (onLine = (line: string): unknown => got.push(line)): void =>
      lines.start({ onLine: (line) => void onLine(line), onEnd: (error) => ends.push(error?.message) });
    return { peer, end, lines, got, ends, start };
  }

  it("comes behind the lines before it, and once", async () => {
    const { peer, got, ends, start } = rig();
    peer.end("cmd=a\ncmd=b\ncmd=half");
    start();
    await turns();
    expect([got, ends]).toEqual([["cmd=a", "cmd=b"], [undefined]]);
  });

  it("names the error of a connection that broke, before start() too", async () => {
    for (const isEarly of [false, true]) {
      const { end, ends, start } = rig();
      if (!isEarly) start();
      end.destroy(new Error("read ECONNRESET"));
      await turns();
      if (isEarly) start();
      expect(ends).toEqual(["the connection broke: read ECONNRESET"]);
    }
  });

  it("is made by an error of the receiver", async () => {
    const { peer, end, ends, start } = rig();
    start(() => {
      throw new PamiError("PAMIR_PMI", "no");
    });
    peer.write("cmd=a\ncmd=b\n");
    await turns();
    expect([ends, end.destroyed]).toEqual([["no"], true]);
  });

  it("end() lets out what is under way, tells nothing, and does not wait for the peer for ever", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const { peer, end, lines, got, ends, start } = rig();
      start();
      lines.send("cmd=a");
      lines.end();
      lines.send("cmd=b");
      peer.write("cmd=c\n");
      await turns();
      expect(Buffer.concat(end.sent).toString()).toBe("cmd=a\n");
      expect([got, ends, end.destroyed]).toEqual([[], [], false]);
      vi.advanceTimersByTime(1000);
      expect(end.destroyed).toBe(true);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it("end() is over with the peer's end", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const { peer, end, lines, start } = rig();
      start();
      peer.resume();
      lines.end();
      peer.end();
      await turns();
      expect([end.destroyed, vi.getTimerCount()]).toEqual([true, 0]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("within a process: lines before the end arrive, none behind it, and errors of a receiver end it", async () => {
    const [one, other] = linkedLines();
    const got: string[] = [];
    const ends: unknown[] = [];
    one.send("cmd=a");
    other.start({ onLine: (line) => got.push(line), onEnd: (error) => ends.push(error?.message) });
    one.send("cmd=b");
    one.end();
    one.send("cmd=c");
    await turns();
    expect([got, ends]).toEqual([["cmd=a", "cmd=b"], [undefined]]);
    const [first, second] = linkedLines();
    const told: unknown[] = [];
    first.start({ onLine: () => {}, onEnd: (error) => told.push(["first", error?.message]) });
    second.start({
      onLine() {
        throw new PamiError("PAMIR_PMI", "no");
      },
      onEnd: (error) => told.push(["second", error?.message]),
    });
    first.send("cmd=a");
    await turns();
    expect(told).toEqual([
      ["second", "no"],
      ["first", undefined],
    ]);
  });
});
