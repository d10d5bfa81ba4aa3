// The PMI server against clients that do everything right, and against hostile ones: named rows.
import { duplexPair } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import { type Lines, linkedLines, StreamLines } from "../../src/bootstrap/lines.js";
import { PmiServer, type PmiServerOptions } from "../../src/bootstrap/pmi/pmi-server.js";
import { PlainFraming } from "../../src/bootstrap/pmi/pmi-wire.js";
import { nextTurn } from "../../src/support/host.js";

/** A client that sends whatever a test wants. */
class RawClient {
  readonly #lines: Lines;
  /** What came since the last `take`. */
  #got: string[] = [];
  isEnded = false;

  constructor(lines: Lines) {
    this.#lines = lines;
    lines.start({
      onLine: (line) => this.#got.push(line),
      onEnd: () => {
        this.isEnded = true;
      },
    });
  }

  send(...lines: readonly string[]): void {
    for (const line of lines) this.#lines.send(line);
  }

  end(): void {
    this.#lines.end();
  }

  async take(): Promise<string[]> {
    await nextTurn();
    return this.#got.splice(0);
  }

  /** Sends lines and takes the answers. */
  ask(...lines: readonly string[]): Promise<string[]> {
    this.send(...lines);
    return this.take();
  }
}

interface Rig {
  readonly server: PmiServer;
  readonly refused: string[];
  readonly lost: [number, string][];
  /** A connection; with a rank, the server knows it. */
  connect(rank?: number): RawClient;
}

function rig(options: Partial<PmiServerOptions> = {}): Rig {
  const refused: string[] = [];
  const lost: [number, string][] = [];
  const server = new PmiServer({
    size: 3,
    kvsname: "kvs",
    onRefused: (why) => refused.push(why),
    onLost: (rank, why) => lost.push([rank, why]),
    ...options,
  });
  const connect = (rank?: number): RawClient => {
    const [own, other] = linkedLines();
    server.serve(other, rank);
    return new RawClient(own);
  };
  return { server, refused, lost, connect };
}

const INIT = "cmd=init pmi_version=1 pmi_subversion=1";

