// @ts-check
// One collective operation of a test: what each member gives to it. Every member computes its input from the case alone, so
// that members in other threads and processes need nothing but that.
import { randomFrom } from "../../api/tasks/random.js";

/**
 * @typedef {"sync" | "promise" | "callback"} Form
 * @typedef {object} Case
 * @property {import("pamir").CollectiveType} type
 * @property {string} [algorithm]
 * @property {keyof typeof ARRAYS} element
 * @property {string} operation A name, or that of a user's function in COMBINE.
 * @property {number} root
 * @property {number} count Elements of a block, or of a vector.
 * @property {number[]} counts Elements of each member's block, of the operations with blocks of different lengths.
 * @property {number} gap Elements between blocks. Odd: the blocks lie in the reverse order, too.
 * @property {boolean} inPlace
 * @property {boolean} exclusive
 * @property {boolean} isShared Whether the views are in the job's memory.
 * @property {boolean} isAnyFloat Whether sums of floats depend on their order.
 * @property {Form} form
 * @property {number} seed
 */

/** The arrays of element types, and entries and bytes of an element. */
export const ARRAYS = /** @type {const} */ ({
  i8: [Int8Array, 1],
  u8: [Uint8Array, 1],
  i16: [Int16Array, 1],
  u16: [Uint16Array, 1],
  i32: [Int32Array, 1],
  u32: [Uint32Array, 1],
  i64: [BigInt64Array, 1],
  u64: [BigUint64Array, 1],
  f32: [Float32Array, 1],
  f64: [Float64Array, 1],
  c64: [Float32Array, 2],
  c128: [Float64Array, 2],
  i32_i32: [Int32Array, 2],
  f32_i32: [Uint8Array, 8],
  i64_i64: [BigInt64Array, 2],
  f64_i32: [Uint8Array, 16],
});

/** Functions of the user's, of u32: associative, and the first does not commute. */
export const COMBINE = {
  /** Of maps x → a x + b, with 16 bits each: first left, then right. */
  compose: {
    commutative: false,
    /** @param {Uint32Array} left @param {Uint32Array} right @param {Uint32Array} out */
    combine(left, right, out) {
      for (let i = 0; i < out.length; i++) {
        const [one, two] = [left[i] ?? 0, right[i] ?? 0];
        const [a, b] = [two >>> 16, two & 0xffff];
        out[i] = (Math.imul(one >>> 16, a) << 16) | ((Math.imul(one & 0xffff, a) + b) & 0xffff);
      }
    },
  },
  add: {
    commutative: true,
    /** @param {Uint32Array} left @param {Uint32Array} right @param {Uint32Array} out */
    combine(left, right, out) {
      for (let i = 0; i < out.length; i++) out[i] = (left[i] ?? 0) + (right[i] ?? 0);
    },
  },
};

/** Bytes of an element. @param {Case} one */
export function elementBytes({ element }) {
  const [Class, entries] = ARRAYS[element];
  return Class.BYTES_PER_ELEMENT * entries;
}

/** @param {string} type */
export const isReduction = (type) => ["reduce", "allreduce", "scan", "reduceScatter"].includes(type);

/** Elements of the block that one member has for another, in alltoallv: the same in both directions. @param {Case} one */
export function countBetween({ counts }, /** @type {number} */ from, /** @type {number} */ to) {
  return Math.min(counts[from] ?? 0, counts[to] ?? 0);
}

/** Where blocks lie, in elements, and the elements of the whole. @param {Case} one @param {readonly number[]} counts */
export function placesOf({ gap }, counts) {
  /** @type {number[]} */
  const places = [];
  let end = 0;
  const ranks = counts.map((_, rank) => rank);
  for (const rank of gap % 2 === 0 ? ranks : ranks.reverse()) {
    places[rank] = end;
    end += (counts[rank] ?? 0) + gap;
  }
  return { places, whole: end };
}

/** The elements of each member's block in a view that has a block of each. @param {Case} one @param {number} size */
export function blocksOf(one, rank = 0, size = 0) {
  const ranks = Array.from({ length: size }, (_, other) => other);
  if (one.type === "alltoallv") return ranks.map((other) => countBetween(one, rank, other));
  return one.type.endsWith("v") ? one.counts : ranks.map(() => one.count);
}

