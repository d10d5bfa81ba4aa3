// Streams of bytes over a NATS server: how they end, and what the server's limits do to them.
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import type { Stream } from "../../src/bootstrap/lines.js";
import { connectToSubject, listenAtSubject } from "../../src/bootstrap/nats/nats-stream.js";
import { connectNats, deniedSubject } from "../../src/nats/connection.js";
import { natsPlace } from "../../src/nats/place.js";
import { NATS_SERVER, NatsServer } from "../support/nats-server.js";

const FIRST = Uint8Array.of(1, 2, 3);

describe.skipIf(NATS_SERVER === undefined)("streams over a NATS server", () => {
  const servers: NatsServer[] = [];
  afterAll(() => Promise.all(servers.map((server) => server.close())));

  /** Two connections to a server, and a stream between them. */
  async function connected(config: string) {
    const server = await NatsServer.start({ config });
    servers.push(server);
    const place = natsPlace({ nats: server.url, job: "a" });
    const connect = () => connectNats(place, { name: "test" });
    const [one, other] = [await connect(), await connect()];
    let take = (_: Stream): void => {};
    const taken = new Promise<Stream>((resolve) => {
      take = resolve;
    });
    await listenAtSubject(one, "a", "pamir.a.b", (stream) => take(stream));
    const near = await connectToSubject(other, "pamir.a.b", "pamir.a.c", 60_000, deniedSubject(other, "a"));
    near.write(FIRST);
    return { one, other, near, far: await taken };
  }

  it.each([64, 1024])("what is longer than the server's messages of %d bytes goes in several", async (most) => {
    const { one, other, near, far } = await connected(`max_payload: ${most}`);
    const sent = Uint8Array.from({ length: 10_000 }, (_, i) => i);
    near.end(sent);
    const parts: Uint8Array[] = [];
    far.on("data", (part: Uint8Array) => parts.push(part));
    await once(far, "end");
    expect(Buffer.concat([...parts]).equals(Buffer.concat([FIRST, sent]))).toBe(true);
    for (const stream of [near, far]) stream.destroy();
    await Promise.all([one.close(), other.close()]);
  });

  it("are taken once they have data: one that its other side gives up before is none", async () => {
    const server = await NatsServer.start();
    servers.push(server);
    const connection = await connectNats(natsPlace({ nats: server.url, job: "a" }), { name: "test" });
    const answers: (number | undefined)[] = [];
    for (const name of ["c", "d"])
      connection.subscribe(`pamir.a.${name}`, { callback: (_, { data }) => answers.push(data[0]) });
    let taken = 0;
    await listenAtSubject(connection, "a", "pamir.a.b", () => taken++);
    const [ACK, DATA, RESET] = [0, 1, 3];
    const send = (kind: number, number: number, reply: string): void =>
      connection.publish("pamir.a.b", Uint8Array.of(kind, 0, 0, 0, number, 0, 0, 0, 0, 7), { reply });
    send(ACK, 0, "pamir.a.c");
    send(RESET, 0, "pamir.a.c");
    send(ACK, 0, "pamir.a.d");
    await connection.flush();
    await connection.flush();
    expect([taken, answers]).toEqual([0, [ACK, ACK]]);
    send(DATA, 1, "pamir.a.d");
    await connection.flush();
    expect(taken).toBe(1);
    // What comes late for a stream that the listener has closed is no stream.
    const END = 2;
    send(RESET, 0, "pamir.a.d");
    for (const kind of [DATA, END]) send(kind, 2, "pamir.a.d");
    await connection.flush();
    expect(taken).toBe(1);
    await connection.close();
  });

  it("end with an error once their connection is closed, and throw nothing", async () => {
    const { one, other, near, far } = await connected("");
    const errors: Error[] = [];
    for (const stream of [near, far]) stream.on("error", (error: Error) => errors.push(error));
    await Promise.all([one.close(), other.close()]);
    near.write("x");
    while (errors.length < 2) await delay(20);
    expect(errors.map(({ message }) => message)).toEqual([
      expect.stringMatching(/closed/),
      expect.stringMatching(/closed/),
    ]);
    expect([near.destroyed, far.destroyed]).toEqual([true, true]);
  });
});
