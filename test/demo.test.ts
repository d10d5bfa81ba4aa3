// The server of `npm run demo`.
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { join } from "pamir/web";
import { expect, it } from "vitest";
import { openMeeting } from "../scripts/meeting.mjs";
import { filesOf, listenFrom } from "../scripts/serve.mjs";
import { freePort } from "./support/free-port.js";

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

/** A server with a page, for pages to meet. */
async function meeting(host: string | undefined, body: (url: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(joinPath(tmpdir(), "pamir-meeting-"));
  writeFileSync(joinPath(folder, "index.html"), '<!doctype html>\n<html lang="en"></html>');
  const server = await openMeeting(folder, { port: await freePort(), host, command: "npm run demo" });
  try {
    await body(server.urls[0] as string);
  } finally {
    await server.close();
    rmSync(folder, { recursive: true });
  }
}

const ticketsOf = async (url: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`${url}tickets`, { method: "POST", headers });
  return { status: response.status, tickets: response.ok ? (await response.json()).tickets : [] };
};

it("says on its page that pages can meet here, and gives two tickets of one job, to its own pages alone", () =>
  meeting(undefined, async (url) => {
    const html = await (await fetch(url)).text();
    const text = /data-meeting="([^"]+)"/.exec(html)?.[1]?.replaceAll("&quot;", '"') ?? "";
    expect(JSON.parse(text)).toEqual({ address: "./", isLocal: true, command: "npm run demo" });
    expect((await ticketsOf(url, { origin: "https://example.org" })).status).toBe(403);
    const { tickets } = await ticketsOf(url, { origin: new URL(url).origin });
    const [first, second] = await Promise.all(tickets.map((ticket: string) => join(ticket, { insecure: true })));
    expect([first.task, second.task].sort()).toEqual([1, 2]);
    for (const client of [first, second]) client.close();
  }));

it("a path that is none, and an origin without a host, are refused, and it goes on", () =>
  meeting(undefined, async (url) => {
    const { hostname, port } = new URL(url);
    const asked = request({ hostname, port, path: "//" }).end();
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    expect(answer.resume().statusCode).toBe(404);
    expect((await ticketsOf(url, { origin: "null" })).status).toBe(403);
    expect((await ticketsOf(url)).status).toBe(200);
  }));

it("goes on with another job once one has had all its nodes", () =>
  meeting(undefined, async (url) => {
    // 32 pairs of open tickets are those of one job.
    const all = [];
    for (let i = 0; i < 33; i++) all.push((await ticketsOf(url)).tickets);
    const clients = await Promise.all(
      [...(all[0] as string[]), ...(all[32] as string[])].map((ticket) => join(ticket, { insecure: true })),
    );
    expect(clients.map(({ task }) => task).sort()).toEqual([1, 1, 2, 2]);
    for (const client of clients) client.close();
  }));