/** Whether a case's view of blocks has gaps. @param {Case} one */
const hasPlaces = ({ type }) => type.endsWith("v");

/**
 * What a member gives, and room for what it gets, in elements; undefined: it has no such view.
 * @param {Case} one
 * @param {number} rank
 * @param {number} size
 * @returns {{ send: number | undefined, receive: number | undefined }}
 */
export function lengthsOf(one, rank, size) {
  const { type, root, count, counts, inPlace } = one;
  const isRoot = rank === root;
  const blocks = blocksOf(one, rank, size);
  const whole = hasPlaces(one) ? placesOf(one, blocks).whole : count * size;
  const own = type.endsWith("v") ? counts[rank] : count;
  switch (type) {
    case "barrier":
      return { send: undefined, receive: undefined };
    case "broadcast":
      return { send: undefined, receive: count };
    case "reduce":
      return { send: inPlace && isRoot ? undefined : count, receive: isRoot ? count : undefined };
    case "allreduce":
    case "scan":
      return { send: inPlace ? undefined : count, receive: count };
    case "reduceScatter": {
      const sum = counts.reduce((all, each) => all + each, 0);
      return inPlace ? { send: undefined, receive: sum } : { send: sum, receive: counts[rank] };
    }
    case "gather":
    case "gatherv":
      return { send: inPlace && isRoot ? undefined : own, receive: isRoot ? whole : undefined };
    case "scatter":
    case "scatterv":
      return { send: isRoot ? whole : undefined, receive: inPlace && isRoot ? undefined : own };
    case "allgather":
    case "allgatherv":
      return { send: inPlace ? undefined : own, receive: whole };
    default:
      return { send: inPlace ? undefined : whole, receive: whole };
  }
}

/** What a view has before the operation, where nothing goes. */
export const FILL = 0xee;

/**
 * The values of a member: of its vector, of its block, or of its blocks one behind the other.
 * @param {Case} one
 * @param {number} rank
 * @param {number} elements
 */
export function valuesOf(one, rank, elements) {
  const { element, operation, seed, isAnyFloat, type } = one;
  const [Class, entries] = ARRAYS[element];
  const view = new Class(elements * entries);
  const bytes = new Uint8Array(view.buffer);
  const random = randomFrom(seed + 7919 * rank);
  const isFloat = element[0] === "f" || element[0] === "c";
  if (!isReduction(type) || (!isFloat && !element.includes("_"))) {
    for (let i = 0, x = seed + rank; i < bytes.length; i++) {
      x = (Math.imul(x, 1664525) + 1013904223) | 0;
      bytes[i] = x >>> 24;
    }
  } else if (element.includes("_")) {
    const data = new DataView(view.buffer);
    const size = elementBytes(one);
    for (let at = 0; at < bytes.length; at += size) {
      const [value, index] = [random.below(5) - 2, random.below(100)];
      if (element === "i32_i32") data.setInt32(at, value, true);
      else if (element === "f32_i32") data.setFloat32(at, value, true);
      else if (element === "i64_i64") data.setBigInt64(at, BigInt(value), true);
      else data.setFloat64(at, value, true);
      if (element === "i64_i64") data.setBigInt64(at + 8, BigInt(index), true);
      else data.setInt32(at + (element === "f64_i32" ? 8 : 4), index, true);
    }
  } else if (isAnyFloat) {
    for (let i = 0; i < view.length; i++) view[i] = (random.float() - 0.5) * 2 ** random.below(40);
  } else if (element[0] === "c" && operation === "product") {
    // Powers of i.
    for (let i = 0; i < view.length; i += 2) {
      const power = random.below(4);
      view[i] = [1, 0, -1, 0][power];
      view[i + 1] = [0, 1, 0, -1][power];
    }
  } else {
    // Every result is exact, in whatever order.
    for (let i = 0; i < view.length; i++)
      view[i] = operation === "product" ? 1 - 2 * random.below(2) : random.below(17) - 8;
  }
  return bytes;
}

