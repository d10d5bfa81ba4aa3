// Whether a socket is at an address of this machine. test/api/joined.test.ts asks for those of processes that are killed.
import { createSocket } from "node:dgram";
import { expect, it, vi } from "vitest";
import type { LinkKind } from "../../src/link/kind.js";
import { linkKindOf, linkKinds } from "../../src/link/registry.js";
import { openUdpLink } from "../../src/link/udp/udp-link.js";
import { openWebSocketLink } from "../../src/link/websocket/websocket-server.js";
import { hasIpv6 } from "../support/udp-rig.js";

const kinds = await linkKinds();

async function isAbsent(address: string, scope: "here" | "anywhere" = "anywhere"): Promise<boolean | undefined> {
  const { isAbsent: ask } = linkKindOf(kinds, address.startsWith("udp:") ? "udp" : "websocket") as Required<LinkKind>;
  return ask(address, scope);
}

it.each(["127.0.0.1", "[::1]"])(
  "at %s: a link is there until it is closed, and hears nothing of the question",
  async (host) => {
    if (host === "[::1]" && !(await hasIpv6())) return console.log("not run: ::1, which this machine does not have");
    const link = await openUdpLink(`udp:${host}:0`);
    expect(await isAbsent(link.address)).toBe(false);
    expect(link.counts.received).toBe(0);
    link.close();
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(await isAbsent(link.address)).toBe(true);
    expect(await isAbsent(link.address)).toBe(true);
  },
);

it("a socket of another program counts as well", async () => {
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  expect(await isAbsent(`udp:127.0.0.1:${socket.address().port}`)).toBe(false);
  socket.close();
});

it("a WebSocket server is there until it is closed", async () => {
  const link = await openWebSocketLink({ listen: "ws://127.0.0.1:0/" });
  const address = link.address as string;
  expect([await isAbsent(address), link.connections]).toEqual([false, 0]);
  link.close();
  await vi.waitUntil(async () => (await isAbsent(address)) === true, { interval: 5, timeout: 60_000 });
});

it.each(["udp:192.0.2.1:7000", "ws://192.0.2.1:7000/"])(
  "of another machine, nothing is known for certain: %s",
  async (address) => {
    expect(await isAbsent(address, "here")).toBe(false);
  },
);
