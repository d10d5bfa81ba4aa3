// Nodes that meet at a NATS server, many in this process, and a stranger without the job key who has recorded earlier meetings.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type MeetingOptions, meetAtNats } from "../../src/bootstrap/nats/meeting.js";
import { SealedMessages } from "../../src/bootstrap/nats/sealed-messages.js";
import { VERSION } from "../../src/generated/version.js";
import { connectNats, type NatsConnection } from "../../src/nats/connection.js";
import { randomId } from "../../src/nats/ids.js";
import { natsPlace } from "../../src/nats/place.js";
import { pause } from "../../src/support/timers.js";
import { NATS_SERVER, NatsServer } from "../support/nats-server.js";

const KEY = Uint8Array.from({ length: 32 }, (_, i) => i + 1);
const FAILED = "failed";
let jobs = 0;
let server: NatsServer;
const connections = new Set<NatsConnection>();

async function connect(job: string): Promise<NatsConnection> {
  const connection = await connectNats(natsPlace({ nats: server.url, job }), { name: "test" });
  connections.add(connection);
  return connection;
}

type Outcome = { readonly node: number; readonly epoch: string } | { readonly failed: string };

interface Member {
  readonly connection: NatsConnection;
  readonly outcome: Promise<Outcome>;
}

async function member(job: string, options: Partial<MeetingOptions> = {}): Promise<Member> {
  const connection = await connect(job);
  const given = { job, key: KEY, nodes: 2, tasks: 1, host: "here", timeout: 100_000, ...options };
  const outcome = meetAtNats(connection, given).then(
    ({ node, epoch }) => ({ node, epoch }),
    (error) => ({ [FAILED]: String(error.message) }) as Outcome,
  );
  return { connection, outcome };
}

interface Recorded {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly reply: string | undefined;
}

/** Records all that is said about a job. */
async function record(job: string): Promise<{ readonly stranger: NatsConnection; readonly recorded: Recorded[] }> {
  const stranger = await connect(job);
  const recorded: Recorded[] = [];
  stranger.subscribe(`pamir.${job}.>`, {
    callback: (_, { subject, data, reply }) => recorded.push({ subject, data: data.slice(), reply }),
  });
  await stranger.flush();
  return { stranger, recorded };
}

/** Nodes with one epoch, and each number once. */
function expectWhole(outcomes: readonly Outcome[]): void {
  expect(outcomes.map((one) => ("node" in one ? one.node : one.failed)).sort((a, b) => Number(a) - Number(b))).toEqual(
    outcomes.map((_, i) => i),
  );
  expect(new Set(outcomes.map((one) => "epoch" in one && one.epoch)).size).toBe(1);
}

const outcomesOf = (members: readonly Member[]): Promise<Outcome[]> =>
  Promise.all(members.map(({ outcome }) => outcome));

