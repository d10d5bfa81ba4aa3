// A headless Firefox, driven by WebDriver BiDi, for tests of whole pages.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import puppeteer, { type Browser } from "puppeteer-core";

/** A Firefox on the PATH, or the one that FIREFOX_PATH names. */
function findFirefox(): string | undefined {
  const { FIREFOX_PATH, PATH = "" } = process.env;
  if (FIREFOX_PATH !== undefined) return FIREFOX_PATH;
  return PATH.split(delimiter)
    .flatMap((folder) => ["firefox-esr", "firefox"].map((name) => join(folder, name)))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

const executablePath = findFirefox();

/** Whether the tests of a file are left out: there is no Firefox, and none is required. The run says so. */
export function isFirefoxSkipped(): boolean {
  if (executablePath !== undefined || process.env.PAMIR_REQUIRE_ALL === "1") return false;
  console.log("not run: Firefox is not on the PATH, nor named by FIREFOX_PATH");
  return true;
}

/** Milliseconds for what takes one where nothing else runs: it only ends what hangs. */
const PATIENCE = 120_000;

/** @param acceptInsecureCerts whether it trusts any certificate */
export async function openFirefox(acceptInsecureCerts = false): Promise<Browser> {
  const browser = await puppeteer.launch({
    browser: "firefox",
    headless: true,
    executablePath: executablePath as string,
    acceptInsecureCerts,
    timeout: PATIENCE,
    // Of one call, which may wait for a whole program of the page.
    protocolTimeout: 2 * PATIENCE,
  });
  const newPage = browser.newPage.bind(browser);
  browser.newPage = async () => {
    const page = await newPage();
    page.setDefaultTimeout(PATIENCE);
    return page;
  };
  return browser;
}
