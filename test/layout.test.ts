// The layout: the constants of layout/, its pictures and the wasm module agree.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as layout from "../assembly/layout.js";
import { LAYOUT_HASH } from "../assembly/layout-hash.js";
import { COLLECTIVE_WASM_MAX, MPI_WASM_MAX } from "../scripts/bounds.mjs";
import { collectiveHex } from "../src/generated/collective.js";
import { mpiHex } from "../src/generated/mpi.js";
import { collectiveModule } from "../src/kernel/collective.js";
import { bytesOfHex } from "../src/kernel/hex.js";
import { mpiModule } from "../src/kernel/mpi.js";
import { twinPacketKernel } from "../src/kernel/twin/index.js";
import { wasmKernel, wasmModule } from "../src/kernel/wasm.js";
import { memoryMap, readMap } from "../src/memory/map.js";
import { makeRig } from "./support/kernels.js";
import { mpiRig } from "./support/mpi-kernels.js";

const constants = layout as Record<string, number>;
/** The sources of assembly/layout/, one after the other. */
const folder = new URL("../assembly/layout/", import.meta.url);
const source = readdirSync(folder)
  .map((name) => readFileSync(new URL(name, folder), "utf8"))
  .join("\n");
const module = wasmModule();
const wasm = readFileSync(new URL("../dist/pamir.wasm", import.meta.url));

interface Field {
  readonly offset: number;
  readonly name: string;
  readonly bytes: number;
  readonly constant: string;
  readonly writer: string;
}

/** How the names of an area's constants begin. */
function nameOf(area: string): string {
  return (area.split(" ")[0] as string).replace(":", "");
}

/** The rows of a picture: `//   128  attending[32]  owner   owner   bit i: …`. */
function picture(area: string): Field[] {
  const from = source.indexOf(`// ╒═════════════ ${area}`);
  const rows = source.slice(from, source.indexOf("// ╘", from)).split("\n");
  return rows.flatMap((row) => {
    const match = /^\/\/ +(\d+) {2}(\w+)(?:\[(\d+)\])? +(\S.*)$/.exec(row);
    if (match === null) return [];
    const [, offset, name = "", count = "1", rest = ""] = match;
    const constant = `${nameOf(area)}_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}_OFFSET`;
    const size = name === "events" ? layout.EVENT_SIZE : 4;
    return [{ offset: Number(offset), name, bytes: Number(count) * size, constant, writer: rest.split(/\s/)[0] ?? "" }];
  });
}

/** `isShared`: threads share the area, or lie beside each other. */
const AREAS: [area: string, end: number, fields: number, isShared?: boolean][] = [
  ["JOB header", layout.JOB_SIZE, 16],
  ["TASK slot", layout.TASK_SIZE, 5],
  ["CONTEXT block", layout.CONTEXT_LANES_OFFSET, 14],
  ["LANE:", layout.LANE_CONTROL_SIZE, 20],
  ["POOL block", layout.POOL_SIZE, 3],
  ["QUEUE:", layout.QUEUE_SLOTS_OFFSET, 13],
  ["MPI_ENGINE block", layout.MPI_ENGINE_SIZE, 9],
  ["MPI_COMM entry", layout.MPI_COMM_SIZE, 4, false],
  ["MPI_REQUEST:", layout.MPI_REQUEST_SIZE, 14, false],
  ["MPI_HEADER:", layout.MPI_HEADER_SIZE, 4, false],
  ["MPI_RTS:", layout.MPI_RTS_SIZE, 4, false],
  ["MPI_STORED:", layout.MPI_STORED_PAYLOAD_OFFSET + 4, 4, false],
  ["MPI_CALLS block", layout.MPI_CALLS_SIZE, 20, false],
  ["MPI_GROUP entry", 2 ** layout.MPI_GROUP_SHIFT, 4, false],
  ["MPI_C_STATUS:", 2 ** layout.MPI_C_STATUS_SHIFT, 5, false],
];

describe.each(AREAS)("%s", (area, end, least, isShared = true) => {
  // A trailing array of a length that the limits decide has no word of its own below `end`.
  const fields = picture(area).filter(({ offset }) => offset < end);

  it("has a constant for each field of its picture", () => {
    expect(fields.length).toBeGreaterThanOrEqual(least);
    for (const { constant, offset } of fields) {
      expect(`${constant} = ${constants[constant]}`).toBe(`${constant} = ${offset}`);
    }
  });

  it("has a row in its picture for each constant", () => {
    const prefix = nameOf(area);
    const named = Object.keys(constants).filter((name) => name.startsWith(`${prefix}_`) && name.endsWith("_OFFSET"));
    const drawn = new Set(fields.map(({ constant }) => constant));
    expect(named.filter((name) => !drawn.has(name) && (constants[name] as number) < end)).toEqual([]);
  });

  it("has words that neither overlap nor lie astride", () => {
    let free = 0;
    for (const { offset, bytes, name } of fields) {
      expect(offset % 4, name).toBe(0);
      expect(offset, name).toBeGreaterThanOrEqual(free);
      free = offset + bytes;
    }
    expect(free).toBeLessThanOrEqual(end);
    if (isShared) expect(end % layout.FALSE_SHARING_SIZE).toBe(0);
  });
});

