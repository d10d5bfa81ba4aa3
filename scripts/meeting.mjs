// Serves the folder of the demo or of the site, and hosts jobs in which its pages meet: each ticket admits one page.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { host } from "../dist/web.js";
import { filesOf, ISOLATION, listenFrom, pathOf } from "./serve.mjs";

/** Nodes of one job, those that have left included: the job behind it takes the next ones. */
const NODES = 64;
/** Jobs that are kept: the oldest one ends then, with its pages. */
const JOBS = 8;
/** ms in which a ticket may be used, and without an answer after which a page has ended. */
const LIFETIME = 300_000;
const SILENCE = 10_000;
/** What every address of this machine is called. */
const ANY = ["0.0.0.0", "::"];
const LOCAL = ["localhost", "127.0.0.1", "::1"];

/** An address of this machine in its network. */
function ownAddress() {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const found = all.find(({ family, internal }) => family === "IPv4" && !internal);
  if (found === undefined) throw new Error("this machine has no IPv4 address in a network: name one by --host");
  return found.address;
}

/** Browsers isolate pages of this machine, and by HTTPS. At others they find fault with the headers. @param {import("node:http").IncomingMessage} request */
const headersFor = ({ headers }) =>
  /^(localhost|127\.|\[::1\])/.test(headers.host ?? "") || headers["x-forwarded-proto"] === "https" ? ISOLATION : {};

/** The host of an origin; a page in a sandbox has "null" as its origin, and no host. @param {string} origin */
const hostOf = (origin) => (URL.canParse(origin) ? new URL(origin).host : undefined);

/** @param {string} address */
const bracketed = (address) => (address.includes(":") ? `[${address}]` : address);

/** The jobs of one server. */
class Jobs {
  /** @type {import("pamir/web").Host[]} */
  #jobs = [];
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();

  /** @param {string} address at which pages find this machine @param {number} silence */
  constructor(address, silence) {
    this.address = address;
    this.silence = silence;
  }

  async #open() {
    const { silence } = this;
    const job = await host({ listen: `ws://${this.address}:0/`, insecure: true, pages: NODES, silence });
    this.#jobs.push(job);
    if (this.#jobs.length > JOBS) void this.#jobs.shift()?.close();
    void pump(job);
    return job;
  }

  /** Two tickets of one job: for a page with a tank, and for one that joins it. @returns {Promise<string[]>} */
  tickets() {
    const next = this.#last.then(async () => {
      const invite = (/** @type {import("pamir/web").Host} */ job) =>
        [0, 1].map(() => job.invite({ lifetime: LIFETIME }).ticket);
      const job = this.#jobs.at(-1) ?? (await this.#open());
      try {
        return invite(job);
      } catch {
        return invite(await this.#open());
      }
    });
    this.#last = next.catch(() => {});
    return next;
  }

  async close() {
    await Promise.all(this.#jobs.map((job) => job.close()));
  }
}

/** The thread of the host carries all messages: it only waits for them. @param {import("pamir/web").Host} job */
async function pump(job) {
  const context = job.client.createContext();
  try {
    for (;;) await context.progress();
  } catch (error) {
    if (!job.client.closed) throw error;
  }
}

/**
 * Listens, and answers with the folder's files.
 * @param {string} folder
 * @param {{ port: number, host?: string | undefined, command: string, silence?: number | undefined }} options `host`: where it listens,
 *   too (default: this machine alone); `command` is what has started it; `silence`: ms without an answer after which a page has ended
 */
export async function openMeeting(folder, { port: wanted, host: name = "localhost", command, silence = SILENCE }) {
  const isLocal = LOCAL.includes(name);
  const address = ANY.includes(name) ? ownAddress() : name;
  const jobs = new Jobs(bracketed(address), silence);
  /** @type {import("node:http").RequestListener} */
  const answer = (request, response) => {
    const { method, headers } = request;
    const path = pathOf(request.url);
    if (path?.endsWith("/tickets") && method === "POST") {
      // A page of another origin can't read the answer, and shall not use up tickets either.
      if (headers.origin !== undefined && hostOf(headers.origin) !== headers.host) {
        response.writeHead(403).end("for pages of this server alone");
        return;
      }
      jobs.tickets().then(
        (tickets) => {
          response.writeHead(200, { "content-type": "application/json", "cache-control": "no-store" });
          response.end(JSON.stringify({ tickets, lifetime: LIFETIME }));
        },
        (error) => response.writeHead(500).end(error.message),
      );
    } else if (path === "/" || path === "/index.html") {
      const meeting = { address: isLocal ? "./" : `http://${bracketed(address)}:${port}/`, isLocal, command };
      const text = JSON.stringify(meeting).replaceAll("&", "&amp;").replaceAll('"', "&quot;");
      for (const [header, value] of Object.entries(headersFor(request))) response.setHeader(header, value);
      response.setHeader("content-type", "text/html; charset=utf-8");
      const html = readFileSync(join(folder, "index.html"), "utf8");
      response.end(html.replace('<html lang="en"', () => `<html lang="en" data-meeting="${text}"`));
    } else filesOf(folder, headersFor(request))(request, response);
  };
  const servers = [createServer(answer)];
  // Threads of a page share memory if it comes from localhost, or by HTTPS: so it listens there in any case.
  const port = await listenFrom(servers[0], wanted, ANY.includes(name) ? name : "localhost");
  if (!isLocal && !ANY.includes(name)) {
    servers.push(createServer(answer));
    await new Promise((resolve, reject) =>
      servers[1].once("error", reject).listen(port, name, () => resolve(undefined)),
    );
  }
  return {
    port,
    /** Of this machine, and of others. */
    urls: [`http://localhost:${port}/`, ...(isLocal ? [] : [`http://${bracketed(address)}:${port}/`])],
    async close() {
      for (const server of servers) {
        server.closeAllConnections();
        server.close();
      }
      await jobs.close();
    },
  };
}

/**
 * Serves a folder, and says where; or why it can't, and ends.
 * @param {string} folder @param {Parameters<typeof openMeeting>[1]} options
 */
export async function serveMeeting(folder, options) {
  const meeting = await openMeeting(folder, options).catch((error) => {
    console.error(`${options.command}: ${error.message}`);
    process.exit(2);
  });
  const [own, other] = meeting.urls;
  console.log(`${own}${meeting.port === options.port ? "" : `  (port ${options.port} is taken)`}`);
  if (other === undefined) console.log("  for this machine alone; --host 0.0.0.0 lets phones and other machines join");
  else console.log(`  other machines join by ${other}: open the first address here, since it alone shares memory`);
}
