// Sealed lines against an attacker on the connection: it records, repeats, changes, cuts and forges bytes.
import { createHmac, hkdfSync, randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import type { Lines } from "../../src/bootstrap/lines.js";
import { LINE_MAX } from "../../src/bootstrap/pmi/pmi-wire.js";
import { HANDSHAKE_BYTES, HandshakeError, sealLines } from "../../src/bootstrap/rendezvous/sealed-lines.js";
import { nextTurn } from "../../src/support/host.js";
import { connection, type End } from "../support/duplex.js";
import { assertProperty } from "../support/seed.js";

const KEY = Uint8Array.from({ length: 32 }, (_, i) => i + 1);
const OTHER_KEY = Uint8Array.from({ length: 32 }, (_, i) => i + 2);
const LONG_MS = 60_000;

/** What a side gets. */
function listen(lines: Lines): { got: string[]; ends: (string | undefined)[] } {
  const got: string[] = [];
  const ends: (string | undefined)[] = [];
  lines.start({ onLine: (line) => got.push(line), onEnd: (error) => ends.push(error?.code) });
  return { got, ends };
}

async function sealed(): Promise<{ ends: [End, End]; lines: [Lines, Lines] }> {
  const ends = connection();
  const lines = await Promise.all([
    sealLines(ends[0], KEY, "initiator", LONG_MS),
    sealLines(ends[1], KEY, "acceptor", LONG_MS),
  ]);
  return { ends, lines };
}

const failure = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => expect.fail("it did not reject"),
    (error: Error) => error,
  );
const turns = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await nextTurn();
};

describe("sealed lines", () => {
  it("arrive in order, in both directions, up to the longest", async () => {
    const { ends, lines } = await sealed();
    const [one, other] = lines.map(listen);
    const texts = ["cmd=a", "x".repeat(LINE_MAX), "cmd=b", ...Array.from({ length: 300 }, (_, i) => `cmd=${i}`)];
    for (const text of texts) {
      lines[0].send(text);
      lines[1].send(text);
    }
    await turns();
    expect([one?.got, other?.got]).toEqual([texts, texts]);
    const wire = Buffer.concat([...ends[0].sent, ...ends[1].sent]).toString("latin1");
    expect(wire).not.toMatch(/cmd=|xxxx/);
    // Each direction has keys of its own: the same line never gives the same bytes.
    expect(new Set([...ends[0].sent, ...ends[1].sent].map((bytes) => bytes.toString("hex"))).size).toBe(
      2 * (texts.length + 1),
    );
  });

  it("the handshake is as the comment of sealed-lines.ts describes it", async () => {
    const { ends } = await sealed();
    const [hello, reply] = [ends[0].sent[0], ends[1].sent[0]] as [Buffer, Buffer];
    expect([hello.length, reply.length, HANDSHAKE_BYTES]).toEqual([72, 72, 72]);
    const key = (label: string) => Buffer.from(hkdfSync("sha256", KEY, "", `pamir rendezvous 1 ${label}`, 32));
    for (const message of [hello, reply]) expect(message.subarray(0, 8).toString()).toBe("PAMIRRV1");
    const proof = createHmac("sha256", key("hello")).update(hello.subarray(0, 40)).digest();
    expect(hello.subarray(40)).toEqual(proof);
    const answer = createHmac("sha256", key("reply")).update(hello).update(reply.subarray(0, 40)).digest();
    expect(reply.subarray(40)).toEqual(answer);
    const [again] = (await sealed()).ends;
    expect(again.sent[0]?.subarray(8, 40)).not.toEqual(hello.subarray(8, 40));
  });

  it.each<[string, (bytes: Buffer) => Buffer | readonly Buffer[]]>([
    ["a bit of the length", (bytes) => flip(bytes, 1)],
    ["a bit of the body", (bytes) => flip(bytes, 3)],
    ["a bit of the tag", (bytes) => flip(bytes, bytes.length - 1)],
    ["a length of 0", (bytes) => Buffer.from([0, 0, ...bytes.subarray(2)])],
    ["a length above the limit", (bytes) => Buffer.from([0x08, 0x01, ...bytes.subarray(2)])],
    ["repeated", (bytes) => [bytes, bytes]],
    ["readable", () => Buffer.from("cmd=b\ncmd=c\ncmd=d\ncmd=e\n")],
  ])("a record that is changed ends the connection, and its line does not arrive: %s", async (name, change) => {
    const { ends, lines } = await sealed();
    const { got, ends: over } = listen(lines[1]);
    lines[0].send("cmd=a");
    await turns();
    ends[0].change = (bytes) => Buffer.concat([change(bytes)].flat() as Buffer[]);
    lines[0].send("cmd=b");
    ends[0].change = (bytes) => bytes;
    // What follows does not arrive either.
    for (let i = 0; i < 200; i++) lines[0].send("cmd=c");
    await turns();
    expect(got).toEqual(name === "repeated" ? ["cmd=a", "cmd=b"] : ["cmd=a"]);
    expect(over).toEqual(["PAMIR_KEY"]);
    expect(ends[1].destroyed).toBe(true);
  });

  it("a record that is left out, or sent back to its sender, ends the connection", async () => {
    const { ends, lines } = await sealed();
    const [one, other] = lines.map(listen);
    ends[0].change = () => Buffer.alloc(0);
    lines[0].send("cmd=a");
    ends[0].change = (bytes) => bytes;
    lines[0].send("cmd=b");
    await turns();
    expect([other?.got, other?.ends]).toEqual([[], ["PAMIR_KEY"]]);
    const back = await sealed();
    const sender = listen(back.lines[0]);
    back.ends[0].change = (bytes) => {
      back.ends[0].push(bytes);
      return bytes;
    };
    back.lines[0].send("cmd=a");
    await turns();
    expect([sender.got, sender.ends]).toEqual([[], ["PAMIR_KEY"]]);
    expect(one?.got).toEqual([]);
  });

  it("a cut connection ends with the lines that were whole", async () => {
    const { ends, lines } = await sealed();
    const { got, ends: over } = listen(lines[1]);
    lines[0].send("cmd=a");
    ends[0].change = (bytes) => bytes.subarray(0, bytes.length - 1);
    lines[0].send("cmd=b");
    ends[0].end();
    await turns();
    expect([got, over]).toEqual([["cmd=a"], [undefined]]);
  });
});

