// Addresses of WebSocket servers: which texts are addresses, and one canonical text for each server.
import { expect, it } from "vitest";
import { parseWebSocketAddress } from "../../src/link/websocket/websocket-address.js";

it.each([
  ["ws://127.0.0.1:4567/", "ws://127.0.0.1:4567/"],
  ["ws://127.0.0.1:4567", "ws://127.0.0.1:4567/"],
  ["WS://Node-1.Example.ORG:80/A/b", "ws://node-1.example.org/A/b"],
  ["wss://example.org:443", "wss://example.org/"],
  ["wss://example.org:80/", "wss://example.org:80/"],
  ["ws://[0:0::1]:9/x/../y", "ws://[::1]:9/y"],
  ["ws://[::ffff:127.0.0.1]:9/", "ws://[::ffff:7f00:1]:9/"],
  ["ws://127.1:9/", "ws://127.0.0.1:9/"],
  ["ws://host:65535/", "ws://host:65535/"],
])("%s is %s", (text, canonical) => {
  expect(parseWebSocketAddress(text)).toBe(canonical);
  expect(parseWebSocketAddress(canonical)).toBe(canonical);
});

const FORM = "ws://HOST:PORT/PATH or wss://HOST:PORT/PATH";
const PLAIN = `${FORM}, without a user, a query and a fragment`;

it.each([
  ["", FORM],
  ["ws", FORM],
  ["ws:", FORM],
  ["ws://", FORM],
  ["ws:///", FORM],
  ["//host:1/", FORM],
  ["http://host:1/", FORM],
  ["wsx://host:1/", FORM],
  ["javascript:alert(1)", FORM],
  ["ws:host:1", FORM],
  ["ws://host:65536/", FORM],
  ["ws://host:-1/", FORM],
  ["ws://host:x/", FORM],
  ["ws://[::1/", FORM],
  ["ws://[::g]:1/", FORM],
  ["ws://256.0.0.1:1/", FORM],
  ["ws://a b:1/", FORM],
  [" ws://host:1/", FORM],
  ["ws://host:1/\n", FORM],
  ["ws://host:1/é", FORM],
  ["ws://host\\x:1/", FORM],
  ["ws-peer:1", FORM],
  [`ws://host:1/${"x".repeat(1990)}`, FORM],
  ["ws://user@host:1/", PLAIN],
  ["ws://:word@host:1/", PLAIN],
  ["ws://host:1/?", PLAIN],
  ["ws://host:1/?a=b", PLAIN],
  ["ws://host:1/#", PLAIN],
  ["ws://host:1/#a", PLAIN],
  ["ws://host:0/", `${FORM} with a port from 1 to 65535`],
])("%j is none, and the error names it and what is wanted", (text, wanted) => {
  const shown = text.length > 300 ? `${JSON.stringify(text.slice(0, 300))}…` : JSON.stringify(text);
  expect(() => parseWebSocketAddress(text)).toThrow(
    expect.objectContaining({ code: "PAMIR_INVAL", message: `a WebSocket address is ${shown}, not ${wanted}` }),
  );
});

it.each([[undefined], [null], [5], [{}], [["ws://host:1/"]]])("%j, which is no text, is none", (value) => {
  expect(() => parseWebSocketAddress(value as unknown as string)).toThrow(
    expect.objectContaining({ code: "PAMIR_INVAL" }),
  );
});

it("port 0 is for a server that is to be opened", () => {
  expect(parseWebSocketAddress("ws://127.0.0.1:0/", 0)).toBe("ws://127.0.0.1:0/");
});
