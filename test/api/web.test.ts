// pamir/web in Node: tickets and their misuse, connections that are cut, ends of nodes and of the host.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join as pathOf, resolve as rooted } from "node:path";
import { type Client, type Context, type PamiError, SHUTDOWN, SUCCESS } from "pamir";
import { type Host, type HostOptions, host, type JoinOptions, join } from "pamir/web";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { freePort } from "../support/free-port.js";
import { PATIENCE } from "./support.js";

const NUMBER = 1;
const LISTEN = "ws://127.0.0.1:0/";
/** Milliseconds in which a connection may come back: as in src/web/host-link.ts. */
const RETURN_MS = 10_000;
/** Milliseconds for which an agent awaits the last acknowledgments: as in src/start/node/started-agent.ts. */
const ACKNOWLEDGE_MS = 10_000;

/** The code with which a promise rejects, or a call throws. */
async function codeOf(call: () => unknown): Promise<string> {
  try {
    await call();
  } catch (error) {
    return (error as PamiError).code;
  }
  return "none";
}

const open = (options: Partial<HostOptions> = {}): Promise<Host> =>
  host({ listen: LISTEN, insecure: true, heapBytes: 2 ** 24, ...options });
const enter = (ticket: string, options: JoinOptions = {}): Promise<Client> =>
  join(ticket, { insecure: true, timeout: PATIENCE, ...options });

/** Advances a context until it is closed. */
async function pump(context: Context): Promise<void> {
  while (!context.closed) await context.progress().catch(() => {});
}

