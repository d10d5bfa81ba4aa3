// A link over ports, beyond the contract of links: nodes that end, and begin anew at the same address.
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { PortsLink } from "../../src/link/ports-link.js";

let links: Record<string, PortsLink | undefined>;
let channels: string[];
let came: string[];

function start(own: string): PortsLink {
  const link = new PortsLink((to, port) => {
    channels.push(`${own}>${to}`);
    const other = links[to];
    if (other === undefined) port.close();
    else other.accept(own, port);
  });
  link.onPacket = (from, bytes) => came.push(`${from}>${own}: ${bytes}`);
  links[own] = link;
  return link;
}

async function settle(): Promise<void> {
  for (let turns = 0; turns < 5; turns++) await nextTurn();
}

beforeEach(() => {
  [links, channels, came] = [{}, [], []];
});

afterEach(() => {
  for (const link of Object.values(links)) link?.close();
});

it("has one channel for each pair of nodes, in both directions, made at the first packet", async () => {
  const [a, b] = [start("a"), start("b"), start("c")];
  expect(channels).toEqual([]);
  for (let i = 0; i < 3; i++) {
    a.send("b", Uint8Array.of(i));
    b.send("a", Uint8Array.of(10 + i));
    a.send("c", Uint8Array.of(20 + i));
  }
  await settle();
  expect(channels).toEqual(["a>b", "a>c"]);
  expect(came.length).toBe(9);
});

it("keeps to its own channel where the other node has made one at the same time: packets stay in order", async () => {
  const ends: Record<string, MessagePort> = {};
  const [a, b] = ["a", "b"].map((own) => new PortsLink((_, port) => Object.assign(ends, { [own]: port }))) as [
    PortsLink,
    PortsLink,
  ];
  links = { a, b };
  b.onPacket = (from, bytes) => came.push(`${from}>b: ${bytes}`);
  a.send("b", Uint8Array.of(1));
  b.send("a", Uint8Array.of(9));
  a.accept("b", ends.b as MessagePort);
  a.send("b", Uint8Array.of(2));
  await settle();
  // The end of its channel comes late.
  b.accept("a", ends.a as MessagePort);
  a.send("b", Uint8Array.of(3));
  await settle();
  expect(came).toEqual(["a>b: 1", "a>b: 2", "a>b: 3"]);
});

it("goes on by another channel with a node that has closed its link and begun anew", async () => {
  const [a, b] = [start("a"), start("b")];
  a.send("b", Uint8Array.of(1));
  await settle();
  b.close();
  await settle();
  a.send("b", Uint8Array.of(2)); // to nowhere
  await settle();
  start("b").send("a", Uint8Array.of(3));
  await settle();
  a.send("b", Uint8Array.of(4));
  await settle();
  expect(came).toEqual(["a>b: 1", "b>a: 3", "a>b: 4"]);
  expect(channels).toEqual(["a>b", "a>b", "b>a"]);
});

it("drop(): nothing comes by the old channels, and the next packet goes by another one", async () => {
  const [a, b] = [start("a"), start("b")];
  a.send("b", Uint8Array.of(1));
  await settle();
  b.send("a", Uint8Array.of(2));
  a.drop("b");
  await settle();
  expect(came).toEqual(["a>b: 1"]);
  a.send("b", Uint8Array.of(3));
  await settle();
  expect(came).toEqual(["a>b: 1", "a>b: 3"]);
  expect(channels).toEqual(["a>b", "a>b"]);
});

it("accept() after close() closes the port, so that its other end hears of it", async () => {
  const a = start("a");
  a.close();
  const { port1, port2 } = new MessageChannel();
  const closed = new Promise((done) => port2.addEventListener("close", done));
  port2.start();
  a.accept("b", port1);
  await closed;
});