it("in a lane, words that different sides write lie FALSE_SHARING_SIZE apart", () => {
  const writers = new Map<number, Set<string>>();
  for (const { offset, writer } of picture("LANE:")) {
    if (writer === "open" || offset >= layout.LANE_CONTROL_SIZE) continue; // written once, before anybody reads it
    const line = Math.floor(offset / layout.FALSE_SHARING_SIZE);
    writers.set(line, (writers.get(line) ?? new Set()).add(writer));
  }
  expect([...writers.values()].map((set) => [...set].join("+"))).toEqual([
    "producer",
    "producer",
    "consumer",
    "consumer",
  ]);
});

it("constants that belong together agree", () => {
  expect(1 << layout.PAGE_SHIFT).toBe(layout.PAGE_SIZE);
  expect(1 << layout.ATTENDED_SHIFT).toBe(layout.ATTENDED_SIZE);
  expect(1 << layout.EVENT_SHIFT).toBe(layout.EVENT_SIZE);
  expect(layout.CONTEXT_EVENTS_OFFSET + layout.EVENT_COUNT_MAX * layout.EVENT_SIZE).toBe(layout.CONTEXT_LANES_OFFSET);
  expect(layout.CONTEXT_ATTENDING_OFFSET + layout.ENDPOINT_COUNT_MAX / 8).toBeLessThanOrEqual(
    layout.CONTEXT_EVENTS_OFFSET,
  );
  expect(layout.CONTEXT_READY_OFFSET + layout.ENDPOINT_COUNT_MAX / 8).toBeLessThanOrEqual(layout.CONTEXT_STATE_OFFSET);
  expect(layout.JOB_SPINNING_OFFSET + layout.TASK_COUNT_MAX / 8).toBeLessThanOrEqual(layout.JOB_HEAP_LOCK_OFFSET);
  expect(layout.TASK_COUNT_MAX - 1).toBeLessThanOrEqual(layout.EXTENT_OWNER_MASK);
  expect(layout.EXTENT_OWNER_MASK * 2 ** layout.EXTENT_OWNER_SHIFT).toBeLessThan(2 ** layout.EXTENT_STATE_SHIFT);
  expect(layout.EXTENT_PAGES_MASK).toBe(2 ** layout.EXTENT_OWNER_SHIFT - 1);
  expect(layout.EXTENT_PAGES_MASK).toBeGreaterThanOrEqual(2 ** (32 - layout.PAGE_SHIFT) - 1);
  expect(layout.ADVANCE_EVENTS_MASK).toBeGreaterThanOrEqual(layout.EVENT_COUNT_MAX);
  expect(layout.ADVANCE_NOTICE & layout.ADVANCE_EVENTS_MASK).toBe(0);
  expect(layout.DISPATCH_ID_CALL).toBe(layout.DISPATCH_ID_MAX + 1);
  expect(layout.DISPATCH_ID_REPLY).toBeLessThanOrEqual(layout.META_DISPATCH_MASK);
  expect(layout.META_DISPATCH_MASK).toBeLessThan(2 ** layout.META_HEADER_SHIFT);
  expect(layout.HEADER_BYTES_MAX).toBe(2 ** (32 - layout.META_HEADER_SHIFT) - 1);
  expect(layout.RECORD_LENGTH_MASK).toBe(2 ** layout.RECORD_KIND_SHIFT - 1);
  const kinds = layout.RECORD_KIND_MASK * 2 ** layout.RECORD_KIND_SHIFT;
  expect(layout.RECORD_COMMITTED + kinds + layout.RECORD_LENGTH_MASK).toBe(2 ** 32 - 1);
  expect(layout.RECV_IMMEDIATE_MAX).toBeLessThan(layout.RECORD_LENGTH_MASK);
  expect(1 << layout.MPI_COMM_SHIFT).toBe(layout.MPI_COMM_SIZE);
  expect(layout.MPI_STORED_PAYLOAD_OFFSET + layout.MPI_EAGER_BYTES_MAX).toBe(1 << layout.MPI_BLOCK_CLASS_MAX);
  expect(layout.MPI_EAGER_BYTES_MAX).toBeGreaterThan(layout.RECV_IMMEDIATE_MAX);
  expect(layout.MPI_STORED_HEADER_OFFSET + layout.MPI_HEADER_SIZE).toBe(layout.MPI_STORED_PAYLOAD_OFFSET);
  expect(layout.MPI_ENGINE_FREE_OFFSET + 4 * 32).toBe(layout.MPI_ENGINE_SIZE);
  // The kernels take the first word of an entry for what points to the next one.
  expect([layout.MPI_REQUEST_NEXT_OFFSET, layout.MPI_STORED_NEXT_OFFSET]).toEqual([0, 0]);
  for (const name of [
    "LANE_BYTES_MIN",
    "LANE_BYTES_DEFAULT",
    "LANE_BYTES_GROWN",
    "FALSE_SHARING_SIZE",
    "RECORD_GRANULE",
  ]) {
    const value = constants[name] as number;
    expect(value & (value - 1), name).toBe(0);
  }
});

