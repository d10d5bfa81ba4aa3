// Pages in a job at a NATS server, in whichever browser, and the example of docs/cluster.md: two processes of `pamir run --nats`, and pages that come later.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { nkeys } from "@nats-io/nats-core";
import { build } from "esbuild";
import { type Context, SHUTDOWN, SUCCESS } from "pamir";
import { join as joinJob, natsInviter } from "pamir/web";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort } from "../support/free-port.js";
import { type Launched, newJob, said, startProgram } from "../support/nats-launcher.js";
import { certificates, credentialsBy, OPENSSL, serverOfAccount, tlsPart } from "../support/nats-secrets.js";
import { NatsServer } from "../support/nats-server.js";
import { cli } from "../support/run-command.js";
import type { GivenJob, NatsPage } from "./programs/nats-page.js";
import { DOUBLE } from "./programs/web-page.js";
import { filesOf } from "./support.js";
import { type AnyPage, until } from "./web-hosted.js";

const KEY = Array.from({ length: 32 }, (_, i) => 1 + i);
const BYTES = 2 ** 20;
const HEAD = '<!doctype html><link rel="icon" href="data:,">';

interface AnyBrowser {
  newPage(): Promise<AnyPage>;
  close(): Promise<unknown>;
}

/** Calls a function of a page's program. */
type Calls = {
  [Name in keyof NatsPage]: (...given: Parameters<NatsPage[Name]>) => Promise<Awaited<ReturnType<NatsPage[Name]>>>;
};

/** A server, a job there, and its pages. */
interface Rig {
  readonly server: NatsServer;
  readonly job: string;
  /** For pages. */
  readonly given: Exclude<GivenJob, string>;
  open(): Promise<{ readonly page: AnyPage; readonly calls: Calls }>;
  /** A page that has joined. */
  enter(given?: GivenJob): Promise<{ readonly page: AnyPage; readonly calls: Calls }>;
}

