// Where a Chromium is on this machine, for the tests in a browser.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
const PLACES = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

/** @param {string} path */
function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Its path: what CHROME_PATH says, else one on the PATH, else one of the package @sparticuz/chromium, if that is installed.
 * @returns {Promise<string | undefined>}
 */
export async function findChromium() {
  const { CHROME_PATH, PATH = "" } = process.env;
  if (CHROME_PATH !== undefined) return CHROME_PATH;
  const found = PATH.split(delimiter)
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .concat(PLACES)
    .find(isProgram);
  if (found !== undefined) return found;
  try {
    const name = "@sparticuz/chromium";
    const { default: chromium } = await import(name);
    return await chromium.executablePath();
  } catch {
    return undefined;
  }
}

/** Without a sandbox of its own where there is no user for one, and without calling home. */
export const CHROMIUM_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];