describe("the memory map", () => {
  const limits = { tasks: 7, contexts: 3, laneBytes: 1024, heapBytes: 20 * 4096 };

  it.each([0, 4096, 2 ** 31 - 8192])("has areas in order, aligned, that do not overlap, at base %d", (base) => {
    const map = memoryMap(limits, base);
    const areas = [
      [map.job, layout.JOB_SIZE],
      [map.tasksBase, 7 * layout.TASK_SIZE],
      [map.contextsBase, 21 * map.contextSize],
      [map.heapTable, 4 * map.heapPages],
      [map.heapBase, map.heapPages * layout.PAGE_SIZE],
    ] as const;
    areas.forEach(([from, bytes], i) => {
      expect(from + bytes).toBeLessThanOrEqual(areas[i + 1]?.[0] ?? map.end);
    });
    for (const pointer of [map.tasksBase, map.contextsBase, map.contextSize])
      expect(pointer % layout.FALSE_SHARING_SIZE).toBe(0);
    expect(map.heapBase % layout.PAGE_SIZE).toBe(0);
    expect(map.contextSize).toBeGreaterThanOrEqual(layout.CONTEXT_LANES_OFFSET + (4 + layout.ATTENDED_SIZE) * 21);
    expect(map.heapPages).toBe(20);
  });

  it("is read back from a formatted memory", () => {
    for (const straddle of [undefined, "heap", "context"] as const) {
      const rig = makeRig({ ...limits, straddle });
      expect(readMap(rig.memory, rig.map.job)).toEqual(rig.map);
      expect(rig.word(rig.map.job)).toBe(layout.JOB_MAGIC);
      expect(Buffer.from(rig.read(rig.map.job, 4)).toString()).toBe("PAMI");
    }
  });
});

