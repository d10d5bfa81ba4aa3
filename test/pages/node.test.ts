// A page that joins a process of Node as a node of its job, by a WebSocket.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import type { WebSocketLike } from "../../src/link/websocket/websocket-link.js";
import { openWebSocketLink } from "../../src/link/websocket/websocket-server.js";
import type { Context } from "../../src/pami/context.js";
import { startWebNode, type WebNode } from "../support/web-node.js";
import { answer, bulk, count, double } from "./programs/web-task.js";
import { filesOf, ISOLATION, openBrowser, serving } from "./support.js";

const KEY = Uint8Array.from({ length: 32 }, (_, i) => i * 11);
const BYTES = 2 ** 22;
const NUMBERS = 400;

let browser: Browser;
let folder: string;

beforeAll(async () => {
  browser = await openBrowser();
  folder = mkdtempSync(join(tmpdir(), "pamir-node-"));
  await build({
    entryPoints: [fileURLToPath(new URL("programs/web-task.ts", import.meta.url))],
    outfile: join(folder, "main.js"),
    bundle: true,
    format: "esm",
    external: ["#node/*"],
  });
  writeFileSync(
    join(folder, "index.html"),
    '<!doctype html><link rel="icon" href="data:,"><script type="module" src="main.js"></script>',
  );
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Given {
  readonly web: WebNode;
  readonly context: Context;
  readonly heard: ReturnType<typeof answer>;
  readonly page: Page;
  /** Cuts the page's connections. */
  readonly sever: () => void;
}

/** Joins a page to this process, which is node 0. @param silence milliseconds after which a node is given up */
async function joined(silence: number, body: (given: Given) => Promise<void>): Promise<void> {
  const link = await openWebSocketLink({ listen: "ws://127.0.0.1:0/" });
  const sockets = new Set<WebSocketLike>();
  const { accept } = link;
  link.accept = (socket, ...given) => {
    sockets.add(socket);
    accept.call(link, socket, ...given);
  };
  const sever = (): void => {
    for (const socket of sockets) socket.terminate?.();
    sockets.clear();
  };
  const web = await startWebNode(0, link, link.address as string, KEY, silence);
  const context = web.client.createContext();
  const heard = answer(context);
  let isOver = false;
  const pumping = (async () => {
    while (!isOver) await context.progress({ timeout: 100 }).catch(() => {});
  })();
  const answerFiles = filesOf(folder);
  const server = createServer((request, response) => {
    for (const [name, value] of Object.entries(ISOLATION)) response.setHeader(name, value);
    answerFiles(request, response);
  });
  try {
    await serving(server, async (url) => {
      const page = await browser.newPage();
      await page.goto(url);
      await page.waitForFunction("globalThis.web !== undefined");
      await page.evaluate(`void web.start(${JSON.stringify(link.address)}, ${JSON.stringify([...KEY])}, ${silence})`);
      await page.waitForFunction("web.heard() !== undefined");
      await body({ web, context, heard, page, sever });
      await page.close();
    });
  } finally {
    isOver = true;
    await pumping;
    web.close();
  }
}

const PAGE = 1;
/** The test's own limit ends a wait that has no end. */
const until = async (isSo: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10));
};

it("calls both ways, and large payloads both ways", () =>
  joined(60_000, async ({ context, heard, page, web }) => {
    expect(await page.evaluate("web.double(21)")).toBe(42);
    expect(await double(context, PAGE, 4)).toBe(8);
    const [there, back] = await Promise.all([page.evaluate(`web.bulk(${BYTES})`), bulk(context, PAGE, BYTES)]);
    expect([there, back]).toEqual([SUCCESS, SUCCESS]);
    await until(() => heard.bulks === 1);
    await until(async () => ((await page.evaluate("web.heard()")) as typeof heard).bulks === 1);
    expect([heard.wrong, ((await page.evaluate("web.heard()")) as typeof heard).wrong]).toEqual([[], []]);
    expect([web.lost, await page.evaluate("web.lost()")]).toEqual([[], []]);
  }));

it("its connection is cut in mid-transfer: it connects again, and nothing is lost or comes twice", () =>
  joined(60_000, async ({ context, heard, page, sever, web }) => {
    expect(await page.evaluate("web.double(1)")).toBe(2);
    let isOver = false;
    let cuts = 0;
    const cut = (): void => {
      if (isOver) return;
      sever();
      cuts++;
      setTimeout(cut, 200);
    };
    setTimeout(cut, 50);
    const sent = Promise.all([page.evaluate(`web.count(${NUMBERS})`), count(context, PAGE, NUMBERS, true)]);
    const large = Promise.all([page.evaluate(`web.bulk(${BYTES})`), bulk(context, PAGE, BYTES)]);
    await sent;
    await until(() => cuts >= 3);
    isOver = true;
    expect(await large).toEqual([SUCCESS, SUCCESS]);
    await until(() => heard.numbers === NUMBERS && heard.bulks === 1);
    await until(async () => ((await page.evaluate("web.heard()")) as typeof heard).numbers === NUMBERS);
    expect([heard.wrong, ((await page.evaluate("web.heard()")) as typeof heard).wrong]).toEqual([[], []]);
    expect([web.lost, await page.evaluate("web.lost()")]).toEqual([[], []]);
  }));

it("it is closed in mid-transfer: the process hears SHUTDOWN after the silence", () =>
  joined(10_000, async ({ context, page, web, heard }) => {
    expect(await page.evaluate("web.double(3)")).toBe(6);
    let ended: number | undefined;
    context.whenEnded(PAGE, (_: unknown, result: number) => {
      ended = result;
    });
    const results: number[] = [];
    for (let i = 0; i < 4; i++) void bulk(context, PAGE, BYTES).then((result) => results.push(result));
    await page.evaluate(`void web.bulk(${4 * BYTES})`);
    await until(() => results.length > 0);
    await page.close();
    await until(() => results.length === 4 && ended !== undefined);
    expect(results.at(-1)).toBe(SHUTDOWN);
    expect(context.sendImmediate(PAGE, 3, null, new Uint8Array(4))).toBe(SHUTDOWN);
    // A page that closes slowly on a busy machine gives this node up itself, and says so.
    expect(web.lost).toEqual([[PAGE, expect.stringMatching(/^(silent|givenUp)$/)]]);
    expect(heard.wrong).toEqual([]);
  }));
