// A headless Chromium, and servers of a folder's files, for tests of whole pages.
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Browser, chromium, type Page } from "playwright";
import { CHROMIUM_FLAGS, findChromium } from "../../scripts/find-chromium.mjs";

export { filesOf, ISOLATION } from "../../scripts/serve.mjs";

/** Milliseconds for what takes one where nothing else runs: it only ends what hangs. */
const PATIENCE = 120_000;

async function startBrowser(): Promise<Browser> {
  const executablePath = await findChromium();
  const browser = await chromium.launch({
    args: CHROMIUM_FLAGS,
    timeout: PATIENCE,
    ...(executablePath === undefined ? {} : { executablePath }),
  });
  // newPage() makes one, too.
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(PATIENCE);
    return context;
  };
  browser.close = async () => {
    await Promise.all(browser.contexts().map((context) => context.close()));
  };
  return browser;
}

let started: Promise<Browser> | undefined;

/** The browser of all test files, which ends with this process. Its close() closes the pages. */
export function openBrowser(): Promise<Browser> {
  started ??= startBrowser();
  return started;
}

/** Runs something with a server's address; the server is closed behind it. */
export async function serving<T>(server: Server, body: (url: string) => Promise<T>): Promise<T> {
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  try {
    return await body(`http://localhost:${(server.address() as AddressInfo).port}/`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

export function serve<T>(answer: RequestListener, body: (url: string) => Promise<T>): Promise<T> {
  return serving(createServer(answer), body);
}

/** What an expression comes to on a page. */
export async function onPage<T>(browser: Browser, url: string, body: (page: Page) => Promise<T>): Promise<T> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(url);
    return await body(page);
  } finally {
    await context.close();
  }
}