/**
 * A member's parameters, and its bytes before and after.
 * @param {Case} one
 * @param {number} rank
 * @param {number} size
 * @param {(name: "send" | "receive", bytes: number) => Uint8Array} take gives memory of exactly so many bytes
 */
export function parametersOf(one, rank, size, take) {
  const { type, algorithm, element, operation, root, inPlace, exclusive, counts } = one;
  const { send, receive } = lengthsOf(one, rank, size);
  const [Class, entries] = ARRAYS[element];
  const isRoot = rank === root;
  const blocks = blocksOf(one, rank, size);
  const { places } = placesOf(one, blocks);
  /** @param {"send" | "receive"} name @param {number | undefined} elements @param {boolean} hasInput */
  const make = (name, elements, hasInput) => {
    if (elements === undefined) return undefined;
    const bytes = take(name, elements * elementBytes(one)).fill(FILL);
    if (hasInput) putInput(bytes);
    const view = new /** @type {any} */ (Class)(bytes.buffer, bytes.byteOffset, elements * entries);
    return { bytes, view, before: bytes.slice() };
  };
  /** Writes what this member gives into its view. @param {Uint8Array} bytes */
  const putInput = (bytes) => {
    const width = elementBytes(one);
    const isSource = type === "scatter" || type === "scatterv" || type.startsWith("alltoall");
    const isInBlock = inPlace && ["gather", "gatherv", "allgather", "allgatherv"].includes(type);
    if (isSource) {
      const values = valuesOf(
        one,
        rank,
        blocks.reduce((all, each) => all + each, 0),
      );
      let from = 0;
      for (const [other, count] of blocks.entries()) {
        const at = hasPlaces(one) ? (places[other] ?? 0) : other * count;
        bytes.set(values.subarray(from * width, (from + count) * width), at * width);
        from += count;
      }
    } else if (isInBlock && bytes.length > 0) {
      const own = blocks[rank] ?? 0;
      const at = hasPlaces(one) ? (places[rank] ?? 0) : rank * own;
      if (isRoot || type.startsWith("all")) bytes.set(valuesOf(one, rank, own), at * width);
      else bytes.set(valuesOf(one, rank, bytes.length / width));
    } else bytes.set(valuesOf(one, rank, bytes.length / width));
  };
  const sent = make("send", send, true);
  const isInputInReceive = type === "broadcast" ? isRoot : inPlace && send === undefined && !type.startsWith("scatter");
  const received = make("receive", receive, isInputInReceive);
  /** @type {Record<string, unknown>} */
  const parameters = { algorithm };
  if (type === "broadcast") Object.assign(parameters, { buffer: received?.view, root });
  else if (type !== "barrier") {
    const rooted = ["reduce", "gather", "gatherv", "scatter", "scatterv"].includes(type);
    const isScatter = type === "scatter" || type === "scatterv";
    // In place: null, the same bytes, or this member's block of them.
    const way = one.seed % 3;
    const whole = (isScatter ? sent : received)?.view;
    const isInPlace = inPlace && whole !== undefined && (isScatter ? received : sent) === undefined;
    const isBlock = way === 2 && !isReduction(type) && !type.startsWith("alltoall");
    const at = blocks.slice(0, rank).reduce((sum, each) => sum + each, 0);
    const first = entries * (hasPlaces(one) ? (places[rank] ?? 0) : at);
    const part = isBlock ? whole?.subarray(first, first + entries * (blocks[rank] ?? 0)) : whole;
    const same = isInPlace && way > 0 ? part : null;
    Object.assign(parameters, {
      send: sent?.view ?? (isScatter ? undefined : same),
      receive: received?.view ?? (isScatter ? same : undefined),
    });
    if (rooted) parameters.root = root;
    if (isReduction(type)) {
      const user = COMBINE[/** @type {keyof typeof COMBINE} */ (operation)];
      Object.assign(parameters, { operation: user ?? operation, type: element });
      if (type === "scan") parameters.exclusive = exclusive;
      if (type === "reduceScatter") parameters.counts = counts;
    } else if (type === "alltoallv") {
      Object.assign(parameters, { receiveCounts: entriesOf(blocks), receiveDisplacements: entriesOf(places) });
      if (parameters.send !== null)
        Object.assign(parameters, { sendCounts: entriesOf(blocks), sendDisplacements: entriesOf(places) });
    } else if (hasPlaces(one) && (isRoot || !rooted)) {
      Object.assign(parameters, { counts: entriesOf(blocks), displacements: entriesOf(places) });
    }
  }
  /** Counts of operations that move bytes are in entries of the array. @param {readonly number[]} list */
  function entriesOf(list) {
    return list.map((elements) => elements * entries);
  }
  return { parameters, sent, received };
}

