// @ts-check
// Dynamic connections: messages a second between two nodes on one core; and, in virtual time, the effect of loss and of many
// targets. kernel.bench.mjs compares the kernels for queues and packets, WebAssembly against TypeScript.
//   node bench/wire.bench.mjs [--quick]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Table } from "console-table-printer";
import { build } from "esbuild";

const quick = process.argv.includes("--quick");
const ROUNDS = quick ? 2 : 9;
const MESSAGE_BYTES = 64;
const PACKET_BYTES = 1400;
const MESSAGES = quick ? 50_000 : 1_000_000;
/** Messages between two calls of advance(). */
const BATCH = 256;
const JOB = 1;
const NO_BYTES = new Uint8Array(0);

/**
 * @typedef {typeof import("../src/session/sessions.js") & typeof import("../src/kernel/kernel.js") & typeof
 * import("../src/kernel/wasm.js") & typeof import("../src/kernel/twin/index.js") & typeof
 * import("../test/simulation/figures.js")} Modules
 */

/** @returns {Promise<Modules>} */
async function internals() {
  const folder = mkdtempSync(join(tmpdir(), "pamir-bench-"));
  const outfile = join(folder, "wire.mjs");
  const names = [
    "src/session/sessions",
    "src/kernel/kernel",
    "src/kernel/wasm",
    "src/kernel/twin/index",
    "test/simulation/figures",
  ];
  await build({
    stdin: {
      contents: names.map((name) => `export * from "./${name}.ts";`).join("\n"),
      resolveDir: fileURLToPath(new URL("..", import.meta.url)),
      loader: "ts",
    },
    outfile,
    bundle: true,
    format: "esm",
    target: "es2022",
    platform: "node",
    logLevel: "error",
  });
  try {
    return await import(pathToFileURL(outfile).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * Two nodes and a list of packets between them; nothing is lost.
 * @param {Modules} modules
 * @param {"wasm" | "ts"} name
 * @param {boolean} isFaithful
 */
function pair({ Sessions, memoryOf, wasmKernel, twinPacketKernel }, name, isFaithful) {
  const shared = new WebAssembly.Memory({ initial: 64, maximum: 64, shared: true });
  const memory = memoryOf(/** @type {SharedArrayBuffer} */ (/** @type {unknown} */ (shared.buffer)));
  const kernel = name === "wasm" ? wasmKernel(shared) : twinPacketKernel(memory);
  let [end, came, now, random] = [4096, 0, 0, 1];
  const arena = {
    allocate: (/** @type {number} */ bytes) => {
      end += (bytes + 63) & ~63;
      return end - ((bytes + 63) & ~63);
    },
    free: () => {},
  };
  const links = [0, 1].map(() => {
    /** @type {{ packets: Uint8Array[], count: number }} */
    const way = { packets: [], count: 0 };
    const link = {
      packetBytes: PACKET_BYTES,
      isFaithful,
      send: (/** @type {string} */ _to, /** @type {Uint8Array} */ packet) => {
        if (way.count === way.packets.length) way.packets.push(new Uint8Array(new ArrayBuffer(PACKET_BYTES + 4)));
        const slot = /** @type {Uint8Array} */ (way.packets[way.count++]);
        slot.set(packet);
        new Uint32Array(slot.buffer, PACKET_BYTES)[0] = packet.length;
        return true;
      },
      onPacket: () => {},
      onRoom: () => {},
      close: () => {},
    };
    return { way, link };
  });
  const nodes = links.map(
    ({ link }, node) =>
      new Sessions({
        kernel,
        memory,
        arena,
        link,
        now: () => now,
        random: () => {
          random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
          return random;
        },
        node,
        epoch: 1,
        nodes: 2,
        nodeOf: (endpoint) => (endpoint < 2 ? endpoint : -1),
        job: JOB,
        addressOf: String,
        deliver: () => {
          came++;
        },
        onLost: () => {
          throw new Error("a node is given up");
        },
      }),
  );
  const [origin, target] = /** @type {[InstanceType<Modules["Sessions"]>, InstanceType<Modules["Sessions"]>]} */ (
    nodes
  );
  const content = new Uint8Array(MESSAGE_BYTES);
  const carry = () => {
    for (const [from, { way }] of links.entries()) {
      const receiver = from === 0 ? target : origin;
      for (let i = 0; i < way.count; i++) {
        const slot = /** @type {Uint8Array} */ (way.packets[i]);
        receiver.receive(from === 0 ? "0" : "1", slot.subarray(0, new Uint32Array(slot.buffer, PACKET_BYTES)[0]));
      }
      way.count = 0;
    }
  };
  return (/** @type {number} */ messages) => {
    const until = came + messages;
    for (let left = messages; came < until; ) {
      for (let i = 0; i < BATCH && left > 0; i++) {
        const packet = origin.claim(1, 0, 1, 1, content.length);
        if (packet === undefined) break;
        packet.put(content, NO_BYTES);
        left--;
      }
      now += 20;
      origin.advance();
      target.advance();
      carry();
    }
  };
}

/** @param {number[]} values */
const median = (values) => /** @type {number} */ (values.toSorted((a, b) => a - b)[values.length >> 1]);

const modules = await internals();
/** @type {{ what: string, figure: string, goal: string, hoped: string, met: boolean }[]} */
const rows = [];

for (const name of /** @type {("wasm" | "ts")[]} */ (["wasm", "ts"])) {
  for (const isFaithful of [false, true]) {
    const run = pair(modules, name, isFaithful);
    run(MESSAGES / 5);
    const rates = Array.from({ length: ROUNDS }, () => {
      const start = performance.now();
      run(MESSAGES);
      return MESSAGES / (performance.now() - start) / 1000;
    });
    const link = isFaithful ? "faithful" : "not faithful";
    rows.push({
      what: `M messages of ${MESSAGE_BYTES} B a second, both sides on one core, ${name}, link ${link}`,
      figure: `${median(rates).toPrecision(3)} (${Math.min(...rates).toPrecision(3)} … ${Math.max(...rates).toPrecision(3)})`,
      goal: "≥ 2",
      hoped: "10",
      met: median(rates) >= 2,
    });
  }
}
for (const { what, value, goal, hoped, isLess } of modules.figures(quick)) {
  const met = isLess ? value <= goal : value >= goal;
  rows.push({ what, figure: value.toPrecision(3), goal: `${isLess ? "≤" : "≥"} ${goal}`, hoped: String(hoped), met });
}

const table = new Table({ columns: [{ name: "what", alignment: "left" }] });
for (const { what, figure, goal, hoped, met } of rows) {
  table.addRow({ what, figure, goal, "hoped for": hoped, met: met ? "yes" : "NO" });
}
table.printTable();
