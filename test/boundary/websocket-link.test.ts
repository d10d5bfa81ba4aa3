// A link over WebSockets, beyond the contract of links: servers that do not open, peers without a server, addresses that are
// stated, peers that speak something else or nothing, queues that are full, certificates, and the host's own WebSocket.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { connect as connectSecurely } from "node:tls";
import { afterEach, describe, expect, inject, it, vi } from "vitest";
import { WebSocket } from "ws";
import type { Address } from "../../src/link/link.js";
import { PROTOCOL, type WebSocketLink } from "../../src/link/websocket/websocket-link.js";
import { type OpenWebSocketOptions, openWebSocketLink } from "../../src/link/websocket/websocket-server.js";
import { openLink, type ProcessNodeSetup } from "../../src/start/node/process-node.js";
import { systemClock } from "../../src/support/clock.js";
import { bundle } from "../support/bundle.js";
import { bytesFrom } from "../support/bytes.js";
import { scaled } from "../support/effort.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";
import { closedServer, UPGRADE } from "../support/websocket-rig.js";

const LISTEN = "ws://127.0.0.1:0/";
const links: WebSocketLink[] = [];
const servers: Server[] = [];
const sockets: (Socket | WebSocket)[] = [];

async function open(options: OpenWebSocketOptions = {}): Promise<WebSocketLink> {
  const link = await openWebSocketLink(options);
  links.push(link);
  return link;
}

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  for (const link of links.splice(0)) link.close();
  for (const server of servers.splice(0)) server.close();
  for (const socket of sockets.splice(0)) "destroy" in socket ? socket.destroy() : socket.terminate();
});

/** Gives the event loop turns until something is so; the test's own limit ends what is never so. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await nextTurn();
}

/** Sends a packet again and again, as sessions do, until something is so. */
async function sendUntil(link: WebSocketLink, to: Address, isSo: () => boolean): Promise<void> {
  for (let number = 0; !isSo(); number++) {
    link.send(to, Uint8Array.of(number));
    for (let turns = 0; turns < 50 && !isSo(); turns++) await nextTurn();
  }
}

const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;
if (!hasOpenssl) console.log("not run: WebSockets with certificates, since there is no openssl to make them");