/**
 * One member's part in a case that does not block. Resolves with what it has got once its views are its own again.
 * @param {Case} one
 * @param {import("pamir").Geometry} geometry
 * @param {Parameters<typeof guarded>[1]} client
 * @param {number} timeout
 * @returns {Promise<{ problem: string | undefined, bytes: Uint8Array | undefined }>}
 */
export async function partOf(one, geometry, client, timeout) {
  const memory = guarded(one, client);
  const { parameters, sent, received } = parametersOf(one, geometry.rank, geometry.size, memory.take);
  const call = /** @type {any} */ (geometry)[one.form === "callback" ? "collective" : one.type].bind(geometry);
  /** @type {unknown} */
  let result = 0;
  if (one.form === "callback") {
    result = await new Promise((resolve) => {
      const begun = call(one.type, {
        ...parameters,
        onDone: (/** @type {unknown} */ _, /** @type {number} */ came) => resolve(came),
      });
      if (begun !== 0) resolve(`that of collective(): ${begun}`);
    });
  } else {
    const given = one.type === "barrier" ? [] : [parameters];
    await call(...given, { timeout }).catch((/** @type {unknown} */ error) => (result = error));
  }
  const bytes = received?.bytes.slice();
  const problem = () => {
    if (result !== 0) return `the result is ${result}`;
    if (!memory.isWhole()) return "bytes around the views have changed";
    return sent?.bytes.some((byte, i) => byte !== sent.before[i]) ? "what is sent has changed" : undefined;
  };
  const ended = { problem: problem(), bytes };
  memory.close();
  return ended;
}

/**
 * A region; undefined: the job has no memory for one. Then the view is an ordinary one, so that this member begins the operation
 * that the others begin, too.
 * @param {{ createRegion(bytes: number): { bytes: Uint8Array, close(): void } }} client
 * @param {number} bytes
 */
function regionOf(client, bytes) {
  try {
    return client.createRegion(bytes);
  } catch (error) {
    if (/** @type {{ code?: string }} */ (error).code !== "PAMIR_NO_MEMORY") throw error;
    return undefined;
  }
}

/**
 * Memory for a case's views, with bytes around them that must stay as they are.
 * @param {Case} one
 * @param {{ createRegion(bytes: number): { bytes: Uint8Array, close(): void } }} client
 */
export function guarded({ isShared }, client) {
  const GUARD = 64;
  /** @type {{ all: Uint8Array, bytes: number, close?: () => void }[]} */
  const taken = [];
  return {
    /** @param {string} _ @param {number} bytes */
    take(_, bytes) {
      const length = bytes + 2 * GUARD;
      const region = isShared ? regionOf(client, length) : undefined;
      const all = region?.bytes ?? new Uint8Array(length);
      all.fill(FILL);
      taken.push({ all, bytes, ...(region && { close: () => region.close() }) });
      return all.subarray(GUARD, GUARD + bytes);
    },
    /** Whether the bytes around the views are as they were. */
    isWhole: () =>
      taken.every(({ all, bytes }) => {
        const isFill = (/** @type {number} */ byte) => byte === FILL;
        return all.subarray(0, GUARD).every(isFill) && all.subarray(GUARD + bytes, 2 * GUARD + bytes).every(isFill);
      }),
    close() {
      for (const { close } of taken) close?.();
    },
  };
}
