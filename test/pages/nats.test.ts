// Pages of Chromium in a job at a NATS server.
import type { Page } from "playwright";
import { describe } from "vitest";
import { NATS_SERVER } from "../support/nats-server.js";
import { natsSuite } from "./nats-suite.js";
import { openBrowser } from "./support.js";
import type { AnyPage } from "./web-hosted.js";

/** Its timers, messages and microtasks wait. Page.setWebLifecycleState leaves a page in sight as it is. */
async function freeze(page: AnyPage): Promise<() => Promise<unknown>> {
  const session = await (page as Page).context().newCDPSession(page as Page);
  await session.send("Debugger.enable");
  const paused = new Promise((resolve) => session.once("Debugger.paused", resolve));
  await session.send("Debugger.pause");
  await paused;
  return () => session.send("Debugger.disable");
}

/** Its pages trust any certificate. */
async function openTrusting() {
  const browser = await openBrowser();
  return { newPage: () => browser.newPage({ ignoreHTTPSErrors: true }), close: () => browser.close() };
}

describe.skipIf(NATS_SERVER === undefined)("Chromium", () => natsSuite(openTrusting, freeze));
