// Whether a UDP socket is at an address of this machine. test/api/joined.test.ts asks for those of processes that are killed.
import { createSocket } from "node:dgram";
import { expect, it } from "vitest";
import { isUdpAbsent } from "../../src/link/udp-absence.js";
import { openUdpLink } from "../../src/link/udp-link.js";
import { hasIpv6 } from "../support/udp-rig.js";

it.each(["127.0.0.1", "[::1]"])(
  "at %s: a link is there until it is closed, and hears nothing of the question",
  async (host) => {
    if (host === "[::1]" && !(await hasIpv6())) return console.log("not run: ::1, which this machine does not have");
    const link = await openUdpLink(`udp:${host}:0`);
    expect(await isUdpAbsent(link.address)).toBe(false);
    expect(link.counts.received).toBe(0);
    link.close();
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(await isUdpAbsent(link.address)).toBe(true);
    expect(await isUdpAbsent(link.address)).toBe(true);
  },
);

it("a socket of another program counts as well", async () => {
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  expect(await isUdpAbsent(`udp:127.0.0.1:${socket.address().port}`)).toBe(false);
  socket.close();
});
