// Streams of bytes over a NATS server: how they end, and what the server's limits do to them.
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import type { Stream } from "../../src/bootstrap/lines.js";
import { connectToSubject, listenAtSubject } from "../../src/bootstrap/nats/nats-stream.js";
import { connectNats, deniedSubject } from "../../src/nats/connection.js";
import { natsPlace } from "../../src/nats/place.js";
import { NATS_SERVER, NatsServer } from "../support/nats-server.js";

describe.skipIf(NATS_SERVER === undefined)("streams over a NATS server", { timeout: 30_000 }, () => {
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
    const near = await connectToSubject(other, "pamir.a.b", "pamir.a.c", 5000, deniedSubject(other, "a"));
    return { one, other, near, far: await taken };
  }

  it.each([64, 1024])("what is longer than the server's messages of %d bytes goes in several", async (most) => {
    const { one, other, near, far } = await connected(`max_payload: ${most}`);
    const sent = Uint8Array.from({ length: 10_000 }, (_, i) => i);
    near.end(sent);
    const parts: Uint8Array[] = [];
    far.on("data", (part: Uint8Array) => parts.push(part));
    await once(far, "end");
    expect(Buffer.concat(parts).equals(sent)).toBe(true);
    for (const stream of [near, far]) stream.destroy();
    await Promise.all([one.close(), other.close()]);
  });

  it("end with an error once their connection is closed, and throw nothing", async () => {
    const { one, other, near, far } = await connected("");
    const errors: Error[] = [];
    for (const stream of [near, far]) stream.on("error", (error: Error) => errors.push(error));
    await Promise.all([one.close(), other.close()]);
    near.write("x");
    await delay(1500);
    expect(errors.map(({ message }) => message)).toEqual([
      expect.stringMatching(/closed/),
      expect.stringMatching(/closed/),
    ]);
    expect([near.destroyed, far.destroyed]).toEqual([true, true]);
  });
});