function flip(bytes: Buffer, place: number): Buffer {
  bytes[place] = (bytes[place] as number) ^ 1;
  return bytes;
}

describe("a peer without the key", () => {
  it.each<[string, () => Uint8Array]>([
    ["random bytes", () => randomBytes(72)],
    ["the magic and random bytes", () => Buffer.concat([Buffer.from("PAMIRRV1"), randomBytes(64)])],
    ["HTTP", () => Buffer.from(`GET / HTTP/1.1\r\n\r\n${"x".repeat(200)}`)],
    ["much", () => Buffer.alloc(100_000)],
  ])("gets no byte from an acceptor: %s", async (_, bytes) => {
    const [attacker, end] = connection();
    const refused = failure(sealLines(end, KEY, "acceptor", LONG_MS));
    attacker.write(bytes());
    expect(await refused).toBeInstanceOf(HandshakeError);
    expect([end.sent, end.destroyed]).toEqual([[], true]);
  });

  it("with another key, neither accepts nor is accepted", async () => {
    const [one, other] = connection();
    const sides = [
      failure(sealLines(one, OTHER_KEY, "initiator", LONG_MS)),
      failure(sealLines(other, KEY, "acceptor", LONG_MS)),
    ];
    expect((await Promise.all(sides)).map(({ message }) => message)).toEqual([
      "it closed the connection during the handshake",
      "it has another job key",
    ]);
    expect(other.sent).toEqual([]);
  });

  it("gets for a recorded HELLO a REPLY of the same length, and its recorded lines don't open", async () => {
    const recorded = await sealed();
    recorded.lines[0].send("cmd=initack pmiid=1");
    const [hello, line] = recorded.ends[0].sent as [Buffer, Buffer];
    const [attacker, end] = connection();
    const accepted = sealLines(end, KEY, "acceptor", LONG_MS);
    attacker.write(hello);
    const { got, ends } = listen(await accepted);
    expect(Buffer.concat(end.sent)).toHaveLength(hello.length);
    expect(end.sent[0]).not.toEqual(recorded.ends[1].sent[0]);
    attacker.write(line);
    await turns();
    expect([got, ends, end.sent.length]).toEqual([[], ["PAMIR_KEY"], 1]);
  });

  it("cannot answer an initiator with its own HELLO, nor with a recorded REPLY", async () => {
    const recorded = await sealed();
    const [, reply] = [recorded.ends[0].sent[0], recorded.ends[1].sent[0]] as [Buffer, Buffer];
    for (const answer of [(hello: Buffer) => hello, () => reply]) {
      const [end, attacker] = connection();
      const refused = failure(sealLines(end, KEY, "initiator", LONG_MS));
      await turns();
      attacker.write(answer(end.sent[0] as Buffer));
      expect((await refused).message).toBe("it has another job key");
      // The initiator has sent nothing but its HELLO.
      expect([end.sent.length, end.destroyed]).toEqual([1, true]);
    }
  });

  it("that appends to a HELLO is refused", async () => {
    const recorded = await sealed();
    const [attacker, end] = connection();
    const refused = failure(sealLines(end, KEY, "acceptor", LONG_MS));
    attacker.write(Buffer.concat([recorded.ends[0].sent[0] as Buffer, Buffer.from("x")]));
    expect((await refused).message).toBe("it sent more than a handshake");
    expect(end.sent).toEqual([]);
  });

  it("that is silent, or stops in the middle, is given up", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      for (const bytes of ["", "PAMIRRV1", "PAM"]) {
        const [attacker, end] = connection();
        const refused = failure(sealLines(end, KEY, "acceptor", 2500));
        if (bytes !== "") attacker.write(bytes);
        await turns();
        vi.advanceTimersByTime(2500);
        expect((await refused).message).toBe("it sent no handshake within 2.5 s");
        expect([end.sent, end.destroyed]).toEqual([[], true]);
      }
    } finally {
      vi.useRealTimers();
    }
  });
});