describe.skipIf(NATS_SERVER === undefined)("a meeting", () => {
  let job: string;
  beforeAll(async () => {
    server = await NatsServer.start();
  });
  afterAll(() => server.close());
  afterEach(async () => {
    await Promise.all([...connections].map((one) => one.close()));
    connections.clear();
  });

  async function earlier(
    nodes: number,
  ): Promise<{ stranger: NatsConnection; recorded: readonly Recorded[]; now: readonly Recorded[] }> {
    job = `meeting-${process.pid}-${++jobs}`;
    const { stranger, recorded } = await record(job);
    const members = await Promise.all(Array.from({ length: nodes }, () => member(job, { nodes })));
    expectWhole(await outcomesOf(members));
    await Promise.all(members.map(({ connection }) => connection.close()));
    await stranger.flush();
    return { stranger, recorded: recorded.splice(0), now: recorded };
  }

  /** What the key of this test opens. */
  const opened = ({ data }: Recorded): Record<string, unknown> =>
    (new SealedMessages(KEY, job).open(data) ?? {}) as Record<string, unknown>;

  it("a program that subscribes to all subjects keeps no job from meeting", async () => {
    job = `meeting-${process.pid}-${++jobs}`;
    await record(job);
    const members = await Promise.all([0, 1, 2].map(() => member(job, { nodes: 3 })));
    expectWhole(await outcomesOf(members));
  });

  /** A node or a collector that a test plays: it has the key. */
  async function scripted(name: string): Promise<{
    hear(heard: (said: Record<string, unknown>) => void): void;
    hearOwn(id: string, heard: (said: Record<string, unknown>) => void): void;
    tell(to: string, said: object): void;
    say(said: object): void;
  }> {
    const connection = await connect(name);
    const messages = new SealedMessages(KEY, name);
    const all = `pamir.${name}.boot.${messages.fingerprint}`;
    const subscribe = (subject: string, heard: (said: Record<string, unknown>) => void): void => {
      connection.subscribe(subject, {
        callback: (_, { data }) => heard((messages.open(data) ?? {}) as Record<string, unknown>),
      });
    };
    return {
      hear: (heard) => subscribe(all, heard),
      hearOwn: (id, heard) => subscribe(`${all}.m.${id}`, heard),
      tell: (to, said) => connection.publish(`${all}.m.${to}`, messages.seal({ ...said, to })),
      say: (said) => connection.publish(all, messages.seal(said)),
    };
  }

  /** Waits for a collector. */
  async function collecting(recorded: readonly Recorded[]): Promise<void> {
    while (!recorded.some((one) => "claim" in opened(one))) await pause(20);
  }

  it("a recorded join of an earlier meeting takes no number", async () => {
    const { stranger, recorded, now } = await earlier(2);
    const joins = recorded.filter((one) => "join" in opened(one));
    const first = await member(job);
    await collecting(now);
    for (const { subject, data } of joins) stranger.publish(subject, data, { reply: `pamir.${job}.stranger` });
    await pause(300);
    expectWhole(await outcomesOf([first, await member(job)]));
  });

  it("a recorded start of an earlier meeting gives no number", async () => {
    const { stranger, recorded } = await earlier(2);
    const starts = recorded.filter((one) => "start" in opened(one));
    expect(starts.length).toBeGreaterThan(0);
    stranger.subscribe(`pamir.${job}.boot.*`, {
      callback: (_, { reply = "" }) => {
        for (const { data } of starts) if (reply !== "") stranger.publish(reply, data);
      },
    });
    await stranger.flush();
    const first = await member(job);
    await pause(700);
    expectWhole(await outcomesOf([first, await member(job)]));
  });

  it("all that an earlier meeting said, again and again, to every node", async () => {
    const { stranger, recorded } = await earlier(4);
    const own = new Set(recorded.map(({ subject }) => subject));
    const to = new Set(own);
    stranger.subscribe(`pamir.${job}.boot.*`, { callback: (_, { reply }) => reply !== undefined && to.add(reply) });
    await stranger.flush();
    // IDs are random: a claim of a smaller one than that of the collector comes in one of two meetings.
    for (let round = 0; round < 3; round++) {
      let isOver = false;
      const replay = (async () => {
        while (!isOver) {
          for (const { data, reply } of recorded)
            for (const subject of to) stranger.publish(subject, data, reply === undefined ? {} : { reply });
          await pause(50);
        }
      })();
      const members = [await member(job, { nodes: 3 }), await member(job, { nodes: 3 })];
      await pause(700);
      members.push(await member(job, { nodes: 3 }));
      const outcomes = await outcomesOf(members);
      isOver = true;
      await replay;
      expectWhole(outcomes);
      await Promise.all(members.map(({ connection }) => connection.close()));
    }
  });

  it("twenty nodes at once meet as one job", async () => {
    job = `meeting-${process.pid}-${++jobs}`;
    const members = await Promise.all(Array.from({ length: 20 }, () => member(job, { nodes: 20 })));
    expectWhole(await outcomesOf(members));
  });

  it("of more nodes than the job has, some meet as one job, and the others are refused", async () => {
    const meeting = async (): Promise<void> => {
      const name = `meeting-${process.pid}-${++jobs}`;
      let giveUp = (): void => {};
      const givenUp = new Promise<void>((resolve) => {
        giveUp = resolve;
      });
      const members = await Promise.all(Array.from({ length: 5 }, () => member(name, { nodes: 3, givenUp })));
      let met = 0;
      const enough = new Promise<void>((resolve) => {
        for (const { outcome } of members) void outcome.then((one) => "node" in one && ++met === 3 && resolve());
      });
      // Those that find each other, and not the job, wait for one more.
      await Promise.race([enough.then(() => pause(3000)), outcomesOf(members)]);
      giveUp();
      const outcomes = await outcomesOf(members);
      expectWhole(outcomes.filter((one) => "node" in one));
      expect(outcomes.filter((one) => "node" in one).length).toBe(3);
    };
    // Many at once: the turns of their nodes differ.
    await Promise.all(Array.from({ length: 12 }, meeting));
  });

  it("a node that has answered a round answers no other collector for twice its time", async () => {
    job = `meeting-${process.pid}-${++jobs}`;
    const script = await scripted(job);
    const [first, second] = [randomId(), randomId()];
    let unanswered = 0;
    const answered: string[] = [];
    const over = new Promise<void>((resolve) => {
      script.hear(({ join, round }) => {
        if (round !== undefined) answered.push(round as string);
        if (answered.length === 2) resolve();
        if (join === undefined || answered.length === 2) return;
        if (answered.length === 1 && round === undefined) unanswered++;
        const from = answered.length === 0 ? first : second;
        script.tell(join as string, { from, wait: ["elsewhere"], round: from });
      });
    });
    const { outcome } = await member(job, { givenUp: over });
    await over;
    expect(answered).toEqual([first, second]);
    // Twice a second, for twice the two seconds of a round.
    expect(unanswered).toBeGreaterThanOrEqual(8);
    expect(await outcome).toMatchObject({ failed: expect.stringContaining("gives up") });
  });

  it("a collector counts on no answer that comes after the time of its round", async () => {
    job = `meeting-${process.pid}-${++jobs}`;
    const script = await scripted(job);
    const own = randomId();
    const come = { join: own, nodes: 2, tasks: 1, spare: 0, host: "here", version: VERSION };
    const rounds: string[] = [];
    let claims = 0;
    const started = new Promise<unknown>((resolve) => {
      script.hear((said) => void (said.claim !== undefined && claims++));
      script.hearOwn(own, ({ round, start }) => {
        if (start !== undefined) resolve(rounds.length);
        if (round === undefined || rounds.includes(round as string)) return;
        rounds.push(round as string);
        // The second round comes with a claim: it is answered at once.
        if (rounds.length > 1) script.say({ ...come, round });
      });
    });
    await pause(100);
    const { outcome } = await member(job);
    while (claims === 0) await pause(5);
    // The first round begins between two claims, and is answered between its end and the next claim.
    await pause(250);
    script.say(come);
    // Its time begins once the collector has heard of the node.
    while (rounds.length === 0) await pause(5);
    await pause(2150);
    script.say({ ...come, round: rounds[0] });
    expect(await started).toBe(2);
    script.say({ has: own });
    expect(await outcome).toMatchObject({ node: expect.any(Number) });
  });

  it("a node whose server has gone fails in time", async () => {
    job = `meeting-${process.pid}-${++jobs}`;
    const own = await NatsServer.start();
    try {
      const connection = await connectNats(natsPlace({ nats: own.url, job }), { name: "test" });
      connections.add(connection);
      const given = { job, key: KEY, nodes: 2, tasks: 1, host: "here", timeout: 2000 };
      const met = meetAtNats(connection, given).catch((error) => error.code);
      await pause(500);
      await own.kill();
      expect(await Promise.race([met, pause(60_000)])).toBe("PAMIR_TIMEDOUT");
    } finally {
      await own.close();
    }
  });

  it("junk does nothing", async () => {
    job = `meeting-${process.pid}-${++jobs}`;
    const { stranger, recorded } = await record(job);
    const first = await member(job);
    await collecting(recorded);
    const subjects = new Set(recorded.flatMap(({ subject, reply = subject }) => [subject, reply]));
    const texts = ["", "{}", "null", '{"start":0,"epoch":"0000000000000000"}', '{"full":true}', '{"claim":"0"}'];
    for (const subject of subjects)
      for (const text of texts) stranger.publish(subject, new TextEncoder().encode(text), { reply: subject });
    for (const subject of subjects) stranger.publish(subject, new Uint8Array(900_000), { reply: subject });
    await pause(200);
    expectWhole(await outcomesOf([first, await member(job)]));
  });
});
