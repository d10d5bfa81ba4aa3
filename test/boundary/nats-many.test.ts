// Many nodes that meet at one NATS server: in one process, each with a connection of its own.
import { afterAll, describe, expect, it } from "vitest";
import { meetAtNats } from "../../src/bootstrap/nats/meeting.js";
import { connectNats } from "../../src/nats/connection.js";
import { natsPlace } from "../../src/nats/place.js";
import { bytesFrom } from "../support/bytes.js";
import { NATS_SERVER, NatsServer, natsCluster } from "../support/nats-server.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

const KEY = bytesFrom(32, (i) => i + 1);

/** Nodes that begin within some milliseconds, each at one of the servers. @returns their numbers and epochs, by host's number */
async function meeting(servers: readonly NatsServer[], nodes: number, job: string, within: number) {
  const random = randomOf(SEED ^ nodes);
  const connections = await Promise.all(
    Array.from({ length: nodes }, (_, i) => {
      const nats = servers[i % servers.length]?.url;
      return connectNats(natsPlace({ nats, job }), { name: `${i}` });
    }),
  );
  const met = await Promise.all(
    connections.map(async (connection, i) => {
      await new Promise((resolve) => setTimeout(resolve, random(within + 1)));
      const options = { job, key: KEY, nodes, tasks: 1, host: `host-${i}`, timeout: 100_000 };
      return meetAtNats(connection, options);
    }),
  );
  await Promise.all(met.map(({ settled }) => settled));
  await Promise.all(connections.map((connection) => connection.close()));
  return met;
}

describe.skipIf(NATS_SERVER === undefined)(`nodes that meet (${replayNote()})`, () => {
  const open: NatsServer[] = [];
  afterAll(() => Promise.all(open.map((server) => server.close())));

  it.each([
    [1, 1, 0],
    [2, 1, 0],
    [64, 1, 0],
    [64, 3, 500],
    [200, 1, 0],
    [200, 1, 1000],
  ])(
    "%i of them, at %i servers, within %i ms: each has a number of its own, in the order of their hosts",
    async (...given) => {
      const [nodes, count, within] = given;
      const servers = count === 1 ? [await NatsServer.start()] : await natsCluster(count);
      open.push(...servers);
      const met = await meeting(servers, nodes, `many-${nodes}-${count}`, within);
      expect(met.map(({ node }) => node)).toEqual(Array.from({ length: nodes }, (_, i) => i));
      expect(new Set(met.map(({ epoch }) => epoch)).size).toBe(1);
    },
  );
});
