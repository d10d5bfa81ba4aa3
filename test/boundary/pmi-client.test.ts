// The PMI client against servers that answer right, wrong, late or not at all: named rows.
import { describe, expect, it, vi } from "vitest";
import { type Lines, linkedLines } from "../../src/bootstrap/lines.js";
import { PmiClient } from "../../src/bootstrap/pmi/pmi-client.js";
import { PmiServer } from "../../src/bootstrap/pmi/pmi-server.js";
import type { BootstrapWait, OnWait } from "../../src/bootstrap/waits.js";
import { nextTurn } from "../../src/support/host.js";

/** A client, and a server that answers each line as a test says: by lines, or by nothing. */
function scripted(answers: (line: string) => readonly string[], timeout = 60_000, onWait?: OnWait, onEnd = () => {}) {
  const [own, other] = linkedLines();
  const asked: string[] = [];
  other.start({
    onLine(line) {
      asked.push(line);
      for (const answer of answers(line)) other.send(answer);
    },
    onEnd,
  });
  return { client: new PmiClient(own, "the server", timeout, onWait), asked, other };
}

const RIGHT: Readonly<Record<string, string>> = {
  init: "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
  get_maxes: "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
  get_my_kvsname: "cmd=my_kvsname kvsname=kvs_1",
  put: "cmd=put_result rc=0 msg=success",
  get: "cmd=get_result rc=0 msg=success value=1.AA",
  barrier_in: "cmd=barrier_out",
  finalize: "cmd=finalize_ack",
};
const commandOf = (line: string): string => /^cmd=(\w+)/.exec(line)?.[1] ?? "";
const right = (line: string): string[] => [RIGHT[commandOf(line)] as string];

async function begun(client: PmiClient): Promise<PmiClient> {
  await client.init();
  await client.getMaxes();
  await client.getMyKvsname();
  return client;
}

describe("what is sent", () => {
  it("one request at a time, in the order of the calls", async () => {
    const { client, asked } = scripted(right);
    await Promise.all([
      client.init(),
      client.getMaxes(),
      client.getMyKvsname(),
      client.put("a", Uint8Array.of(1, 2, 3)),
      client.barrier(),
      client.get("a"),
      client.finalize(),
    ]);
    expect(asked).toEqual([
      "cmd=init pmi_version=1 pmi_subversion=1",
      "cmd=get_maxes",
      "cmd=get_my_kvsname",
      "cmd=put kvsname=kvs_1 key=a value=1.AQID",
      "cmd=barrier_in",
      "cmd=get kvsname=kvs_1 key=a",
      "cmd=finalize",
    ]);
    await expect(client.barrier()).rejects.toMatchObject({ code: "PAMIR_CLOSED" });
  });

  it("initack, whose answer has three lines behind it", async () => {
    const seat = ["cmd=initack rc=0", "cmd=set size=4", "cmd=set rank=3", "cmd=set debug=0"];
    const { client, asked } = scripted(() => seat);
    expect(await client.initack("3", { size: 4 })).toEqual({ size: 4, rank: 3 });
    expect(asked).toEqual(["cmd=initack pmiid=3 size=4"]);
  });
});

