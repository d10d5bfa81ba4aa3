// The server of `npm run demo`.
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { filesOf, listenFrom } from "../scripts/serve.mjs";

it("takes the next port where its own is taken, and serves there", async () => {
  const stranger = createServer().listen(0, "localhost");
  await once(stranger, "listening");
  const { port: taken } = stranger.address() as AddressInfo;
  const servers: Server[] = [stranger];
  try {
    const ports: number[] = [];
    for (let i = 0; i < 2; i++) {
      const server = createServer(filesOf("demo"));
      ports.push(await listenFrom(server, taken));
      servers.push(server);
    }
    const [first, second] = ports as [number, number];
    expect([first > taken, second > first, second < taken + 100]).toEqual([true, true, true]);
    for (const port of ports) expect(await (await fetch(`http://localhost:${port}/`)).text()).toContain("<title>pamir");
  } finally {
    for (const server of servers) server.close();
  }
});

it("an error that no other port would mend is thrown", async () => {
  await expect(listenFrom(createServer(), 65536)).rejects.toMatchObject({ code: "ERR_SOCKET_BAD_PORT" });
});
