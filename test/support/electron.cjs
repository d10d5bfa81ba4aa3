// Stands for the module `electron` in tests of docs/recipes/electron.md: as much as those programs use, as its documents say
// it. The main process, the preload script and a window are one process of Node here; a utility process is a child.
const { fork } = require("node:child_process");
const { readFileSync, writeFileSync } = require("node:fs");
const { extname, join } = require("node:path");

/** @typedef {(...args: any[]) => any} Listener */

/** @type {Record<string, string>} */
const TYPES = { ".html": "text/html", ".js": "text/javascript" };
/** @type {Map<string, Listener>} */
const handlers = new Map();
let isReady = false;

/**
 * Protocols by their schemes, what webRequest has been told, and the page that a window has loaded.
 * @type {{ protocols: Map<string, any>, headersReceived: unknown, loaded: string | undefined }}
 */
const known = { protocols: new Map(), headersReceived: undefined, loaded: undefined };
exports.known = known;

exports.app = {
  whenReady: async () => {
    await new Promise(setImmediate);
    isReady = true;
  },
};
exports.protocol = {
  /** @param {{ scheme: string, privileges: object }[]} schemes */
  registerSchemesAsPrivileged(schemes) {
    if (isReady) throw new Error("protocol.registerSchemesAsPrivileged should be called before app is ready");
    for (const { scheme, privileges } of schemes) known.protocols.set(scheme, { privileges });
  },
  /** @param {string} scheme @param {Listener} handler */
  handle(scheme, handler) {
    if (!isReady) throw new Error("protocol.handle() before app is ready");
    known.protocols.get(scheme).handler = handler;
  },
};
exports.net = {
  fetch: async (/** @type {string} */ url) => {
    const path = new URL(url);
    return new Response(readFileSync(path), { headers: { "content-type": TYPES[extname(path.pathname)] ?? "" } });
  },
};
exports.session = {
  defaultSession: {
    webRequest: {
      onHeadersReceived: (/** @type {unknown} */ filter, /** @type {Listener} */ listener) => {
        known.headersReceived = { filter, listener };
      },
    },
  },
};
exports.ipcMain = {
  handle: (/** @type {string} */ channel, /** @type {Listener} */ listener) => handlers.set(channel, listener),
};
exports.ipcRenderer = {
  /** @param {string} channel @param {unknown[]} args */
  invoke: async (channel, ...args) => structuredClone(await handlers.get(channel)?.({}, ...structuredClone(args))),
};
exports.contextBridge = {
  /** @param {string} name @param {unknown} value */
  exposeInMainWorld(name, value) {
    Object.assign(globalThis, { [name]: value });
  },
};
exports.BrowserWindow = class {
  /** @param {{ webPreferences?: { preload?: string } }} options */
  constructor({ webPreferences: { preload } = {} } = {}) {
    if (preload !== undefined) require(preload);
  }
  /** @param {string} path */
  async loadFile(path) {
    known.loaded = readFileSync(path, "utf8");
  }
  /** @param {string} url */
  async loadURL(url) {
    known.loaded = url;
  }
};
exports.utilityProcess = {
  /** @param {string} path */
  fork(path) {
    const shim = join(__dirname, "parent-port.mjs");
    writeFileSync(
      shim,
      `process.parentPort = {
        on: (type, listener) => process.on(type, (data) => listener({ data })),
        postMessage: (message) => process.send(message),
      };`,
    );
    const child = fork(path, { execArgv: ["--import", shim] });
    return Object.assign(child, { postMessage: child.send });
  },
};
