// Tickets of natsInviter() and jobs of join() at a NATS server, as far as they need no page.
import { join, natsInviter } from "pamir/web";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectNats, type NatsConnection } from "../../src/nats/connection.js";
import { natsPlace } from "../../src/nats/place.js";
import { selectAlgorithms } from "../../src/seal/select.js";
import { parseNatsTicket } from "../../src/web/nats/nats-ticket.js";
import { TicketHolder } from "../../src/web/nats/ticket-holder.js";
import { webPlace } from "../../src/web/nats/web-connection.js";
import { NATS_SERVER, NatsServer } from "../support/nats-server.js";

const KEY = Uint8Array.from({ length: 32 }, (_, i) => i);
const NEVER = new Promise<never>(() => {});

describe.skipIf(NATS_SERVER === undefined)("a ticket", () => {
  let server: NatsServer;
  beforeAll(async () => {
    server = await NatsServer.start();
  });
  afterAll(() => server.close());

  async function holding(
    key: Uint8Array | undefined,
    body: (
      holder: TicketHolder,
      inviting: { connection: NatsConnection; joined: Promise<number>; close: () => Promise<void> },
    ) => Promise<void>,
  ): Promise<void> {
    const place = { nats: server.url, job: "tickets", key, insecure: true };
    const inviter = await natsInviter({ ...place, address: "ws://127.0.0.1:1" });
    const connection = await connectNats(natsPlace(place), { name: "test" });
    try {
      const { ticket, joined } = await inviter.invite();
      const holder = new TicketHolder(connection, parseNatsTicket(ticket), await selectAlgorithms());
      await body(holder, { connection, joined, close: () => inviter.close() });
    } finally {
      await inviter.close();
      await connection.close();
    }
  }

  it("a connect that never answers ends in time, and what it gives later is closed", async () => {
    let isClosed = false;
    let give = (_: object): void => {};
    const connect = () =>
      new Promise<object>((resolve) => {
        give = resolve;
      });
    const place = { nats: "ws://127.0.0.1:1", job: "silent", key: undefined, insecure: true, connect };
    const error = await natsInviter({ ...place, address: "ws://127.0.0.1:1" }).catch((one) => one);
    expect(error.code).toBe("PAMIR_NATS");
    const why = typeof WebSocket === "function" ? "no WebSocket opens there" : "this host has no WebSocket";
    expect(error.message).toContain(why);
    give({ close: () => (isClosed = true) });
    await new Promise(setImmediate);
    expect(isClosed).toBe(true);
  });

  it.each([
    ["the job key", KEY],
    ["none, in a job without a key", undefined],
  ] as const)("hands over %s", (_, key) =>
    holding(key, async (holder) => expect(await holder.key(NEVER, 60_000)).toEqual(key)),
  );

  it("that a page has used which then fails to join: the issuer hears of it", () =>
    holding(KEY, async (holder, { joined }) => {
      await holder.key(NEVER, 10);
      holder.close();
      await expect(joined).rejects.toMatchObject({
        code: "PAMIR_TIMEDOUT",
        message: "a page has used a ticket, and has not joined within 10 ms",
      });
    }));

  it("is no matter for a page that has closed its connection", () =>
    holding(KEY, async (holder, { connection, close }) => {
      await holder.key(NEVER, 60_000);
      await close();
      const told = holder.joined(1);
      await connection.close();
      await told;
    }));
});

const wrong = async (job: unknown): Promise<string> => {
  const error = await join(job as string, { insecure: true, timeout: 1000 }).catch((one: unknown) => one);
  return `${(error as { code?: string }).code} ${(error as Error).message}`;
};

it("join() names what is no server and no job", async () => {
  const place = { nats: "nats://127.0.0.1:1", job: "tickets", key: KEY };
  expect(await wrong({ ...place, nats: 7 })).toBe("PAMIR_INVAL nats of join() is 7, not a text");
  expect(await wrong({ ...place, nats: undefined })).toMatch(/^PAMIR_INVAL nats of join\(\) is undefined/);
  expect(await wrong({ ...place, job: 7 })).toBe("PAMIR_INVAL job of join() is 7, not a text");
  expect(await wrong({ ...place, nats: "" })).toMatch(/^PAMIR_NATS PAMIR_NATS is not set/);
  expect(() => webPlace("ws://a%ZZ:b@h:1", "tickets", "nats")).toThrow(/^nats has "ws:\/\/…@h:1", not wss:/);
});
