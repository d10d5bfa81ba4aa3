// A port for a server that a test starts.
import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * From where ports are taken. Systems give sockets that name no port one from 32,768 (Linux) or 49,152. One of those may be in use
 * again before the test's server takes it: a test run opens some thousand sockets.
 */
const [FIRST, END] = [16_384, 32_768];

/** The first of `count` ports in a row, which are free at all addresses, for TCP and for UDP. */
export async function freePort(count = 1): Promise<number> {
  for (;;) {
    const first = randomInt(FIRST, END - count);
    const ports = Array.from({ length: count }, (_, place) => first + place);
    if ((await Promise.all(ports.map(isFree))).every(Boolean)) return first;
  }
}

async function isFree(port: number): Promise<boolean> {
  const [tcp, udp] = [createServer(), createSocket("udp4")];
  const bound = [once(tcp, "listening"), once(udp, "listening")];
  tcp.listen(port);
  udp.bind(port);
  const both = await Promise.allSettled(bound);
  for (const [place, one] of [tcp, udp].entries()) {
    if (both[place]?.status === "fulfilled") await new Promise<void>((resolve) => one.close(() => resolve()));
  }
  return both.every(({ status }) => status === "fulfilled");
}