interface RigOptions {
  readonly spare?: number;
  /** Of the server. */
  readonly config?: string;
  readonly silence?: number;
  /** Of the port for pages. */
  readonly tls?: string;
  /** Of the nodes. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The js blocks under a heading of docs/cluster.md, by the file's name in their first line. */
function recipe(heading: string): Map<string, string> {
  const section = readFileSync("docs/cluster.md", "utf8").split(`## ${heading}\n`)[1]?.split("\n## ")[0] as string;
  const found = section.matchAll(/```js\n\/\/ ([\w.]+)\n([\s\S]*?)^```$/gm);
  return new Map([...found].map(([, name, code]) => [name as string, code as string]));
}

/**
 * Declares the tests. A browser is opened before the first one.
 * @param freeze freezes a page, as a browser does with one that is not seen; it resolves with what lets it go on
 */
export function natsSuite(
  open: () => Promise<AnyBrowser>,
  freeze?: (page: AnyPage) => Promise<() => Promise<unknown>>,
): void {
  let browser: AnyBrowser;
  let folder: string;
  let files: Server;
  let url: string;

  beforeAll(async () => {
    browser = await open();
    folder = mkdtempSync(resolve(".tmp-nats-"));
    const program = (name: string): string => fileURLToPath(new URL(`programs/${name}.ts`, import.meta.url));
    const common = { bundle: true, format: "esm", logLevel: "error" } as const;
    await build({ ...common, entryPoints: [program("nats-page")], outfile: join(folder, "main.js") });
    const outfile = join(folder, "node.mjs");
    await build({ ...common, entryPoints: [program("nats-node")], outfile, platform: "node", packages: "external" });
    writeFileSync(join(folder, "index.html"), `${HEAD}<script type="module" src="main.js"></script>`);
    writeFileSync(join(folder, "job.key"), Uint8Array.from(KEY), { mode: 0o400 });
    files = createServer(filesOf(folder));
    await new Promise<void>((done) => files.listen(0, "localhost", done));
    url = `http://localhost:${(files.address() as AddressInfo).port}/`;
  });

  afterAll(async () => {
    await browser?.close();
    files?.closeAllConnections();
    files?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function openPage(): Promise<{ readonly page: AnyPage; readonly calls: Calls }> {
    const page = await browser.newPage();
    await page.goto(url);
    await page.waitForFunction("globalThis.page !== undefined");
    const call =
      (name: string) =>
      (...given: unknown[]): Promise<unknown> =>
        page.evaluate(`page.${name}(${given.map((one) => JSON.stringify(one) ?? "undefined").join(", ")})`);
    return { page, calls: new Proxy({} as Calls, { get: (_, name: string) => call(name) }) };
  }

  /** Runs a body with a server, and a job of two nodes there. */
  async function running(
    body: (rig: Rig) => Promise<void>,
    { spare = 4, config = "", silence = 3_600_000, tls = "no_tls: true", env: more = {} }: RigOptions = {},
  ): Promise<void> {
    // One that starts again has the same port.
    const websocket = `websocket { listen: "127.0.0.1:${await freePort()}", ${tls} }`;
    const server = await NatsServer.start({ config: `${websocket}\n${config}` });
    const job = newJob();
    const pages: AnyPage[] = [];
    const env = {
      ...more,
      PAMIR_KEY_FILE: join(folder, "job.key"),
      PAMIR_OPTIONS: JSON.stringify({ heapBytes: 2 ** 24, silence }),
    };
    const args = ["--nats", server.url, "--job", job, "--nodes", "2", "-n", "2", "--spare", `${spare}`];
    const program = [cli, "run", ...args, join(folder, "node.mjs")];
    const launched: Launched[] = [0, 1].map(() => startProgram(program, env));
    const up = launched.map(({ child }) => said(child, "is up"));
    const given = { nats: server.websocket, job, key: KEY };
    const opened = async () => {
      const one = await openPage();
      pages.push(one.page);
      return one;
    };
    try {
      const ended = Promise.race(launched.map((one) => one.ended)).then((why) => {
        throw new Error(`a launcher has ended: ${JSON.stringify(why)}`);
      });
      ended.catch(() => {});
      await Promise.race([Promise.all(up), ended]);
      const enter: Rig["enter"] = async (place = given) => {
        const one = await opened();
        await one.calls.enter(place);
        return one;
      };
      await Promise.race([body({ server, job, given, open: opened, enter }), ended]);
    } finally {
      for (const page of pages) await page.close().catch(() => {});
      for (const { child } of launched) child.kill();
      await Promise.all(launched.map(({ ended }) => ended));
      await server.close();
    }
  }

  it("a page joins: calls, large payloads, puts, a geometry, with nodes and with another page; it leaves", () =>
    running(async ({ enter }) => {
      const [first, second] = [await enter(), await enter()];
      expect([await first.calls.task(), await second.calls.task()]).toEqual([2, 3]);
      for (const to of [0, 1, 3]) expect(await first.calls.double(to, 20 + to)).toBe(40 + 2 * to);
      // A node calls a page that it has not heard of before.
      expect(await first.calls.ask(0, "double", 3, 5)).toBe(10);
      expect(await second.calls.ask(1, "double", 2, 6)).toBe(12);

      expect(await Promise.all([0, 1, 3].map((to) => first.calls.bulk(to, BYTES)))).toEqual([
        SUCCESS,
        SUCCESS,
        SUCCESS,
      ]);
      expect(await Promise.all([2, 3].map((to) => first.calls.ask(0, "bulk", to, BYTES)))).toEqual([SUCCESS, SUCCESS]);
      await until(async () => (await first.calls.bulks()) === 1 && (await second.calls.bulks()) === 2);
      for (const to of [0, 1]) expect(await first.calls.ask(to, "bulks")).toBe(1);

      await first.calls.put(0, (await first.calls.ask(0, "open")) as number, 1234);
      expect(await first.calls.ask(0, "word")).toBe(1234);
      await second.calls.put(2, await first.calls.open(), 4321);
      expect(await first.calls.word()).toBe(4321);

      const members = [0, 1, 2, 3];
      const sums = [
        first.calls.geometry(members),
        second.calls.geometry(members),
        ...[0, 1].map((to) => first.calls.ask(to, "geometry", members)),
      ];
      expect(await Promise.all(sums)).toEqual([[10], [10], [10], [10]]);

      for (const to of [0, 1]) await first.calls.ask(to, "watch", 3);
      await first.calls.watch(3);
      await second.calls.close();
      for (const to of [0, 1]) await until(async () => ((await first.calls.ask(to, "ends")) as unknown[]).length === 1);
      await until(async () => (await first.calls.ends()).length === 1);
      expect(await first.calls.ends()).toEqual([[3, SHUTDOWN]]);
      await first.calls.close();
    }));

  it("a page is closed, another is reloaded: nodes and pages hear SHUTDOWN long before the silence", () =>
    running(async ({ enter }) => {
      const [first, second, third] = [await enter(), await enter(), await enter()];
      for (const task of [3, 4]) {
        await first.calls.watch(task);
        for (const to of [0, 1]) await first.calls.ask(to, "watch", task);
      }
      // Each has heard of each other one.
      for (const to of [2, 3]) expect(await third.calls.double(to, 1)).toBe(2);
      expect(await second.calls.double(2, 1)).toBe(2);
      const ends = async () => [
        await first.calls.ends(),
        await first.calls.ask(0, "ends"),
        await first.calls.ask(1, "ends"),
      ];
      await second.page.close();
      await until(async () => (await ends()).every((one) => (one as unknown[]).length === 1));
      await third.page.goto("about:blank");
      await until(async () => (await ends()).every((one) => (one as unknown[]).length === 2));
      const both = [
        [3, SHUTDOWN],
        [4, SHUTDOWN],
      ];
      expect(await ends()).toEqual([both, both, both]);
    }));

  it("a server that is killed and started again under traffic loses nothing, and changes no order", () =>
    running(async ({ enter, server }) => {
      const [first, second] = [await enter(), await enter()];
      await first.calls.traffic([0, 1, 3]);
      await second.calls.traffic([0, 1, 2]);
      for (let i = 0; i < 3; i++) {
        const { next } = await first.calls.counted(3);
        await until(async () => (await first.calls.counted(3)).next > next);
        await server.kill();
        await server.again();
      }
      const [sent, other] = [await first.calls.stop(), await second.calls.stop()];
      const came = async (): Promise<unknown[]> => [
        await second.calls.counted(2),
        await first.calls.ask(0, "counted", 2),
        await first.calls.ask(1, "counted", 2),
        await first.calls.counted(3),
        await first.calls.ask(0, "counted", 3),
        await first.calls.ask(1, "counted", 3),
      ];
      const all = [sent, sent, sent, other, other, other].map((next) => ({ next, wrong: 0 }));
      await until(async () => ((await came()) as typeof all).every(({ next }, one) => next === all[one]?.next));
      expect(await came()).toEqual(all);
    }));

  it("a ticket admits one page, once; others are refused by their codes", () =>
    running(async ({ job, server, open, enter }) => {
      const key = Uint8Array.from(KEY);
      const inviter = await natsInviter({ nats: server.url, job, key, address: server.websocket, insecure: true });
      try {
        const { ticket, joined } = await inviter.invite();
        const { calls } = await enter(ticket);
        expect([await calls.task(), await joined]).toEqual([2, 2]);
        expect(await calls.double(0, 4)).toBe(8);
        const late = await inviter.invite({ lifetime: 1 });
        await expect(late.joined).rejects.toMatchObject({ code: "PAMIR_TICKET_EXPIRED" });
        const void_ = await inviter.invite();
        const other = await open();
        expect(await other.calls.refuse(ticket)).toBe("PAMIR_TICKET_USED the ticket has admitted another node");
        expect(await other.calls.refuse(late.ticket)).toBe("PAMIR_TICKET_EXPIRED the ticket has expired");
        expect(await other.calls.refuse(ticket.slice(0, 40))).toMatch(/^PAMIR_TICKET a text of 40 characters is /);
        await inviter.close();
        await expect(void_.joined).rejects.toMatchObject({ code: "PAMIR_CLOSED" });
        expect(await other.calls.refuse(void_.ticket)).toBe(
          `PAMIR_TICKET job ${job}: the issuer of this ticket has ended, or has never issued it`,
        );
      } finally {
        await inviter.close();
      }
    }));

  /** Runs a body with this process as one more task of a job. */
  async function joining({ server, job }: Rig, body: (context: Context, task: number) => Promise<void>): Promise<void> {
    const client = await joinJob({ nats: server.url, job, key: Uint8Array.from(KEY) });
    const context = client.createContext();
    context.dispatch(DOUBLE, (message) => Int32Array.of(2 * message.getInt32(0)));
    const pumping = (async () => {
      while (!context.closed) await context.progress().catch(() => {});
    })();
    try {
      await body(context, client.task);
    } finally {
      await client.close();
      await pumping;
    }
  }

  it("a process of Node joins, too", () =>
    running(async (rig) => {
      const { calls } = await rig.enter();
      await joining(rig, async (context, task) => {
        expect(await calls.double(task, 8)).toBe(16);
        expect(await calls.ask(1, "double", task, 9)).toBe(18);
        const reply = await context.call(2, DOUBLE, Int32Array.of(10), { timeout: 60_000 });
        expect(new DataView(reply.buffer, reply.byteOffset).getInt32(0, true)).toBe(20);
      });
    }));

  if (freeze !== undefined)
    it("a page that is frozen for longer than the silence is given up; once it goes on, it sees all others end", () =>
      running(
        async (rig) => {
          // In this process: the pages of one site share a thread.
          const { page, calls } = await rig.enter();
          await joining(rig, async (context, task) => {
            expect(await calls.double(task, 1)).toBe(2);
            for (const other of [0, 1, task]) await calls.watch(other);
            const ended = new Promise<number>((done) =>
              context.whenEnded(2, (_: unknown, result: number) => done(result)),
            );
            const goOn = await freeze(page);
            // Something that it has to acknowledge.
            context.sendImmediate(2, DOUBLE, null, Int32Array.of(1));
            expect(await ended).toBe(SHUTDOWN);
            await goOn();
            await until(async () => (await calls.ends()).length === 3);
            expect((await calls.ends()).map(([, result]) => result)).toEqual([SHUTDOWN, SHUTDOWN, SHUTDOWN]);
          });
        },
        { silence: 10_000 },
      ));

  it("the example of docs/cluster.md", () =>
    running(async ({ job, server }) => {
      const code = recipe("Pages");
      const here = (code.get("tickets.js") as string)
        .replace(/nats:\/\/[^"]*/, server.url)
        .replace(/"wss:\/\/[^"]*"/, JSON.stringify(server.websocket))
        .replace('job: "weather"', `job: "${job}", insecure: true`);
      writeFileSync(join(folder, "tickets.js"), `${here}console.log(ticket);\n`);
      const tickets = spawn(process.execPath, ["tickets.js"], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
      let lines: string[] = [];
      tickets.stdout.on("data", (bytes) => {
        lines = [...lines, ...String(bytes).trim().split("\n")];
      });
      try {
        await until(() => lines.length > 0);
        writeFileSync(join(folder, "ticket"), lines[0] as string);
        const source = (code.get("page.js") as string)
          .replace(', { method: "POST" }', "")
          .replace("{ connect: wsconnect }", "{ connect: wsconnect, insecure: true }");
        const contents = `${source}globalThis.task = client.task;\nwhile (!context.closed) await context.progress();`;
        const stdin = { contents, resolveDir: folder };
        await build({ stdin, bundle: true, format: "esm", logLevel: "error", outfile: join(folder, "bundle.js") });
        writeFileSync(join(folder, "example.html"), `${HEAD}<script type="module" src="bundle.js"></script>`);
        const page = await browser.newPage();
        await page.goto(`${url}example.html`);
        await page.waitForFunction("globalThis.task === 2");
        await until(() => lines.includes("a page has joined as task 2"));
        await page.close();
      } finally {
        tickets.kill();
      }
    }));

  it.runIf(OPENSSL)("over wss: with credentials, by the key and by a ticket; others are refused", async () => {
    const account = nkeys.createAccount();
    const credentials = credentialsBy(account);
    const file = join(folder, "job.creds");
    writeFileSync(file, credentials, { mode: 0o400 });
    const tls = tlsPart(certificates(join(folder, "tls"), "IP:127.0.0.1"));
    await running(
      async ({ server, job, given, open }) => {
        expect(server.websocket).toMatch(/^wss:/);
        const [first, second] = [await open(), await open()];
        await first.calls.enter(given, { credentials, insecure: false });
        const inviting = { nats: server.url, job, key: Uint8Array.from(KEY), address: server.websocket };
        await expect(natsInviter(inviting)).rejects.toThrow(/token or credentials: .*PAMIR_NATS_CREDS/);
        // Its tickets name no credentials: a page has its own.
        process.env.PAMIR_NATS_CREDS = file;
        const inviter = await natsInviter(inviting).finally(() => {
          delete process.env.PAMIR_NATS_CREDS;
        });
        try {
          const { ticket, joined } = await inviter.invite();
          await second.calls.enter(ticket, { credentials, insecure: false });
          expect([await first.calls.task(), await second.calls.task(), await joined]).toEqual([2, 3, 3]);
          for (const to of [0, 1, 3]) expect(await first.calls.double(to, 20 + to)).toBe(40 + 2 * to);
          const text = `PAMIR_NATS NATS at ${server.websocket}: the server refuses this page's user, password, token or credentials`;
          const { calls } = await open();
          expect(await calls.refuse(given)).toBe(text);
          const others = credentialsBy(nkeys.createAccount());
          expect(await calls.refuse(given, { credentials: others })).toBe(text);
        } finally {
          await inviter.close();
        }
      },
      { tls, config: serverOfAccount(account), env: { PAMIR_NATS_CREDS: file } },
    );
  });

  it("what keeps a page out is said in words", () =>
    running(
      async ({ server, given, job, open, enter }) => {
        await enter();
        const { calls } = await open();
        const at = server.websocket.replace("127.0.0.1", "127.0.0.1");
        const refused = (more: object, options = {}) => calls.refuse({ ...given, ...more }, options);
        expect(await refused({})).toMatch(new RegExp(`^PAMIR_BOOTSTRAP job ${job}: .*spare`));
        expect(await refused({ key: KEY.map((byte) => byte + 1) }, { timeout: 10_000 })).toMatch(
          /^PAMIR_TIMEDOUT .* with another key than this task/,
        );
        expect(await refused({ job: "nobody" }, { timeout: 10_000 })).toMatch(
          /^PAMIR_TIMEDOUT job nobody: no task could come within \S+ s; awaited was a steward of the job/,
        );
        expect(await refused({ job: "two words" })).toMatch(/^PAMIR_NATS PAMIR_JOB|^PAMIR_NATS .*two words/);
        expect(await refused({ key: [1, 2] })).toBe("PAMIR_KEY key of join() has 2 bytes, not 32");
        expect(await refused({ key: undefined }, { insecure: false })).toMatch(/^PAMIR_INSECURE |^PAMIR_KEY /);
        expect(await refused({}, { insecure: false })).toBe(
          `PAMIR_INSECURE join() at ${at}, which is not wss: allow it by insecure: true`,
        );
        expect(await refused({ nats: server.url })).toMatch(
          /^PAMIR_INVAL nats of join\(\) has "nats:.*, not wss:\/\/HOST:PORT/,
        );

        const closed = createTcpServer();
        await new Promise<void>((done) => closed.listen(0, "127.0.0.1", done));
        const { port } = closed.address() as AddressInfo;
        await new Promise((done) => closed.close(done));
        // No server; a server of HTTP; NATS, but not its port for WebSockets; NATS without TLS.
        const nowhere = [
          `ws://127.0.0.1:${port}`,
          url.replace(/^http(.*)\/$/, "ws$1"),
          server.url.replace("nats", "ws"),
          server.websocket.replace("ws", "wss"),
        ];
        for (const one of nowhere) {
          const text = await refused({ nats: one }, { timeout: 1000 });
          expect(text).toContain(`PAMIR_NATS NATS at ${one}`);
          expect(text).toContain("no WebSocket opens there: no server listens there, it is another port");
        }
      },
      { spare: 1 },
    ));

  it("a server that refuses a page's user, or its rights, is said in words", () =>
    running(
      async ({ given, open, job }) => {
        const { calls } = await open();
        const as = (user: string): object => ({ ...given, nats: given.nats.replace("//", `//${user}@`) });
        expect(await calls.refuse(as("page:wrong") as never)).toBe(
          `PAMIR_NATS NATS at ${given.nats}: the server refuses this page's user, password, token or credentials`,
        );
        expect(await calls.refuse(as("page:page") as never)).toMatch(
          new RegExp(
            `^PAMIR_NATS the NATS server .* does not let this process (publish|subscribe) to pamir\\.${job}\\..*its user needs the rights`,
          ),
        );
      },
      {
        config: `authorization { users: [
            { user: all, password: all },
            { user: page, password: page, permissions: { publish: "other.>", subscribe: "pamir.>" } }
          ] }
          no_auth_user: all`,
      },
    ));
}