const endOf = (context: Context, task: number): Promise<number> =>
  new Promise((resolve) => context.whenEnded(task, (_: unknown, result: number) => resolve(result)));

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Passes connections on to a port, until they are cut. */
async function proxyTo(port: number): Promise<{ port: number; cut(): void; close(): void }> {
  const sockets = new Set<Socket>();
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  const server = createServer((from) => {
    const to = connect(port, "127.0.0.1");
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(one);
      one.on("error", () => {}).on("close", () => other.destroy());
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port: own } = server.address() as { port: number };
  const close = (): void => {
    cut();
    server.close();
  };
  return { port: own, cut, close };
}

describe("tickets", () => {
  it("one admits one node, once; nodes are numbered as they join", async () => {
    await using job = await open();
    const [first, second] = [job.invite(), job.invite()];
    const later = await enter(second.ticket);
    const client = await enter(first.ticket);
    expect([later.task, client.task, await second.joined, await first.joined]).toEqual([1, 2, 1, 2]);
    expect([job.client.size, client.size]).toEqual([3, 3]);
    expect(await codeOf(() => enter(first.ticket))).toBe("PAMIR_TICKET_USED");
    await client.close({ drain: true, timeout: PATIENCE });
    expect(await codeOf(() => enter(first.ticket))).toBe("PAMIR_TICKET_USED");
    later.close();
  });

  it("two nodes at once with one ticket: one joins", async () => {
    await using job = await open();
    const { ticket } = job.invite();
    const codes = await Promise.all([1, 2, 3].map(() => codeOf(async () => (await enter(ticket)).close())));
    expect(codes.sort()).toEqual(["PAMIR_TICKET_USED", "PAMIR_TICKET_USED", "none"]);
    expect(job.client.size).toBe(2);
  });

  it("one that was not used in its lifetime", async () => {
    await using job = await open({ pages: 1 });
    const { ticket, joined } = job.invite({ lifetime: 1 });
    expect(await codeOf(() => joined)).toBe("PAMIR_TICKET_EXPIRED");
    expect(await codeOf(() => enter(ticket))).toBe("PAMIR_TICKET_EXPIRED");
    // It takes no place.
    const client = await enter(job.invite().ticket);
    expect(client.task).toBe(1);
    client.close();
  });

  it("as many as there may be nodes", async () => {
    await using job = await open({ pages: 2 });
    const client = await enter(job.invite().ticket);
    job.invite();
    expect(await codeOf(() => job.invite())).toBe("PAMIR_INVAL");
    client.close();
  });

  it.each([
    ["empty", () => ""],
    ["a part", (ticket: string) => ticket.slice(0, 40)],
    ["spaces", (ticket: string) => ` ${ticket}`],
    ["a URL", () => LISTEN],
    ["another version", (ticket: string) => `C${ticket.slice(1)}`],
    ["an address that is none", (ticket: string) => `${ticket.slice(0, 60)}AAAA`],
    ["another id", (ticket: string) => `${ticket.slice(0, 8)}AAAA${ticket.slice(12)}`],
    ["another secret", (ticket: string) => `${ticket.slice(0, 30)}AAAA${ticket.slice(34)}`],
    ["another job", (ticket: string) => `${ticket.slice(0, 3)}AAA${ticket.slice(6)}`],
  ])("a text that is none: %s", async (_, change) => {
    await using job = await open();
    const { ticket } = job.invite();
    expect(await codeOf(() => enter(change(ticket)))).toBe("PAMIR_TICKET");
    expect(job.client.size).toBe(1);
    const client = await enter(ticket);
    client.close();
  });

  it("an error shows no secret", async () => {
    await using job = await open();
    const { ticket } = job.invite();
    const error = await enter(`${ticket}!`).catch((caught: Error) => caught);
    expect(String((error as Error).message)).not.toContain(ticket.slice(0, 20));
  });
});

describe("bad input", () => {
  it.each([
    ["no options", () => host(undefined as never), "PAMIR_INVAL"],
    ["an unknown option", () => open({ page: 1 } as never), "PAMIR_INVAL"],
    ["no page", () => open({ pages: 0 }), "PAMIR_INVAL"],
    ["too many pages", () => open({ pages: 1024 }), "PAMIR_INVAL"],
    ["a short silence", () => open({ silence: 99 }), "PAMIR_INVAL"],
    ["no address", () => open({ listen: 7 as never }), "PAMIR_INVAL"],
    ["an address with a query", () => open({ listen: "ws://127.0.0.1:0/?key=1" }), "PAMIR_INVAL"],
    ["all addresses, and none for tickets", () => open({ listen: "ws://0.0.0.0:0/" }), "PAMIR_INVAL"],
    ["the same of IPv6", () => open({ listen: "ws://[0::0]:0/" }), "PAMIR_INVAL"],
    ["all addresses for tickets", () => open({ address: "wss://0/" }), "PAMIR_INVAL"],
    ["contexts", () => open({ contexts: 0 }), "PAMIR_INVAL"],
    ["wss: without a certificate", () => open({ listen: "wss://127.0.0.1:0/" }), "PAMIR_INVAL"],
    ["tls without a certificate", () => open({ listen: "wss://127.0.0.1:0/", tls: {} as never }), "PAMIR_INVAL"],
    ["tls that is null", () => open({ listen: "wss://127.0.0.1:0/", tls: null as never }), "PAMIR_INVAL"],
    ["tls with another key", () => open({ listen: "wss://127.0.0.1:0/", tls: { cart: 1 } as never }), "PAMIR_INVAL"],
    ["tls that is none", () => open({ listen: "wss://127.0.0.1:0/", tls: { cert: "a", key: "b" } }), "PAMIR_ADDRESS"],
    ["origins that are no list", () => open({ origins: "https://example.org" as never }), "PAMIR_INVAL"],
    ["an origin that is none", () => open({ origins: ["https://example.org/"] }), "PAMIR_INVAL"],
    ["ws: that is not allowed", () => host({ listen: LISTEN }), "PAMIR_INSECURE"],
    ["insecure that is no boolean", () => host({ listen: LISTEN, insecure: "yes" as never }), "PAMIR_INVAL"],
    ["an address that is not here", () => open({ listen: "ws://192.0.2.1:0/" }), "PAMIR_ADDRESS"],
    ["a ticket that is no text", () => join(7 as never), "PAMIR_INVAL"],
    ["a timeout", () => enter("AA", { timeout: -1 }), "PAMIR_INVAL"],
    ["a signal", () => enter("AA", { signal: {} as never }), "PAMIR_INVAL"],
  ])("%s", async (_, call, code) => {
    expect(await codeOf(call)).toBe(code);
  });

  it("with origins, a page of another one is refused before its ticket is looked at; a program joins by the same ticket", async () => {
    await using job = await open({ origins: ["https://example.org"] });
    const { ticket } = job.invite();
    const socket = new WebSocket(job.address, ["pamir.1"], { origin: "https://example.com" });
    const [error] = await once(socket, "error");
    expect((error as Error).message).toBe("Unexpected server response: 403");
    const client = await enter(ticket);
    expect(client.task).toBe(1);
    client.close();
  });

  it("a server at all addresses, with one for tickets", async () => {
    const port = await freePort();
    await using job = await open({ listen: `ws://0.0.0.0:${port}/`, address: `ws://127.0.0.1:${port}/` });
    const client = await enter(job.invite().ticket);
    expect(client.task).toBe(1);
    client.close();
  });

  it("of invite(), and of a ticket for ws:", async () => {
    await using job = await open();
    for (const lifetime of [0, 1.5, 86_400_001, "1"])
      expect(await codeOf(() => job.invite({ lifetime } as never))).toBe("PAMIR_INVAL");
    expect(await codeOf(() => job.invite({ life: 1 } as never))).toBe("PAMIR_INVAL");
    expect(await codeOf(() => join(job.invite().ticket))).toBe("PAMIR_INSECURE");
  });

  it("a host that is not there; a signal; a host that is closed", async () => {
    const port = await freePort();
    const job = await open({ address: `ws://127.0.0.1:${port}/` });
    const { ticket, joined } = job.invite();
    const absent = await enter(ticket, { timeout: 1000 }).catch((error: PamiError) => error);
    expect((absent as PamiError).code).toBe("PAMIR_TIMEDOUT");
    expect((absent as PamiError).message).toMatch(/did not admit this node in 1000 ms: .*ECONNREFUSED/);
    expect(await codeOf(() => enter(ticket, { signal: AbortSignal.abort() }))).toBe("PAMIR_CANCELED");
    const controller = new AbortController();
    const waiting = codeOf(() => enter(ticket, { signal: controller.signal }));
    controller.abort();
    expect(await waiting).toBe("PAMIR_CANCELED");
    await job.close();
    await job.close();
    expect(await codeOf(() => joined)).toBe("PAMIR_CLOSED");
    expect(await codeOf(() => job.invite())).toBe("PAMIR_CLOSED");
  });

  it("a peer that says what it likes reaches nothing, and others join", async () => {
    await using job = await open();
    const ended = Array.from({ length: 24 }, async (_, round) => {
      const socket = new WebSocket(job.address, ["pamir.1"]);
      let bytes = 0;
      socket.on("message", (data: Buffer) => {
        bytes += data.length;
      });
      await new Promise((resolve) => socket.once("open", resolve));
      for (let kind = 0; kind < 8; kind++) {
        const packet = Buffer.alloc((round * 37) % 300, round * kind);
        if (packet.length > 1) [packet[0], packet[1]] = [kind, round % 3];
        socket.send(packet);
      }
      // A HELLO of the right length, of a ticket that there is not.
      const hello = Buffer.alloc(64, round);
      [hello[0], hello[1]] = [1, 1];
      socket.send(hello);
      await new Promise((resolve) => socket.once("close", resolve));
      return bytes;
    });
    // Each has got the refusal of its HELLO, which is shorter.
    for (const bytes of await Promise.all(ended)) expect(bytes).toBeLessThanOrEqual(64);
    const client = await enter(job.invite().ticket);
    expect([client.task, job.client.size]).toEqual([1, 2]);
    client.close();
  });
});

describe("a connection", () => {
  it("is cut again and again: nothing is lost, comes twice, or out of order", async () => {
    const port = await freePort();
    const proxy = await proxyTo(port);
    const address = `ws://127.0.0.1:${proxy.port}/`;
    const job = await open({ listen: `ws://127.0.0.1:${port}/`, address });
    const clients = [job.client, await enter(job.invite().ticket), await enter(job.invite().ticket)];
    const contexts = clients.map((client) => client.createContext());
    const heard = contexts.map((context) => {
      const numbers: number[][] = [[], [], []];
      context.dispatch(NUMBER, (message) => {
        numbers[message.getInt32(0)]?.push(message.getInt32(4));
      });
      return numbers;
    });
    const pumping = contexts.map(pump);
    const COUNT = 200;
    let isOver = false;
    const cutting = (async () => {
      while (!isOver) {
        await new Promise((resolve) => setTimeout(resolve, 40));
        proxy.cut();
      }
    })();
    await Promise.all(
      contexts.map(async (context, from) => {
        for (let number = 0; number < COUNT; number++) {
          for (let to = 0; to < 3; to++) {
            if (to === from) continue;
            while (context.sendImmediate(to, NUMBER, null, Int32Array.of(from, number)) !== SUCCESS)
              await context.whenRoom(to, 8, { timeout: PATIENCE });
          }
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      }),
    );
    isOver = true;
    await cutting;
    const all = Array.from({ length: COUNT }, (_, number) => number);
    await until(() => heard.every((numbers, to) => numbers.every((list, from) => from === to || list.length >= COUNT)));
    for (const [to, numbers] of heard.entries())
      for (const [from, list] of numbers.entries()) if (from !== to) expect(list).toEqual(all);
    for (const client of clients.slice(1)) client.close();
    await job.close();
    proxy.close();
    await Promise.all(pumping);
  });

  it("is lost for good: both sides hear SHUTDOWN after the silence", async () => {
    const port = await freePort();
    const proxy = await proxyTo(port);
    const job = await open({
      listen: `ws://127.0.0.1:${port}/`,
      address: `ws://127.0.0.1:${proxy.port}/`,
      silence: 1000,
    });
    const client = await enter(job.invite().ticket);
    const contexts = [job.client.createContext(), client.createContext()] as const;
    const pumping = contexts.map(pump);
    const ends = Promise.all([endOf(contexts[0], 1), endOf(contexts[1], 0)]);
    proxy.close();
    expect(await ends).toEqual([SHUTDOWN, SHUTDOWN]);
    client.close();
    await job.close();
    await Promise.all(pumping);
  });
});

const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;
if (!hasOpenssl) console.log("not run: a host at wss:, since there is no openssl to make its certificate");

it.skipIf(!hasOpenssl)("a host at wss: needs no insecure", () => {
  // In a folder of the project, so that the program finds the package by its name.
  const folder = mkdtempSync(rooted(".tmp-wss-"));
  try {
    const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    const made = [
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-days",
      "2",
      "-keyout",
      "key.pem",
      "-out",
      "cert.pem",
    ];
    expect(spawnSync("openssl", [...made, ...names], { cwd: folder }).status).toBe(0);
    writeFileSync(
      pathOf(folder, "main.js"),
      `import { readFileSync } from "node:fs";
      import { host, join } from "pamir/web";
      const tls = { cert: readFileSync("cert.pem"), key: readFileSync("key.pem") };
      const job = await host({ listen: "wss://localhost:0/", tls });
      const client = await join(job.invite().ticket);
      console.log(client.task, new URL(job.address).protocol);
      client.close();
      await job.close();`,
    );
    writeFileSync(
      pathOf(folder, "untrusted.js"),
      `import { readFileSync } from "node:fs";
      import { host, join } from "pamir/web";
      const tls = { cert: readFileSync("cert.pem"), key: readFileSync("key.pem") };
      const job = await host({ listen: "wss://localhost:0/", tls });
      await join(job.invite().ticket, { timeout: 3000 }).catch(({ code, message }) => console.log(code, message));
      await job.close();`,
    );
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: "cert.pem" };
    const { stdout, stderr } = spawnSync(process.execPath, ["main.js"], { cwd: folder, env, encoding: "utf8" });
    expect([stdout, stderr]).toEqual(["1 wss:\n", ""]);
    const untrusted = spawnSync(process.execPath, ["untrusted.js"], { cwd: folder, encoding: "utf8" });
    expect(untrusted.stdout).toMatch(/^PAMIR_TIMEDOUT wss:.* did not admit this node in 3000 ms: .*certificate/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

describe("ends", () => {
  it("a node leaves behind all that it has sent; then the host: the others hear SHUTDOWN", async () => {
    const job = await open();
    const clients = [await enter(job.invite().ticket), await enter(job.invite().ticket)] as const;
    const [own, first, second] = [job.client, ...clients].map((client) => client.createContext()) as [
      Context,
      Context,
      Context,
    ];
    let heard = 0;
    own.dispatch(NUMBER, () => {
      heard++;
    });
    const pumping = [own, second].map(pump);
    const ended = Promise.all([endOf(own, 1), endOf(second, 1)]);
    for (let i = 0; i < 10; i++) expect(first.sendImmediate(0, NUMBER, null, Int32Array.of(i))).toBe(SUCCESS);
    clients[0].close();
    expect(await ended).toEqual([SHUTDOWN, SHUTDOWN]);
    expect(heard).toBe(10);
    const last = endOf(second, 0);
    await job.close();
    expect(await last).toBe(SHUTDOWN);
    expect(second.sendImmediate(0, NUMBER, null, null)).toBe(SHUTDOWN);
    clients[1].close();
    await Promise.all(pumping);
  });

  it("the host's task leaves, and the job goes on: those that join later hear SHUTDOWN of it, and talk", async () => {
    await using job = await open();
    const first = await enter(job.invite().ticket);
    const before = first.createContext();
    job.client.createContext();
    const pumping = pump(before);
    const ended = endOf(before, 0);
    await job.client.close({ drain: true });
    expect(await ended).toBe(SHUTDOWN);
    const second = await enter(job.invite().ticket);
    const context = second.createContext();
    let heard = 0;
    context.dispatch(NUMBER, () => {
      heard++;
    });
    const later = pump(context);
    expect(await endOf(context, 0)).toBe(SHUTDOWN);
    expect(context.sendImmediate(0, NUMBER, null, null)).toBe(SHUTDOWN);
    before.sendImmediate(2, NUMBER, null, null);
    await first.close({ drain: true });
    await until(() => heard === 1);
    second.close();
    await Promise.all([pumping, later]);
  });

  it("a process exits: the others hear SHUTDOWN at once", async () => {
    await using job = await open();
    const context = job.client.createContext();
    void pump(context);
    const { ticket, joined } = job.invite();
    const code = `import { join } from "pamir/web";
      await join(${JSON.stringify(ticket)}, { insecure: true });
      process.once("SIGTERM", () => process.exit(1));
      console.log("joined");`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout, "data");
    const ended = endOf(context, await joined);
    const start = performance.now();
    child.kill();
    expect(await ended).toBe(SHUTDOWN);
    // Sooner than a host gives up a connection that may come back.
    expect(performance.now() - start).toBeLessThan(RETURN_MS);
  });

  it("a process has drained and closed, and exits at once: all that it sent comes", async () => {
    await using job = await open();
    const context = job.client.createContext();
    let heard = 0;
    context.dispatch(NUMBER, () => {
      heard++;
    });
    const pumping = pump(context);
    const { ticket, joined } = job.invite();
    const code = `import { join } from "pamir/web";
      const client = await join(${JSON.stringify(ticket)}, { insecure: true });
      const context = client.createContext();
      for (let i = 0; i < 100; i++) context.sendImmediate(0, ${NUMBER}, null, null);
      await client.close({ drain: true });
      process.kill(process.pid, "SIGKILL");`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: "inherit" });
    const exited = once(child, "exit");
    expect(await endOf(context, await joined)).toBe(SHUTDOWN);
    expect([await exited, heard]).toEqual([[null, "SIGKILL"], 100]);
    context.close();
    await pumping;
  });

  it("a node that leaves while its host is out of reach awaits nothing after the silence", async () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    const before = timers();
    const port = await freePort();
    const proxy = await proxyTo(port);
    const address = `ws://127.0.0.1:${proxy.port}/`;
    const job = await open({ listen: `ws://127.0.0.1:${port}/`, address, silence: 1000 });
    const client = await enter(job.invite().ticket);
    const context = client.createContext();
    proxy.close();
    context.sendImmediate(0, NUMBER, null, null);
    const start = performance.now();
    client.close();
    await job.close();
    await until(() => timers() <= before);
    // Sooner than an agent gives up the last acknowledgments.
    expect(performance.now() - start).toBeLessThan(ACKNOWLEDGE_MS);
  });
});