let made: { cert: string; key: string } | undefined;
function certificate() {
  if (made !== undefined) return made;
  const folder = mkdtempSync(join(inject("folder"), "tls-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
  const files = ["-keyout", key, "-out", cert];
  execFileSync("openssl", ["req", "-x509", ...curve, "-nodes", "-days", "2", ...names, ...files], { stdio: "ignore" });
  made = { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
  return made;
}

const portOf = ({ address }: WebSocketLink): number => Number(new URL(address as string).port);

/** What came to a link, by sender. */
function cameTo(link: WebSocketLink): { from: Address; bytes: number[] }[] {
  const came: { from: Address; bytes: number[] }[] = [];
  link.onPacket = (from, bytes) => came.push({ from, bytes: [...bytes] });
  return came;
}

/** A socket of a peer that is no link. */
function stranger(link: WebSocketLink, query = ""): WebSocket {
  const socket = new WebSocket(`${link.address}${query}`, [PROTOCOL]);
  socket.on("error", () => {});
  sockets.push(socket);
  return socket;
}

const opened = (socket: WebSocket): Promise<void> => new Promise((done) => socket.once("open", () => done()));

/** The link still takes a new peer's packets. */
async function expectToGoOn(link: WebSocketLink): Promise<void> {
  const [client, before] = [await open(), link.counts.received];
  // On a busy machine, a handshake may take longer than this link allows.
  await sendUntil(client, link.address as Address, () => link.counts.received > before);
}

describe("openWebSocketLink()", () => {
  it("takes the port that it is told, or one that the system chooses, and states its address", async () => {
    const first = await open({ listen: "ws://127.0.0.1:0/a/b" });
    expect(first.address).toMatch(/^ws:\/\/127\.0\.0\.1:[1-9]\d*\/a\/b$/);
    first.close();
    await nextTurn();
    expect((await open({ listen: first.address as string })).address).toBe(first.address);
    const behindProxy = await open({ listen: LISTEN, address: "wss://Example.org:443/pamir" });
    expect(behindProxy.address).toBe("wss://example.org/pamir");
    expect((await open()).address).toBe(undefined);
  });

  it.each([
    [
      "a port in use",
      async () => (await open({ listen: LISTEN })).address as string,
      /: the port is in use \(EADDRINUSE\)$/,
    ],
    [
      "an address of another machine",
      () => "ws://192.0.2.1:4567/",
      /: this machine has no such address \(EADDRNOTAVAIL\)$/,
    ],
    ["a name that does not resolve", () => "ws://nowhere.invalid:4567/", /: getaddrinfo E/],
  ])("%s: an error that names the address and the cause", async (_, address, reason) => {
    const listen = await address();
    const refused = open({ listen });
    await expect(refused).rejects.toMatchObject({
      name: "PamiError",
      code: "PAMIR_ADDRESS",
      message: expect.stringMatching(reason),
      cause: expect.objectContaining({ code: expect.stringMatching(/^E/) }),
    });
    await expect(refused).rejects.toThrow(`no WebSocket server at ${listen}: `);
  });

  it.each([
    [{ listen: "nonsense" }, /^a WebSocket address is "nonsense", not ws:/],
    [{ address: "http://host/" }, /^a WebSocket address is "http:\/\/host\/", not ws:/],
    [{ listen: "wss://127.0.0.1:0/" }, /a server at wss: needs tls/],
    [{ listen: LISTEN, tls: { cert: "", key: "" } }, /one at ws: takes none/],
    [{ packetBytes: 1228 }, /^packetBytes of a WebSocket link is 1228, not an integer from 1232 to 65504$/],
    [{ packetBytes: 1234 }, /^packetBytes of a WebSocket link is 1234, not a multiple of 4$/],
    [{ packetBytes: 65_508 }, /^packetBytes of a WebSocket link is 65508/],
    [{ queueBytes: 131_071 }, /^queueBytes is 131071, not an integer from 131072 to 1073741824$/],
    [{ handshakeMs: 0 }, /^handshakeMs is 0, not an integer from 1 to 600000$/],
    [{ connectionsMax: 0 }, /^connectionsMax is 0, not an integer from 1 to 65536$/],
  ] as [OpenWebSocketOptions, RegExp][])("%j is refused", async (options, message) => {
    await expect(open(options)).rejects.toMatchObject({
      code: "PAMIR_INVAL",
      message: expect.stringMatching(message),
    });
  });

  it("a certificate that is none: an error that names the address", async () => {
    await expect(
      open({ listen: "wss://127.0.0.1:0/", tls: { cert: "nonsense", key: "nonsense" } }),
    ).rejects.toMatchObject({
      code: "PAMIR_ADDRESS",
      message: expect.stringMatching(/^no WebSocket server at wss:\/\/127\.0\.0\.1:0\/: /),
    });
  });

  describe("without the package ws", () => {
    const hideWs = (): void => {
      const original = process.getBuiltinModule;
      const createRequire = () => (): never => {
        throw Object.assign(new Error("Cannot find module 'ws'"), { code: "MODULE_NOT_FOUND" });
      };
      vi.spyOn(process, "getBuiltinModule").mockImplementation(((id: string) =>
        id === "node:module" ? { ...original(id), createRequire } : original(id)) as typeof original);
    };

    it("there is no server, and no client with certificates of its own", async () => {
      hideWs();
      vi.stubGlobal("WebSocket", WebSocket);
      const message = expect.stringMatching(/the package ws is not installed \(npm install ws\)$/);
      await expect(open({ listen: LISTEN })).rejects.toMatchObject({ code: "PAMIR_ADDRESS", message });
      await expect(open({ ca: "x" })).rejects.toMatchObject({ code: "PAMIR_ADDRESS", message });
      expect((await open()).address).toBe(undefined);
    });

    it("and without a WebSocket of the host, there is no client either", async () => {
      hideWs();
      vi.stubGlobal("WebSocket", undefined);
      await expect(open()).rejects.toMatchObject({
        code: "PAMIR_ADDRESS",
        message: "this host has no WebSocket: the package ws is not installed (npm install ws)",
      });
    });
  });
});

describe("peers without a server", () => {
  it("have a token, by which packets go back; the next connection has another one", async () => {
    const server = await open({ listen: LISTEN });
    const came = cameTo(server);
    const tokens: Address[] = [];
    for (const number of [1, 2]) {
      const client = await open();
      const answers = cameTo(client);
      client.send(server.address as Address, Uint8Array.of(number));
      await until(() => came.length === number);
      const { from } = came.at(-1) as (typeof came)[0];
      tokens.push(from);
      expect(server.send(from, Uint8Array.of(10 * number))).toBe(true);
      await until(() => answers.length === 1);
      expect(answers).toEqual([{ from: server.address, bytes: [10 * number] }]);
      client.close();
      await until(() => server.connections === 0);
      // A packet to a connection that has closed is lost.
      server.send(from, Uint8Array.of(0));
      expect(server.counts.noAddress).toBe(number);
    }
    expect(new Set(tokens).size).toBe(2);
    for (const token of tokens) expect(token).toMatch(/^ws-peer:\d+$/);
  });
});

describe("addresses that peers state", () => {
  const stating = (address: string): string => `?from=${encodeURIComponent(address)}`;

  it("are those of their packets, if they are of the job's nodes; else the peer gets a token", async () => {
    const known = "ws://192.0.2.1:9/";
    const server = await open({ listen: LISTEN, isNode: (address) => address === known });
    const came = cameTo(server);
    const queries = [
      stating(known),
      stating("ws://192.0.2.2:9/"),
      stating("WS://192.0.2.1:9"),
      "?from=",
      "?from=%00",
      "",
    ];
    for (const [number, query] of queries.entries()) {
      const socket = stranger(server, query);
      await opened(socket);
      socket.send(Uint8Array.of(number));
      await until(() => came.length > number);
    }
    expect(came.map(({ from }) => (from === known ? from : from.replace(/\d+$/, "")))).toEqual([
      known,
      ...Array(5).fill("ws-peer:"),
    ]);
  });

  it("attract no packets: those go to the server at that address", async () => {
    const addresses: Address[] = [];
    const isNode = (address: Address): boolean => addresses.includes(address);
    const [a, b] = [await open({ listen: LISTEN, isNode }), await open({ listen: LISTEN, isNode })];
    addresses.push(a.address as Address, b.address as Address);
    const impostor = stranger(b, stating(a.address as string));
    await opened(impostor);
    let stolen = 0;
    impostor.on("message", () => stolen++);
    impostor.send(Uint8Array.of(1));
    const [cameToA, cameToB] = [cameTo(a), cameTo(b)];
    await until(() => cameToB.length === 1);
    b.send(a.address as Address, Uint8Array.of(2));
    await until(() => cameToA.length === 1);
    expect(cameToA).toEqual([{ from: b.address, bytes: [2] }]);
    expect(stolen).toBe(0);
  });
});

describe("peers of a server that speak something else", () => {
  const answerOf = (link: WebSocketLink, options: object, body?: string): Promise<number | undefined> =>
    new Promise((done, fail) => {
      const asked = request({ host: "127.0.0.1", port: portOf(link), ...options }, (response) => {
        response.resume().on("end", () => done(response.statusCode));
      });
      asked.on("upgrade", (response, socket) => {
        socket.destroy();
        done(response.statusCode);
      });
      asked.on("error", fail).end(body);
    });
  const upgrade = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
  const key = { "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" };
  const protocol = { "sec-websocket-protocol": PROTOCOL };

  it.each([
    ["a request for a page", {}, 426],
    ["a request with a body", { method: "POST" }, 426],
    ["a WebSocket of another protocol", { headers: { ...upgrade, ...key, "sec-websocket-protocol": "chat" } }, 400],
    ["a WebSocket of no protocol", { headers: { ...upgrade, ...key } }, 400],
    ["a WebSocket without a key", { headers: { ...upgrade, ...protocol } }, 400],
    [
      "a WebSocket of another version",
      { headers: { ...upgrade, ...key, ...protocol, "sec-websocket-version": "7" } },
      400,
    ],
    ["another path", { path: "/x", headers: { ...upgrade, ...key, ...protocol } }, 404],
    ["another upgrade", { headers: { connection: "Upgrade", upgrade: "h2c", ...protocol } }, 400],
  ])("%s is refused", async (_, options, status) => {
    const link = await open({ listen: LISTEN });
    const came = cameTo(link);
    expect(await answerOf(link, options, "method" in options ? "x".repeat(100_000) : undefined)).toBe(status);
    expect([came, link.connections]).toEqual([[], 0]);
    await expectToGoOn(link);
  });

  const OWN = "https://example.org";
  it.each([
    [1, 65_504, true],
    [64, 1, true],
    [65, 1, false],
    [65_504, 1, false],
    [65_504, 0, false],
    [2, 32_753, false],
  ])(
    "of a message of %i parts of %i bytes, no more is kept than a packet: it comes: %s",
    async (parts, bytes, isTaken) => {
      const link = await open({ listen: LISTEN });
      const came = cameTo(link);
      const socket = stranger(link);
      await opened(socket);
      let isOver = false;
      socket.on("close", () => (isOver = true));
      for (let part = 1; part <= parts; part++) socket.send(new Uint8Array(bytes), { fin: part === parts });
      await until(() => isOver || came.length > 0);
      expect(came.map((one) => one.bytes.length)).toEqual(isTaken ? [parts * bytes] : []);
      expect(isOver).toBe(!isTaken);
      await expectToGoOn(link);
    },
  );

  it("the link of a node of processes refuses every page, and takes programs", async () => {
    const setup = { link: "websocket", packages: {}, bind: LISTEN } as Partial<ProcessNodeSetup> as ProcessNodeSetup;
    const { link } = await openLink(setup, () => false);
    try {
      const page = (origin: string) => ({ headers: { ...upgrade, ...key, ...protocol, origin } });
      for (const origin of [OWN, "null", "", "http://127.0.0.1", `http://127.0.0.1:${portOf(link as WebSocketLink)}`])
        expect(await answerOf(link as WebSocketLink, page(origin))).toBe(403);
      await expectToGoOn(link as WebSocketLink);
    } finally {
      link.close();
    }
  });

  it.each<[string, readonly string[] | undefined, string | undefined, number]>([
    ["another origin", [OWN], "https://example.com", 403],
    ["another port", [OWN], `${OWN}:8443`, 403],
    ["another scheme", [OWN], "http://example.org", 403],
    ["a longer name", [OWN], `${OWN}.example.com`, 403],
    ["a shorter one", [OWN], "https://example", 403],
    ["other letters", [OWN], "https://EXAMPLE.org", 403],
    ["two origins", [OWN], `${OWN}, ${OWN}`, 403],
    ["an empty origin", [OWN], "", 403],
    ["no origin of its own", [OWN], "null", 403],
    ["any origin, where none is allowed", [], OWN, 403],
    ["its own origin", [OWN], OWN, 101],
    ["one of several", ["null", OWN], OWN, 101],
    ["no origin of its own, which is allowed", ["null"], "null", 101],
    ["no header of an origin, as of programs", [OWN], undefined, 101],
    ["any origin, where all are allowed", undefined, "https://example.com", 101],
  ])("a WebSocket of %s (allowed: %j) gets %j %i", async (_, origins, origin, status) => {
    const link = await open({ listen: LISTEN, origins });
    const headers = { ...upgrade, ...key, ...protocol, ...(origin !== undefined && { origin }) };
    const answer = await new Promise<number | undefined>((done, fail) => {
      const asked = request({ host: "127.0.0.1", port: portOf(link), headers });
      asked.on("response", (response) => done(response.resume().statusCode));
      asked.on("upgrade", (response, socket) => {
        socket.destroy();
        done(response.statusCode);
      });
      asked.on("error", fail).end();
    });
    expect(answer).toBe(status);
    await expectToGoOn(link);
  });

  it.each([
    ["https://example.org", 'origins is "https://example.org", not a list of texts'],
    [["*"], 'origins[0] is "*", not an origin as browsers state it, such as "https://example.org"'],
    [
      [OWN, "example.org"],
      'origins[1] is "example.org", not an origin as browsers state it, such as "https://example.org"',
    ],
    [[`${OWN}/`], `origins[0] is "${OWN}/", not an origin as browsers state it, which would be "${OWN}"`],
    [[`${OWN}:443`], `origins[0] is "${OWN}:443", not an origin as browsers state it, which would be "${OWN}"`],
    [
      ["https://EXAMPLE.org/path"],
      `origins[0] is "https://EXAMPLE.org/path", not an origin as browsers state it, which would be "${OWN}"`,
    ],
    [[7], 'origins[0] is 7, not an origin as browsers state it, such as "https://example.org"'],
    [[""], 'origins[0] is "", not an origin as browsers state it, such as "https://example.org"'],
  ])("origins that are none, %j: the error names the text", async (origins, message) => {
    await expect(openWebSocketLink({ listen: LISTEN, origins: origins as never })).rejects.toMatchObject({
      code: "PAMIR_INVAL",
      message,
    });
  });

  it(`bytes that are no HTTP, half a request, and none at all: the connection ends (${replayNote()})`, async () => {
    const random = randomOf(SEED);
    const link = await open({ listen: LISTEN, handshakeMs: 300 });
    const ends: Promise<void>[] = [];
    for (let i = 0; i < 30; i++) {
      const socket = connect(portOf(link), "127.0.0.1");
      sockets.push(socket);
      socket.on("error", () => {}).resume();
      ends.push(new Promise((done) => socket.once("close", () => done())));
      if (i % 3 === 0) socket.write(bytesFrom(1 + random(300), () => random(256)));
      else if (i % 3 === 1) socket.write("GET / HTTP/1.1\r\nHost: x\r\nUpg");
    }
    await expectToGoOn(link);
    await Promise.all(ends);
    await expectToGoOn(link);
  });

  it.each([
    ["a text", (socket: WebSocket) => socket.send("text")],
    ["an empty text", (socket: WebSocket) => socket.send("")],
    ["more bytes than a packet may have", (socket: WebSocket) => socket.send(new Uint8Array(65_505))],
    [
      "more bytes in pieces",
      (socket: WebSocket) => {
        socket.send(new Uint8Array(65_000), { fin: false });
        socket.send(new Uint8Array(600));
      },
    ],
    [
      "a frame that is none",
      (socket: WebSocket) => (socket as unknown as { _socket: Socket })._socket.write("garbage"),
    ],
  ])("%s: the connection ends, and nothing of it comes", async (_, send) => {
    const link = await open({ listen: LISTEN });
    const came = cameTo(link);
    const socket = stranger(link);
    await opened(socket);
    const closed = new Promise<void>((done) => socket.once("close", () => done()));
    send(socket);
    // Nor does what follows it.
    if (socket.readyState === WebSocket.OPEN) socket.send(Uint8Array.of(1));
    await closed;
    await until(() => link.connections === 0);
    expect(came).toEqual([]);
    expect(link.counts.wrong).toBe(1);
    await expectToGoOn(link);
  });

  it(`random messages of every size come as the bytes that they are, and nothing throws (${replayNote()})`, async () => {
    const random = randomOf(SEED);
    const link = await open({ listen: LISTEN });
    const socket = stranger(link);
    await opened(socket);
    let wrong = 0;
    const sent: Buffer[] = [];
    link.onPacket = (_, bytes) => {
      if (sent.shift()?.equals(bytes) !== true) wrong++;
      bytes.fill(0);
    };
    const count = scaled(2000);
    for (let i = 0; i < count; i++) {
      const length = [random(4), random(64), random(1500), random(i % 100 === 0 ? 65_505 : 100)][random(4)] as number;
      const bytes = Buffer.from(bytesFrom(length, () => random(256)));
      sent.push(bytes);
      socket.send(Uint8Array.from(bytes));
      if (i % 32 === 0) await nextTurn();
    }
    await until(() => link.counts.received === count);
    expect([wrong, link.counts.wrong]).toEqual([0, 0]);
  });
});

describe("a server that is full", () => {
  const MEMBERS = 8;
  /** With those for strangers. */
  const CONNECTIONS = MEMBERS + 64;
  /** Milliseconds after which a connection makes room. */
  const PROOF = 2000;
  /** Only what begins with it is of the job. */
  const [OF_JOB, FOREIGN] = [1, 0];
  /** Half of it: the empty line is missing. */
  const REQUEST = `${UPGRADE.join("\r\n")}\r\n`;
  /** Stands still unless a test lets it pass. */
  let time: number;
  let came: number[];

  async function full(options: OpenWebSocketOptions = {}): Promise<WebSocketLink> {
    time = Math.ceil(systemClock.now());
    vi.spyOn(systemClock, "now").mockImplementation(() => time);
    came = [];
    const link = await open({ listen: LISTEN, connectionsMax: MEMBERS, handshakeMs: 600_000, ...options });
    link.onPacket = (_, [first = -1]) => {
      came.push(first);
      return first === OF_JOB;
    };
    return link;
  }

  const isOpen = (one: Socket | WebSocket): boolean =>
    "destroyed" in one ? !one.destroyed : one.readyState === WebSocket.OPEN;
  /** Numbers of those that are closed, once as many are and what the server has done is known at their other ends. */
  async function closedOf(all: readonly (Socket | WebSocket)[], least = 0): Promise<number[]> {
    const closed = (): number[] => all.flatMap((one, number) => (isOpen(one) ? [] : [number]));
    await until(() => closed().length >= least);
    for (let turns = 0; turns < 20; turns++) await nextTurn();
    return closed();
  }

  /** A connection by TCP, once it is made, or has been ended. */
  async function silent(link: WebSocketLink, text = ""): Promise<Socket> {
    const socket = connect(portOf(link), "127.0.0.1");
    sockets.push(socket.on("error", () => {}).resume());
    await new Promise<void>((done) => socket.once("connect", done).once("close", () => done()));
    if (text !== "") await new Promise<void>((done) => socket.write(text, () => done()));
    return socket;
  }

  /** A WebSocket, once it is open, or has been refused. */
  async function asked(link: WebSocketLink, options?: { readonly ca: string }): Promise<WebSocket> {
    const socket = new WebSocket(link.address as string, [PROTOCOL], options);
    sockets.push(socket.on("error", () => {}));
    await new Promise<void>((done) => socket.once("open", done).once("close", () => done()));
    return socket;
  }

  async function say(socket: WebSocket, first: number): Promise<void> {
    const before = came.length;
    expect(isOpen(socket)).toBe(true);
    socket.send(Uint8Array.of(first));
    await until(() => came.length > before || !isOpen(socket));
    expect(came.slice(before)).toEqual([first]);
  }

  async function member(link: WebSocketLink, options?: { readonly ca: string }): Promise<WebSocket> {
    const socket = await asked(link, options);
    await say(socket, OF_JOB);
    return socket;
  }

  async function many<T>(count: number, make: () => Promise<T>): Promise<T[]> {
    const all: T[] = [];
    // One behind the other: a system holds few connections that no server has accepted.
    while (all.length < count) all.push(await make());
    return all;
  }

  const KINDS: readonly (readonly [string, (link: WebSocketLink) => Promise<Socket | WebSocket>])[] = [
    ["that say nothing", silent],
    ["with half a request", (link) => silent(link, REQUEST)],
    ["with a WebSocket that says nothing", asked],
    [
      "with a WebSocket that says what is not of the job",
      async (link) => {
        const socket = await asked(link);
        if (isOpen(socket)) await say(socket, FOREIGN);
        return socket;
      },
    ],
  ];

  it.each(KINDS)(
    "strangers %s: after two seconds the oldest makes room for a member; members stay",
    async (_, make) => {
      const link = await full();
      const early = await member(link);
      const strangers = await many(CONNECTIONS - 1, () => make(link));
      // However many come at once, each has its time.
      time += PROOF - 1;
      expect(await closedOf(await many(3, () => asked(link)))).toEqual([0, 1, 2]);
      expect(await closedOf(strangers)).toEqual([]);
      time += 1;
      const late = await member(link);
      await say(early, OF_JOB);
      await say(late, OF_JOB);
      expect(await closedOf(strangers, 1)).toEqual([0]);
      expect(link.connections).toBeLessThanOrEqual(CONNECTIONS);
    },
  );

  it("a flood, however fast: a connection has two seconds for its request and its first packet, and then makes room", async () => {
    const link = await full();
    const slow = await silent(link, REQUEST);
    const answers: Buffer[] = [];
    slow.on("data", (bytes) => answers.push(bytes));
    // A server takes connections in their order: it has taken the slow one.
    await asked(link);
    time += PROOF - 1;
    for (let round = 0; round < CONNECTIONS; round++) for (const [, make] of KINDS) await make(link);
    expect([isOpen(slow), answers]).toEqual([true, []]);
    slow.write("\r\n");
    await until(() => answers.length > 0 || !isOpen(slow));
    expect(`${Buffer.concat(answers)}`).toMatch(/^HTTP\/1\.1 101 /);
    time += 1;
    await silent(link);
    await until(() => !isOpen(slow));
  });

  it("members hold what they may: the next is refused until one closes, and strangers end the connection of none", async () => {
    const link = await full();
    const members = await many(MEMBERS, () => member(link));
    for (let round = 0; round < 2 * CONNECTIONS; round++) {
      await (KINDS[round % 2] as (typeof KINDS)[0])[1](link);
      time += PROOF;
    }
    const next = stranger(link);
    const status = await new Promise((done) => {
      next.once("unexpected-response", (_, { statusCode }) => done(statusCode)).once("open", () => done(101));
    });
    expect([status, await closedOf(members), link.connections]).toEqual([503, [], MEMBERS]);
    for (const one of members) await say(one, OF_JOB);
    members[0]?.close();
    await until(() => link.connections === MEMBERS - 1);
    time += PROOF;
    await member(link);
    expect(await closedOf(members, 1)).toEqual([0]);
  });

  it("connections that have ended, by whichever side, take no place", async () => {
    const link = await full();
    for (let round = 0; round < 4; round++) {
      const members = await many(round, () => member(link));
      const all = [...members, ...(await many(CONNECTIONS, () => (KINDS[round] as (typeof KINDS)[0])[1](link)))];
      time += PROOF;
      all.push(...(await many(CONNECTIONS / 2, () => silent(link))));
      expect(await closedOf(members)).toEqual([]);
      for (const one of all) "destroy" in one ? one.destroy() : one.terminate();
      await until(() => link.connections === 0);
    }
    // Their ends come to the server by and by.
    let last: Socket[] = [];
    for (let tries = 0; tries < 50 && (last.length === 0 || (await closedOf(last)).length > 0); tries++) {
      for (const one of last) one.destroy();
      last = await many(CONNECTIONS, () => silent(link));
    }
    expect(await closedOf(last)).toEqual([]);
    expect(isOpen(await asked(link))).toBe(false);
  });

  it.runIf(hasOpenssl)("with certificates: so it is at each step of a stranger's handshake", async () => {
    const tls = certificate();
    const trusting = { ca: tls.cert };
    const link = await full({ listen: "wss://127.0.0.1:0/", tls });
    const early = await member(link, trusting);
    const secured = async (): Promise<Socket> => {
      const socket = connectSecurely({ port: portOf(link), host: "127.0.0.1", ca: tls.cert });
      sockets.push(socket.on("error", () => {}).resume());
      await new Promise<void>((done) => socket.once("secureConnect", done).once("close", () => done()));
      return socket;
    };
    const steps = [() => silent(link), () => silent(link, "\x16\x03\x01"), secured, () => asked(link, trusting)];
    const strangers: (Socket | WebSocket)[] = [];
    for (let i = 0; i < CONNECTIONS - 1; i++) strangers.push(await (steps[i % 4] as (typeof steps)[0])());
    expect(isOpen(await asked(link, trusting))).toBe(false);
    expect(await closedOf(strangers)).toEqual([]);
    time += PROOF;
    const late = await member(link, trusting);
    expect(await closedOf(strangers, 1)).toEqual([0]);
    for (const step of steps) await step();
    expect(await closedOf(strangers, 5)).toEqual([0, 1, 2, 3, 4]);
    await many(CONNECTIONS, () => {
      time += PROOF;
      return secured();
    });
    await say(early, OF_JOB);
    await say(late, OF_JOB);
    expect((await closedOf(strangers, strangers.length)).length).toBe(strangers.length);
  });
});

describe("servers that are none", () => {
  /** A server of TCP, which does something with each connection. */
  async function tcpServer(serve: (socket: Socket) => void, port = 0): Promise<Address> {
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {});
      serve(socket);
    });
    servers.push(server);
    await new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
    return `ws://127.0.0.1:${(server.address() as { port: number }).port}/`;
  }

  it.each([
    ["no server", () => closedServer()],
    ["a server that never answers", () => tcpServer((socket) => socket.resume())],
    ["a server that closes at once", () => tcpServer((socket) => socket.destroy())],
    [
      "a server that speaks HTTP",
      () => tcpServer((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")),
    ],
    ["a server that speaks something else", () => tcpServer((socket) => socket.end("220 mail ESMTP\r\n"))],
    ["a server whose name does not resolve", () => "ws://nowhere.invalid:4567/"],
  ])("%s: packets are lost, the link goes on, and tries again", async (_, address) => {
    const [link, server] = [await open({ handshakeMs: 300 }), await open({ listen: LISTEN })];
    const to = await address();
    await sendUntil(link, to, () => link.counts.failed >= 2);
    expect(link.counts.lost).toBeGreaterThan(0);
    expect(link.counts.received).toBe(0);
    await until(() => link.connections === 0 || link.counts.failed >= 3);
    const came = cameTo(server);
    // On a busy machine, a handshake may take longer than this link allows.
    await sendUntil(link, server.address as Address, () => came.length > 0);
    expect(came[0]?.bytes).toHaveLength(1);
  });

  it("a server that begins later is found, and found again when it begins anew", async () => {
    const to = await closedServer();
    const client = await open();
    await sendUntil(client, to, () => client.counts.failed >= 1);
    for (let round = 0; round < 2; round++) {
      const server = await open({ listen: to });
      const came = cameTo(server);
      await sendUntil(client, to, () => came.length > 0);
      server.close();
      await until(() => client.connections === 0);
    }
  });

  it("a server that sends a text, or too large a message: the connection ends", async () => {
    const server = await open({ listen: LISTEN });
    for (const [round, bad] of ["text", new Uint8Array(70_000)].entries()) {
      const client = await open();
      const answers = cameTo(client);
      const original = server.accept.bind(server);
      server.accept = (socket, stated) => {
        socket.send(bad as Uint8Array<ArrayBuffer>);
        original(socket, stated);
      };
      client.send(server.address as Address, Uint8Array.of(1));
      await until(() => client.counts.wrong === 1);
      await until(() => client.connections === 0);
      expect([round, answers]).toEqual([round, []]);
      server.accept = original;
    }
  });
});

describe("queues", () => {
  it("are of each connection: a peer that reads nothing loses packets, and holds up no other", async () => {
    const queueBytes = 2 ** 17;
    const server = await open({ listen: LISTEN, queueBytes });
    const came = cameTo(server);
    const idle = stranger(server);
    await opened(idle);
    (idle as unknown as { _socket: Socket })._socket.pause();
    idle.send(Uint8Array.of(1));
    const client = await open();
    const answers = cameTo(client);
    client.send(server.address as Address, Uint8Array.of(2));
    await until(() => came.length === 2);
    const [toIdle, toClient] = [1, 2].map((number) => came.find(({ bytes }) => bytes[0] === number)?.from as Address);
    const packet = new Uint8Array(20_000);
    let sent = 0;
    // The system takes some megabytes of it.
    while (server.counts.full < 100 && sent++ < 5000) {
      expect(server.send(toIdle as Address, packet)).toBe(true);
      if (sent % 4 === 0) await nextTurn();
    }
    expect(server.counts.full).toBe(100);
    server.send(toClient as Address, Uint8Array.of(3));
    await until(() => answers.length === 1);
    expect(answers[0]?.bytes).toEqual([3]);
    // Once it reads, there is room again.
    (idle as unknown as { _socket: Socket })._socket.resume();
    let last = 0;
    idle.on("message", (bytes: Buffer) => {
      last = bytes.length;
    });
    while (last !== 7) {
      server.send(toIdle as Address, new Uint8Array(7));
      await nextTurn();
    }
  });

  it("have a bound while a connection opens, in bytes, and for packets without bytes", async () => {
    const client = await open({ queueBytes: 2 ** 17, handshakeMs: 60_000 });
    const server = createServer((socket) => void sockets.push(socket));
    servers.push(server);
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const to = `ws://127.0.0.1:${(server.address() as { port: number }).port}/`;
    for (let i = 0; i < 10; i++) client.send(to, new Uint8Array(20_000));
    expect([client.counts.sent, client.counts.full]).toEqual([6, 4]);
    const other = `ws://127.0.0.1:${(server.address() as { port: number }).port}/other`;
    for (let i = 0; i < 20_000; i++) client.send(other, new Uint8Array(0));
    expect(client.counts.full).toBeGreaterThan(4 + 10_000);
  });

  it("addresses without a connection have a bound: state for old ones goes", async () => {
    const client = await open();
    for (let i = 0; i < 10_000; i++) client.send(`wss://127.0.0.1:1/${i}`, new Uint8Array(1));
    // 4,096 connect at a time; the others are lost.
    expect(client.connections).toBeLessThanOrEqual(4096);
    await until(() => client.connections === 0);
    const server = await open({ listen: LISTEN });
    const came = cameTo(server);
    client.send(server.address as Address, Uint8Array.of(1));
    await until(() => came.length === 1);
  });
});

describe("close()", () => {
  it("ends connections, the server and what opens: nothing is called any more, and the port is free", async () => {
    const server = await open({ listen: LISTEN });
    const client = await open();
    const came = [...cameTo(server), ...cameTo(client)];
    await sendUntil(client, server.address as Address, () => server.counts.received > 0);
    client.send("ws://127.0.0.1:1/", Uint8Array.of(1));
    const idle = connect(portOf(server), "127.0.0.1");
    sockets.push(idle);
    await new Promise((done) => idle.once("connect", done));
    const closed = new Promise((done) => idle.once("close", done));
    client.send(server.address as Address, Uint8Array.of(2));
    server.close();
    client.close();
    client.close();
    const before = came.length;
    await closed;
    for (let turns = 0; turns < 50; turns++) await nextTurn();
    expect(came.length).toBe(before);
    expect([server.connections, client.connections]).toEqual([0, 0]);
    await open({ listen: server.address as string });
  });
});

describe.runIf(hasOpenssl)("wss:", () => {
  it("a client that trusts the certificate reaches the server, and is answered", async () => {
    const tls = certificate();
    const server = await open({ listen: "wss://127.0.0.1:0/pamir", tls });
    const client = await open({ ca: tls.cert });
    const [came, answers] = [cameTo(server), cameTo(client)];
    client.send(server.address as Address, Uint8Array.of(1));
    await until(() => came.length === 1);
    server.send(came[0]?.from as Address, Uint8Array.of(2));
    await until(() => answers.length === 1);
    expect(answers).toEqual([{ from: server.address, bytes: [2] }]);
  });

  it("a client that does not trust it sends nothing; nor does one to a name that the certificate does not have", async () => {
    const tls = certificate();
    const server = await open({ listen: "wss://127.0.0.1:0/", tls });
    const came = cameTo(server);
    const distrustful = await open();
    await sendUntil(distrustful, server.address as Address, () => distrustful.counts.failed >= 2);
    const elsewhere = await open({ ca: tls.cert });
    const other = (server.address as string).replace("127.0.0.1", "127.0.0.2");
    const there = await open({ listen: other, tls });
    await sendUntil(elsewhere, there.address as Address, () => elsewhere.counts.failed >= 2);
    expect([came, server.counts.received, there.counts.received]).toEqual([[], 0, 0]);
  });

  it("peers that speak no TLS, or stop in the middle: the connection ends, and others go on", async () => {
    const tls = certificate();
    const server = await open({ listen: "wss://127.0.0.1:0/", tls, handshakeMs: 300 });
    const ends = ["GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01", ""].map((text) => {
      const socket = connect(portOf(server), "127.0.0.1");
      sockets.push(socket);
      socket.on("error", () => {}).resume();
      socket.write(text, "latin1");
      return new Promise((done) => socket.once("close", done));
    });
    await Promise.all(ends);
    const client = await open({ ca: tls.cert });
    await sendUntil(client, server.address as Address, () => server.counts.received > 0);
  });
});

it("the host's own WebSocket reaches a server, and is answered", async () => {
  // Node 20 has one behind an option, which later ones take, too.
  const option = "--experimental-websocket";
  const probe = spawnSync(process.execPath, [option, "-p", "typeof WebSocket"], { encoding: "utf8" });
  if (probe.stdout.trim() !== "function")
    return console.log("not run: the host's own WebSocket, since this Node has none");
  // In a folder without ws.
  const url = await bundle(new URL("../../src/link/websocket/websocket-server.ts", import.meta.url));
  const server = await open({ listen: LISTEN });
  server.onPacket = (from, bytes) =>
    server.send(
      from,
      bytes.map((byte) => byte ^ 255),
    );
  const program = `
    const { openWebSocketLink } = await import(${JSON.stringify(url.href)});
    const server = await openWebSocketLink({ listen: "ws://127.0.0.1:0/" }).catch((error) => error.code);
    const link = await openWebSocketLink();
    const packet = new Uint8Array(30_000).fill(5);
    let came = 0;
    link.onPacket = (from, bytes) => {
      if (++came < 100) return;
      link.close();
      const isRight = bytes.length === 30_000 && bytes.every((byte) => byte === 250);
      console.log(JSON.stringify({ server, from, came, isRight, counts: link.counts }));
    };
    for (let i = 0; i < 100; i++) {
      link.send(${JSON.stringify(server.address)}, packet.fill(5));
      packet.fill(0xee);
      await new Promise(setImmediate);
      while (came <= i - 20) await new Promise(setImmediate);
    }`;
  const child = spawn(process.execPath, [option, "--input-type=module", "-e", program], {
    cwd: inject("folder"),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [text, errors] = ["", ""];
  child.stdout.on("data", (more) => {
    text += more;
  });
  child.stderr.on("data", (more) => {
    errors += more;
  });
  await new Promise((done) => child.once("close", done));
  expect([errors.replace(/\(node:\d+\) ExperimentalWarning.*|\(Use `node.*/g, "").trim(), text]).toEqual([
    "",
    expect.stringMatching(/^\{/),
  ]);
  const told = JSON.parse(text);
  expect(told).toMatchObject({ server: "PAMIR_ADDRESS", from: server.address, came: 100, isRight: true });
  expect(told.counts).toMatchObject({ sent: 100, received: 100, full: 0, lost: 0, failed: 0, wrong: 0 });
});