it("random changes of a connection never make a line arrive that was not sent", async () => {
  const bytes = fc.record({
    place: fc.integer({ min: 0, max: 400 }),
    kind: fc.constantFrom("flip", "drop", "insert"),
    byte: fc.integer({ min: 0, max: 255 }),
  });
  let changed = 0;
  const run = async (edits: readonly { place: number; kind: string; byte: number }[]): Promise<void> => {
    const { ends, lines } = await sealed();
    const { got } = listen(lines[1]);
    const sent = Array.from({ length: 8 }, (_, i) => `cmd=put key=${i} value=${"v".repeat(i)}`);
    const wire: Buffer[] = [];
    ends[0].change = (part) => {
      wire.push(part);
      return Buffer.alloc(0);
    };
    for (const line of sent) lines[0].send(line);
    let all = Buffer.concat(wire);
    for (const { place, kind, byte } of edits) {
      const at = Math.min(place, all.length - 1);
      if (kind === "flip") all[at] = (all[at] as number) ^ (byte | 1);
      else
        all = Buffer.concat([
          all.subarray(0, at),
          Buffer.from(kind === "insert" ? [byte] : []),
          all.subarray(kind === "drop" ? at + 1 : at),
        ]);
    }
    ends[1].push(all);
    await turns();
    // A prefix of what was sent: nothing else opens.
    expect(got).toEqual(sent.slice(0, got.length));
    if (got.length < sent.length) changed++;
  };
  const cases: Promise<void>[] = [];
  assertProperty(
    fc.property(fc.array(bytes, { minLength: 1, maxLength: 3 }), (edits) => {
      cases.push(run(edits));
    }),
    100,
  );
  await Promise.all(cases);
  expect(changed).toBeGreaterThan(10);
});
