// Connections to NATS servers that do not answer at first.
import { connect, createServer, type Socket } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import { connectNats } from "../../src/nats/connection.js";
import { natsPlace } from "../../src/nats/place.js";
import { NATS_SERVER, NatsServer } from "../support/nats-server.js";

describe.skipIf(NATS_SERVER === undefined)("a server", async () => {
  const server = NATS_SERVER === undefined ? undefined : await NatsServer.start();
  afterAll(() => server?.close());

  it("that is stopped when a process starts, and goes on later", async () => {
    const { hostname, port } = new URL(server?.url ?? "");
    const sockets: Socket[] = [];
    let count = 0;
    const front = createServer((socket) => {
      sockets.push(socket.on("error", () => {}));
      // The first one waits for as long as it likes.
      if (++count === 1) return;
      const behind = connect({ host: hostname, port: Number(port) }).on("error", () => {});
      sockets.push(behind);
      socket.pipe(behind).pipe(socket);
    });
    await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
    const { port: own } = front.address() as { port: number };
    const place = natsPlace({ nats: `nats://127.0.0.1:${own}`, job: "a" });
    const connection = await connectNats(place, { name: "test", timeout: 50_000 });
    await connection.flush();
    expect(count).toBeGreaterThan(1);
    await connection.close();
    for (const socket of sockets) socket.destroy();
    front.close();
  });
});