describe("answers", () => {
  it.each([
    [INIT, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"],
    ["cmd=init pmi_version=2 pmi_subversion=0", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1"],
    ["cmd=get_maxes", "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024"],
    ["cmd=get_appnum", "cmd=appnum rc=0 appnum=0"],
    ["cmd=get_my_kvsname", "cmd=my_kvsname rc=0 kvsname=kvs"],
    ["cmd=get_universe_size", "cmd=universe_size rc=0 size=3"],
    ["cmd=put kvsname=kvs key=a value=1", "cmd=put_result rc=0 msg=success"],
    ["cmd=put kvsname=kvs key=preset value=1", "cmd=put_result rc=-1 pamir=refused msg=duplicate_key_preset"],
    ["cmd=put kvsname=other key=a value=1", "cmd=put_result rc=-1 pamir=refused msg=no_such_key-value_space"],
    ["cmd=put kvsname=kvs value=1", 'cmd=put_result rc=-1 pamir=refused msg=a_put_of_key_""'],
    [`cmd=put kvsname=kvs key=${"k".repeat(65)} value=1`, expect.stringMatching(/^cmd=put_result rc=-1 pamir=refused/)],
    [`cmd=put kvsname=kvs key=${"k".repeat(64)} value=1`, "cmd=put_result rc=0 msg=success"],
    ["cmd=get kvsname=kvs key=preset", "cmd=get_result rc=0 msg=success value=(vector,(0,3,1))"],
    ["cmd=get kvsname=kvs key=b", "cmd=get_result rc=-1 msg=key_b_not_found value=unknown"],
    ["cmd=get kvsname=other key=preset", "cmd=get_result rc=-1 msg=kvs_not_found value=unknown"],
    ["cmd=publish_name service=a port=b", "cmd=publish_result rc=-1 msg=names_are_not_published"],
    ["cmd=unpublish_name service=a", "cmd=unpublish_result rc=-1 msg=names_are_not_published"],
    ["cmd=lookup_name service=a", "cmd=lookup_result rc=-1 msg=names_are_not_published"],
    ["cmd=spawn", "cmd=spawn_result rc=-1 msg=spawn_is_not_supported"],
    ["cmd=finalize", "cmd=finalize_ack rc=0"],
  ])("%s", async (request, answer) => {
    const { connect, refused } = rig({ values: { preset: "(vector,(0,3,1))" } });
    expect(await connect(1).ask(request)).toEqual([answer]);
    expect(refused).toEqual([]);
  });

  it("initack says size and rank, and the rest goes on", async () => {
    const { connect, server } = rig();
    const client = connect();
    expect(await client.ask("cmd=initack pmiid=2", INIT)).toEqual([
      "cmd=initack rc=0",
      "cmd=set size=3",
      "cmd=set rank=2",
      "cmd=set debug=0",
      "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
    ]);
    expect([server.missing, server.joined]).toEqual([[0, 1], 1]);
  });

  it("processes that come later store and read values, and pass barriers at once", async () => {
    const { connect, server } = rig({ size: 1, later: 1 });
    const first = connect(0);
    await first.ask(INIT, "cmd=put kvsname=kvs key=a value=1");
    expect(await first.ask("cmd=barrier_in")).toEqual(["cmd=barrier_out rc=0"]);
    expect([server.barriers, server.has("a"), server.has("b")]).toEqual([1, true, false]);
    await first.ask("cmd=finalize");
    const later = connect(1);
    expect(await later.ask(INIT, "cmd=barrier_in", "cmd=get kvsname=kvs key=a")).toEqual([
      "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
      "cmd=barrier_out rc=0",
      "cmd=get_result rc=0 msg=success value=1",
    ]);
    expect([server.barriers, server.missing]).toEqual([1, []]);
    expect(() => connect(2)).toThrow("rank 2 is not from 0 to 1");
  });

  it("refuses to start processes, once for all that one call asks for", async () => {
    const client = rig().connect(0);
    const request = (place: number) => [
      "mcmd=spawn",
      "nprocs=2",
      "execname=./a program with spaces",
      "totspawns=2",
      `spawnssofar=${place}`,
      "arg1=x=y",
      "endcmd",
    ];
    expect(await client.ask(...request(1))).toEqual([]);
    const refusal = "cmd=spawn_result rc=-1 msg=spawn_is_not_supported";
    expect(await client.ask(...request(2), "cmd=get_appnum")).toEqual([refusal, "cmd=appnum rc=0 appnum=0"]);
    expect(await client.ask("mcmd=spawn", "nprocs=1", "endcmd")).toEqual([refusal]);
  });

  it("a value is what another rank stored, at the limit of a value", async () => {
    const { connect } = rig();
    const value = "v".repeat(1024);
    expect(await connect(0).ask(`cmd=put kvsname=kvs key=a value=${value}`)).toEqual([
      "cmd=put_result rc=0 msg=success",
    ]);
    expect(await connect(1).ask("cmd=get kvsname=kvs key=a")).toEqual([
      `cmd=get_result rc=0 msg=success value=${value}`,
    ]);
  });

  it("a rank stores so many keys, and so many bytes, and not one more; the others go on", async () => {
    const { connect } = rig();
    const many = connect(0);
    const keys = Array.from({ length: 4096 }, (_, i) => `cmd=put kvsname=kvs key=m${i} value=`);
    expect(new Set(await many.ask(...keys))).toEqual(new Set(["cmd=put_result rc=0 msg=success"]));
    expect(await many.ask("cmd=put kvsname=kvs key=more value=")).toEqual([
      "cmd=put_result rc=-1 pamir=refused msg=a_process_stores_at_most_4096_keys",
    ]);
    const large = connect(1);
    const value = "v".repeat(1024);
    const puts = Array.from({ length: 2100 }, (_, i) => `cmd=put kvsname=kvs key=l${i} value=${value}`);
    const answers = await large.ask(...puts);
    const taken = answers.filter((answer) => answer === "cmd=put_result rc=0 msg=success").length;
    expect(taken).toBe(answers.findIndex((answer) => answer !== "cmd=put_result rc=0 msg=success"));
    const bytes = (count: number) =>
      Array.from({ length: count }, (_, i) => 1024 + `l${i}`.length).reduce((a, b) => a + b);
    expect(bytes(taken)).toBeLessThanOrEqual(2 * 1024 * 1024);
    expect(bytes(taken + 1)).toBeGreaterThan(2 * 1024 * 1024);
    expect(await connect(2).ask("cmd=put kvsname=kvs key=b value=1")).toEqual(["cmd=put_result rc=0 msg=success"]);
  });
});

describe("barriers", () => {
  it("let all out when the last has come, again and again", async () => {
    const { connect } = rig();
    const clients = [connect(0), connect(1), connect(2)] as const;
    for (let round = 0; round < 3; round++) {
      expect(await clients[0].ask("cmd=barrier_in")).toEqual([]);
      expect(await clients[2].ask("cmd=barrier_in")).toEqual([]);
      expect(await clients[1].ask("cmd=barrier_in")).toEqual(["cmd=barrier_out rc=0"]);
      expect(await clients[0].take()).toEqual(["cmd=barrier_out rc=0"]);
      expect(await clients[2].take()).toEqual(["cmd=barrier_out rc=0"]);
    }
  });

  it.each<[string, (client: RawClient) => void, string]>([
    ["ends", (client) => client.end(), "ended_its_connection_before_it_finalized"],
    ["aborts", (client) => client.send("cmd=abort exitcode=7"), "aborted_with_exit_code_7"],
    ["finalizes", (client) => client.send("cmd=finalize"), "finalized_and_enters_no_more_barriers"],
    ["sends nonsense", (client) => client.send("nonsense"), "was_cut_off_(malformed_line_of_PMI-1:"],
  ])("of others fail when a process %s, which is named", async (_, act, why) => {
    const { connect, lost } = rig();
    const [waiting, gone, later] = [connect(0), connect(1), connect(2)];
    await gone.ask(INIT);
    await waiting.ask("cmd=barrier_in");
    act(gone);
    const [answer] = await waiting.take();
    expect(answer).toContain("cmd=barrier_out rc=-1 pamir=lost ranks=1 msg=");
    expect(answer).toContain(why);
    // So does each later one.
    expect((await later.ask("cmd=barrier_in"))[0]).toContain("rc=-1 pamir=lost ranks=1");
    expect((await waiting.ask("cmd=barrier_in"))[0]).toContain("rc=-1 pamir=lost ranks=1");
    // Values stay.
    expect(await later.ask("cmd=get kvsname=kvs key=b")).toHaveLength(1);
    expect(lost.map(([rank]) => rank)).toEqual(why.startsWith("finalized") ? [] : [1]);
  });

  it("fail behind a finalize, too, and behind a process that spoke no PMI, which is no loss", async () => {
    const { connect, lost, server } = rig();
    const [first, second, third] = [connect(0), connect(1), connect(2)];
    await first.ask("cmd=finalize");
    expect((await second.ask("cmd=barrier_in"))[0]).toContain("pamir=lost ranks=0 msg=finalized");
    third.end();
    await nextTurn();
    first.end();
    await nextTurn();
    expect([lost, server.done]).toEqual([[], 2]);
  });

  it("fail after the time that the first waits, with all that did not come", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const { connect } = rig({ size: 6, barrierTimeout: 60_000 });
      const clients = [connect(0), connect(3)];
      for (const client of clients) await client.ask("cmd=barrier_in");
      vi.advanceTimersByTime(59_999);
      expect(await clients[0]?.take()).toEqual([]);
      vi.advanceTimersByTime(1);
      for (const client of clients) {
        expect(await client.take()).toEqual([
          "cmd=barrier_out rc=-1 pamir=timedout ranks=1-2,4-5 msg=did_not_come_within_60_s",
        ]);
      }
      expect((await connect(1).ask("cmd=barrier_in"))[0]).toContain("pamir=timedout");
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("hostile lines close their connection without an answer", () => {
  it.each([
    ["nonsense", ["GET / HTTP/1.1"], /malformed line of PMI-1/],
    ["bytes", ["\xff\x00"], /malformed line/],
    ["a longer value than PMI-1 has", [`cmd=put kvsname=kvs key=a value=${"v".repeat(1025)}`], /1025 bytes/],
    ["an unknown command", ["cmd=mput"], /the command is unknown: "cmd=mput"/],
    ["a line in a barrier", ["cmd=barrier_in", "cmd=get_maxes"], /a line came while its sender was in a barrier/],
    ["a second barrier in a barrier", ["cmd=barrier_in", "cmd=barrier_in"], /while its sender was in a barrier/],
    ["a spawn without an end", ["mcmd=spawn", ...Array(5000).fill("nprocs=1")], /more than 4096/],
  ])("%s", async (_, lines, why) => {
    const { connect, refused, lost, server } = rig();
    const client = connect(1);
    await client.ask(INIT);
    expect(await client.ask(...lines)).toEqual([]);
    expect([client.isEnded, lost.length, server.done]).toEqual([true, 1, 1]);
    expect(refused).toEqual([expect.stringMatching(why)]);
    expect(refused[0]?.length).toBeLessThan(400);
    // Nothing more is answered.
    expect(await client.ask("cmd=get_maxes")).toEqual([]);
  });

  it("a line after finalize", async () => {
    const { connect, refused, lost } = rig();
    const client = connect(1);
    expect(await client.ask("cmd=finalize", "cmd=get_maxes")).toEqual(["cmd=finalize_ack rc=0"]);
    expect([client.isEnded, lost]).toEqual([true, []]);
    expect(refused).toEqual([expect.stringMatching(/a line came after finalize/)]);
  });

  it("another first line than initack, where the rank is not known", async () => {
    const { connect, refused, lost, server } = rig();
    const client = connect();
    expect(await client.ask(INIT)).toEqual([]);
    expect([client.isEnded, refused, lost]).toEqual([true, [expect.stringMatching(/first line is not initack/)], []]);
    expect(server.joined).toBe(0);
  });

  it("silence instead of a first line", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const { connect, refused } = rig();
      const silent = connect();
      const known = connect(0);
      vi.advanceTimersByTime(10_000);
      await nextTurn();
      expect([silent.isEnded, known.isEnded]).toEqual([true, false]);
      expect(refused).toEqual(["a connection sent no line within 10 s"]);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("processes of no place in the job are told why", () => {
  it.each([
    ["a rank out of range", "pmiid=3", "rank_3_is_not_from_0_to_2"],
    ["no number", "pmiid=x", "rank_-1_is_not_from_0_to_2"],
    ["no rank", "a=b", "rank_-1_is_not_from_0_to_2"],
    ["a rank that is taken", "pmiid=1", "rank_1_is_taken:_another_process_has_it,_or_had_it_before"],
    ["another size", "pmiid=2 size=4", "another_job:_its_size_is_4,_not_3"],
    ["another job", "pmiid=2 job=8", "another_job:_its_job_is_8,_not_7"],
    ["another version", "pmiid=2 version=99", "another_job:_its_version_is_99,_not_1"],
  ])("%s", async (_, fields, why) => {
    const { connect, refused, server } = rig({ job: "7" });
    connect(1);
    const client = connect();
    expect(await client.ask(`cmd=initack ${fields}`)).toEqual([`cmd=initack rc=-1 pamir=refused msg=${why}`]);
    expect([client.isEnded, server.joined, refused]).toEqual([true, 1, [why.replaceAll("_", " ")]]);
  });

  it("bytes that are no line cut a rank off; the reason reads as one sentence", async () => {
    const { lost, server } = rig();
    const [near, far] = duplexPair();
    server.serve(new StreamLines(far, new PlainFraming()), 1);
    near.on("error", () => {}).write(`${INIT}\n${"x".repeat(4096)}`);
    await vi.waitUntil(() => lost.length > 0, { timeout: 60_000 });
    expect(lost).toEqual([
      [1, expect.stringMatching(/^was cut off \(malformed line of PMI-1: no line feed .*\) before it finalized$/)],
    ]);
  });

  it("a rank that was lost is not given again", async () => {
    const { connect } = rig();
    const first = connect();
    await first.ask("cmd=initack pmiid=1", INIT);
    first.end();
    await nextTurn();
    expect((await connect().ask("cmd=initack pmiid=1"))[0]).toContain("rank_1_is_taken");
  });

  it("serve() throws for a rank that its caller can't mean", () => {
    const { connect } = rig();
    connect(1);
    for (const rank of [1, 3, -1, 0.5]) {
      expect(() => connect(rank)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
    }
  });
});

it("close() ends all connections, and those to come", async () => {
  const { connect, server } = rig();
  const clients = [connect(0), connect()];
  server.close();
  clients.push(connect(1));
  await nextTurn();
  expect(clients.map(({ isEnded }) => isEnded)).toEqual([true, true, true]);
});