describe("values", () => {
  /** Clients of a real server, over values of the limits that it says. */
  async function pair(maxes?: string): Promise<[PmiClient, PmiClient, string[]]> {
    const server = new PmiServer({ size: 2, kvsname: "kvs" });
    const lines: string[] = [];
    const clients = [0, 1].map((rank) => {
      const [own, other] = linkedLines();
      server.serve(other, rank);
      const watched: Lines = {
        start: ({ onLine, onEnd }) =>
          own.start({
            onEnd,
            onLine: (line) => onLine(maxes !== undefined && line.startsWith("cmd=maxes") ? maxes : line),
          }),
        send(line) {
          lines.push(line);
          own.send(line);
        },
        end: () => own.end(),
        destroy: () => own.destroy(),
      };
      return new PmiClient(watched, "the server", 60_000);
    }) as [PmiClient, PmiClient];
    for (const client of clients) await begun(client);
    return [...clients, lines];
  }

  const SIZES = [0, 1, 2, 3, 700, 703, 704, 705, 2000, 65_535, 65_536];

  it.each([
    ["as pamir's server has them", undefined],
    ["short", "cmd=maxes kvsname_max=256 keylen_max=32 vallen_max=100"],
  ])("of all sizes come back, over limits %s", async (_, maxes) => {
    const [one, other, lines] = await pair(maxes);
    const values = SIZES.map((size) => Uint8Array.from({ length: size }, (_, i) => (i * 7 + size) & 0xff));
    for (const [i, value] of values.entries()) await one.put(`value.${i}`, value);
    await Promise.all([one.barrier(), other.barrier()]);
    for (const [i, value] of values.entries()) {
      expect(Buffer.compare((await other.get(`value.${i}`)) as Uint8Array, value), `${value.length} bytes`).toBe(0);
    }
    expect(await other.get("value.none")).toBeUndefined();
    // What MPICH's own code reads: 1,024 bytes, with the line feed and its terminating zero.
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(1023);
  });

  it.each([
    ["an empty key", "", 1],
    ["a key that is too long", "k".repeat(25), 1],
    ["a key with a space", "a b", 1],
    ["a key of a part", "a/1", 1],
    ["a value that is too long", "a", 65_537],
  ])("%s is refused, and nothing is sent", async (_, key, size) => {
    const { client, asked } = scripted(right);
    await expect(client.put(key, new Uint8Array(size))).rejects.toMatchObject({ code: "PAMIR_INVAL" });
    if (size === 1) await expect(client.get(key)).rejects.toMatchObject({ code: "PAMIR_INVAL" });
    await expect(client.put("a", "text" as unknown as Uint8Array)).rejects.toMatchObject({ code: "PAMIR_INVAL" });
    expect(asked).toEqual([]);
  });

  it("a server with too short keys, or too short values for one of 64 KiB, is named", async () => {
    const [one] = await pair("cmd=maxes kvsname_max=256 keylen_max=28 vallen_max=60");
    await expect(one.put("k".repeat(24), new Uint8Array(1))).rejects.toThrow(
      /has 28 bytes; the server takes less than 28/,
    );
    await expect(one.put("a", new Uint8Array(65_536))).rejects.toThrow(
      /needs \d+ parts at the server, not at most 999/,
    );
    await one.put("a", new Uint8Array(1));
  });

  it.each([
    ["not of pamir", "cmd=get_result rc=0 value=(vector,(0,2,1))", /was not stored by pamir: "\(vector/],
    ["without parts", "cmd=get_result rc=0 value=0.AA", /was not stored by pamir/],
    ["of too many parts", "cmd=get_result rc=0 value=1000.AA", /was not stored by pamir/],
    ["of other characters", "cmd=get_result rc=0 value=1.A+", /was not stored by pamir/],
    ["whose second part is another value", "cmd=get_result rc=0 value=2.AA", /part 1 of 2 of the value of a is "2.AA"/],
  ])("a value %s is an error of its call alone", async (_, answer, why) => {
    const { client } = scripted((line) => (commandOf(line) === "get" ? [answer] : right(line)));
    await begun(client);
    await expect(client.get("a")).rejects.toMatchObject({ code: "PAMIR_PMI", message: expect.stringMatching(why) });
    await client.barrier();
  });

  it.each(["cmd=get_result rc=-1 msg=key_a_not_found value=unknown", "cmd=get_result rc=1"])(
    "%s is no value",
    async (answer) => {
      const { client } = scripted((line) => (commandOf(line) === "get" ? [answer] : right(line)));
      await begun(client);
      expect(await client.get("a")).toBeUndefined();
      expect(await client.getText("a")).toBeUndefined();
    },
  );
});

describe("wrong answers fail the client", () => {
  it.each([
    ["nonsense", "init", "HTTP/1.1 400 Bad Request", /^the server failed while .* init: malformed line of PMI-1/],
    [
      "the answer to something else",
      "init",
      "cmd=maxes",
      /^the server answered init with "maxes", not with response_to_init/,
    ],
    [
      "another version",
      "init",
      "cmd=response_to_init pmi_version=2 rc=0",
      /^the server speaks version "2" of PMI, not 1/,
    ],
    ["no number", "get_maxes", "cmd=maxes kvsname_max=x", /sent maxes with kvsname_max="x", not with a number/],
    ["no name", "get_my_kvsname", "cmd=my_kvsname", /answered get_my_kvsname with ""/],
    ["a request of several lines", "init", "mcmd=response_to_init", /not with response_to_init/],
  ])("%s", async (_, command, answer, why) => {
    const { client } = scripted((line) => (commandOf(line) === command ? [answer] : right(line)));
    const error = expect.objectContaining({ code: "PAMIR_PMI", message: expect.stringMatching(why) });
    await expect(begun(client)).rejects.toEqual(error);
    // It says the same from then on.
    await expect(client.barrier()).rejects.toEqual(error);
  });

  it("a refusal is an error of its call alone", async () => {
    const no = "cmd=put_result rc=-1 msg=duplicate_key_a";
    const { client } = scripted((line) => (commandOf(line) === "put" ? [no] : right(line)));
    await begun(client);
    await expect(client.put("a", new Uint8Array(1))).rejects.toMatchObject({
      code: "PAMIR_PMI",
      message: "the server refused put of a: rc=-1, duplicate key a",
    });
    await client.barrier();
  });

  it.each([
    [["cmd=initack rc=0", "cmd=set size=2", "cmd=set rank=2", "cmd=set debug=0"], /answered initack with rank 2 of 2/],
    [["cmd=initack rc=0", "cmd=set rank=1"], /sent set with size="", not with a number/],
    [["cmd=initack rc=0", "cmd=barrier_out"], /answered set size, behind initack with "barrier_out", not with set/],
  ])("%j as an answer to initack", async (answers, why) => {
    const { client } = scripted(() => answers);
    await expect(client.initack("1")).rejects.toMatchObject({ code: "PAMIR_PMI", message: expect.stringMatching(why) });
  });

  it("more lines than were asked for", async () => {
    const { client, other } = scripted(right);
    for (let i = 0; i < 9; i++) other.send("cmd=barrier_out");
    await nextTurn();
    await expect(client.init()).rejects.toThrow(/sent "barrier_out", for which it was not asked/);
  });
});

describe("the end of the server", () => {
  it("rejects what waits, and says for what it waited", async () => {
    const { client, other } = scripted((line) => (commandOf(line) === "barrier_in" ? [] : right(line)));
    await begun(client);
    const barrier = client.barrier();
    const later = client.get("a");
    const rejected = Promise.all([
      expect(barrier).rejects.toMatchObject({
        code: "PAMIR_BOOTSTRAP",
        message:
          "the server ended the connection while this process waited for the answer to barrier_in, which waits for all processes",
      }),
      expect(later).rejects.toMatchObject({ code: "PAMIR_BOOTSTRAP" }),
    ]);
    await nextTurn();
    other.end();
    await rejected;
  });

  it("while an answer is awaited, onWait tells every five seconds of which, for how long, and how long at most", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    try {
      const waits: BootstrapWait[] = [];
      const silent = ["put", "barrier_in"];
      const answers = (line: string) => (silent.includes(commandOf(line)) ? [] : right(line));
      const { client, other } = scripted(answers, 60_000, (wait) => waits.push(wait));
      await begun(client);
      const told = async (): Promise<string[]> => {
        await nextTurn();
        for (let i = 0; i < 11; i++) vi.advanceTimersByTime(1000);
        return waits.splice(0).map(({ waited, most, what }) => `${waited} of ${most}: ${what}`);
      };
      const put = client.put("a", new Uint8Array(1));
      const what = "the answer of the server to put of a";
      expect(await told()).toEqual([`5000 of 60000: ${what}`, `10000 of 60000: ${what}`]);
      other.send(RIGHT.put as string);
      await put;
      expect(await told()).toEqual([]);
      const barrier = client.barrier(() => client.barrierText(4));
      const all = "a barrier of 4 processes at the server";
      expect(await told()).toEqual([`5000 of 60000: ${all}`, `10000 of 60000: ${all}`]);
      other.send(RIGHT.barrier_in as string);
      await barrier;
      expect(await told()).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("silence rejects after the timeout, and says for what and how long it waited", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    try {
      const { client } = scripted((line) => (commandOf(line) === "put" ? [] : right(line)), 2500);
      await begun(client);
      const put = client.put("a", new Uint8Array(1));
      let isOver = false;
      const rejected = expect(put.finally(() => (isOver = true))).rejects.toMatchObject({
        code: "PAMIR_TIMEDOUT",
        message: "the server did not answer within 2.5 s: put of a",
      });
      await nextTurn();
      vi.advanceTimersByTime(2499);
      await nextTurn();
      expect(isOver).toBe(false);
      vi.advanceTimersByTime(1);
      await rejected;
    } finally {
      vi.useRealTimers();
    }
  });

  it.each([
    ["a launcher's", "kvs_1", 1000],
    ["pamir's own", "pamir_1", 0],
  ])("%s server (%s): its connection ends %i ms after a failure", async (_, kvsname, time) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    try {
      const answers: Record<string, string[]> = {
        get_my_kvsname: [`cmd=my_kvsname kvsname=${kvsname}`],
        barrier_in: [],
      };
      const onEnd = vi.fn();
      const { client } = scripted((line) => answers[commandOf(line)] ?? right(line), 2500, undefined, onEnd);
      await begun(client);
      const rejected = expect(client.barrier()).rejects.toMatchObject({ code: "PAMIR_TIMEDOUT" });
      await nextTurn();
      vi.advanceTimersByTime(2500);
      await rejected;
      for (const hasEnded of time === 0 ? [true] : [false, true]) {
        await nextTurn();
        expect(onEnd.mock.calls).toHaveLength(hasEnded ? 1 : 0);
        vi.advanceTimersByTime(time);
      }
    } finally {
      vi.useRealTimers();
    }
  });

  it("destroy() rejects what waits", async () => {
    const { client } = scripted((line) => (commandOf(line) === "barrier_in" ? [] : right(line)));
    await begun(client);
    const rejected = expect(client.barrier()).rejects.toMatchObject({ code: "PAMIR_CLOSED" });
    await nextTurn();
    client.destroy();
    await rejected;
  });
});

describe("a barrier that fails", () => {
  it.each([
    [
      "rc=-1 pamir=lost ranks=3 msg=ended_its_connection_before_it_finalized",
      "PAMIR_BOOTSTRAP",
      "the barrier failed: rank 3 ended its connection before it finalized",
    ],
    [
      "rc=-1 pamir=timedout ranks=1-2,5 msg=did_not_come_within_60_s",
      "PAMIR_TIMEDOUT",
      "the barrier failed: ranks 1-2, 5 did not come within 60 s",
    ],
    ["rc=-1", "PAMIR_BOOTSTRAP", "the barrier failed: without a reason"],
  ])("%s", async (answer, code, message) => {
    const { client } = scripted((line) =>
      commandOf(line) === "barrier_in" ? [`cmd=barrier_out ${answer}`] : right(line),
    );
    await begun(client);
    await expect(client.barrier()).rejects.toMatchObject({ code, message });
    await expect(client.put("a", new Uint8Array(1))).rejects.toMatchObject({ code });
  });
});