describe("the wasm module", () => {
  /** Ids of its sections. */
  function sections(bytes: Uint8Array): number[] {
    const ids: number[] = [];
    for (let at = 8; at < bytes.length; ) {
      ids.push(bytes[at++] as number);
      let size = 0;
      for (let shift = 0; ; shift += 7) {
        const byte = bytes[at++] as number;
        size |= (byte & 127) << shift;
        if (byte < 128) break;
      }
      at += size;
    }
    return ids;
  }

  it("imports its memory, what wakes other processes, and what has pages for an extent", () => {
    expect(WebAssembly.Module.imports(module)).toEqual([
      { module: "sync", name: "wake", kind: "function" },
      { module: "heap", name: "reserve", kind: "function" },
      { module: "env", name: "memory", kind: "memory" },
    ]);
  });

  it.each([
    ["pamir.wasm", wasm],
    ["the collectives' module", bytesOfHex(collectiveHex)],
    ["MPI's module", bytesOfHex(mpiHex)],
  ])("%s has no start function and no data: any number of threads may instantiate it over one memory", (_, bytes) => {
    const [START, DATA, DATA_COUNT] = [8, 11, 12];
    const ids = sections(bytes);
    expect(ids.filter((id) => [START, DATA, DATA_COUNT].includes(id))).toEqual([]);
    expect(ids).toContain(10); // code: the parser has read it to the end
  });

  it.each([
    ["the collectives load", collectiveModule(), bytesOfHex(collectiveHex), COLLECTIVE_WASM_MAX],
    ["MPI's programs load", mpiModule(), bytesOfHex(mpiHex), MPI_WASM_MAX],
  ])("that %s imports the memory alone, and has few bytes", (_, module, bytes, most) => {
    expect(WebAssembly.Module.imports(module)).toEqual([{ module: "env", name: "memory", kind: "memory" }]);
    expect(bytes.length).toBeLessThanOrEqual(most);
  });

  it("of MPI has the functions of its interface, and the twin has the same", () => {
    const names = WebAssembly.Module.exports(mpiModule()).map(({ name }) => name);
    const twin = Object.keys(mpiRig("twin", 4096).kernel);
    expect(names.filter((name) => name !== "layoutHash").sort()).toEqual(twin.filter((name) => name !== "name").sort());
  });

  it("is the one that the library contains", () => {
    expect(Buffer.from(readWasmHex(), "hex").equals(wasm)).toBe(true);
  });

  it("was built for this layout", () => {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 65536, shared: true });
    const { exports } = new WebAssembly.Instance(module, {
      env: { memory },
      sync: { wake: () => {} },
      heap: { reserve: () => 1 },
    });
    expect((exports.layoutHash as () => number)() >>> 0).toBe(LAYOUT_HASH);
  });

  it("exports what the Kernel interface has, and the twin has it too", () => {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 65536, shared: true });
    const names = WebAssembly.Module.exports(module)
      .filter(({ kind }) => kind === "function")
      .map(({ name }) => name);
    const kernel = wasmKernel(memory);
    const methods: string[] = [];
    for (let holder: object = kernel; holder !== Object.prototype; holder = Object.getPrototypeOf(holder)) {
      methods.push(...Object.getOwnPropertyNames(holder).filter((name) => name !== "name"));
    }
    expect(names.filter((name) => name !== "layoutHash").sort()).toEqual(
      methods.filter((name) => name !== "constructor").sort(),
    );
    const rig = makeRig();
    const twin = twinPacketKernel(rig.memory) as unknown as Record<string, unknown>;
    expect(methods.filter((name) => name !== "constructor" && typeof twin[name] !== "function")).toEqual([]);
  });

  it("puts a lane's words where layout.ts says", () => {
    const rig = makeRig({ producer: "wasm" });
    const lane = rig.openAt(0x7fffff00, 5, 2, 1024, 256);
    expect(
      Object.fromEntries(
        Object.entries(constants)
          .filter(([name]) => name.startsWith("LANE_") && name.endsWith("_OFFSET"))
          .map(([name, offset]) => [name, rig.word(lane + offset)]),
      ),
    ).toEqual({
      LANE_MESSAGES_OFFSET: 0,
      LANE_KEEP_OFFSET: 128,
      LANE_PAUSED_SINCE_OFFSET: 0,
      LANE_WANTED_SINCE_OFFSET: 0,
      LANE_TAIL_OFFSET: 0x7fffff00,
      LANE_HEAD_CACHE_OFFSET: 0x7fffff00,
      LANE_CAPACITY_OFFSET: 1024,
      LANE_RECORD_MAX_OFFSET: 256,
      LANE_READY_WORD_OFFSET: rig.context(2) + layout.CONTEXT_READY_OFFSET,
      LANE_READY_BIT_OFFSET: 1 << 5,
      LANE_TARGET_TASK_OFFSET: rig.task(1),
      LANE_RESERVED_OFFSET: 0,
      LANE_ORIGIN_OFFSET: 5,
      LANE_TARGET_OFFSET: 2,
      LANE_FULLS_OFFSET: 0,
      LANE_ROOM_WANTED_OFFSET: 0,
      LANE_HEAD_OFFSET: 0x7fffff00,
      LANE_NEXT_OFFSET: 0x7fffff00,
      LANE_RING_OFFSET: lane + layout.LANE_CONTROL_SIZE,
      LANE_MASK_OFFSET: 1023,
      LANE_IDLE_OFFSET: 0,
      LANE_PAUSED_OFFSET: 0,
      LANE_ORIGIN_TASK_OFFSET: rig.task(2),
      LANE_RELEASED_OFFSET: 0x7fffff00,
      LANE_CONTEXT_OFFSET: rig.context(2),
    });
  });

  it("puts a record's and an event's words where layout.ts says", () => {
    const rig = makeRig({ producer: "wasm" });
    const lane = rig.open(3);
    rig.send(lane, [1, 2, 3], 0xabcd1234, layout.KIND_MORE);
    const record = lane + layout.LANE_CONTROL_SIZE;
    const commit = (layout.RECORD_COMMITTED | (layout.KIND_MORE << layout.RECORD_KIND_SHIFT) | 3) >>> 0;
    expect(rig.word(record + layout.RECORD_COMMIT_OFFSET)).toBe(commit);
    expect(rig.word(record + layout.RECORD_META_OFFSET)).toBe(0xabcd1234);
    expect(rig.read(record + layout.RECORD_BODY_OFFSET, 3)).toEqual([1, 2, 3]);
    rig.advance();
    const event = rig.context(0) + layout.CONTEXT_EVENTS_OFFSET;
    expect([0, 4, 8, 12].map((offset) => rig.word(event + offset))).toEqual([
      commit,
      0xabcd1234,
      record + layout.RECORD_BODY_OFFSET,
      3,
    ]);
  });
});

function readWasmHex(): string {
  const generated = readFileSync(new URL("../src/generated/wasm.ts", import.meta.url), "utf8");
  return /"([^"]*)"/.exec(generated)?.[1] ?? "";
}
