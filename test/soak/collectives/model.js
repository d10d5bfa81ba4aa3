// @ts-check
// What each member gives to a collective operation, and what it has to get, computed from the case alone.

/** @typedef {import("./draw.js").Case} Case */
/** @typedef {Uint8Array | Int32Array | Float64Array} View */

export const ARRAYS = /** @type {const} */ ({ u8: Uint8Array, i32: Int32Array, f64: Float64Array });
/** What is in a view where the operation puts something. */
const FILL = 0x5a;

/** Of a member, or of the block of one member for another: 12 bits, so that sums are exact. @param {number} seed @param {number} who @param {number} at */
const valueAt = (seed, who, at) => (Math.imul(at ^ seed, 0x9e3779b1) + Math.imul(who + 1, 0x85ebca6b)) >>> 20;

/** @param {Case} one @param {number} who @param {number} count @param {(count: number) => View} make */
function valuesOf({ seed }, who, count, make) {
  const view = make(count);
  for (let at = 0; at < count; at++) view[at] = valueAt(seed, who, at);
  return view;
}

/** Elements of a member's block. @param {Case} one @param {number} rank */
const countOf = ({ count, isUneven }, rank) => (isUneven ? (count * (rank % 3)) >> 1 : count);
/** Elements of the block of one member for another. @param {Case} one @param {number} from @param {number} to */
const countBetween = (one, from, to) => Math.min(countOf(one, from), countOf(one, to));

/** Whose values the block of one member for another has. @param {number} from @param {number} to */
const pair = (from, to) => 64 * (from + 1) + to;

class Refused extends Error {}

const USERS = {
  combine: {
    /** @param {View} left @param {View} right @param {View} out */
    combine(left, right, out) {
      for (let at = 0; at < out.length; at++) out[at] = /** @type {number} */ (left[at]) + Number(right[at]);
    },
  },
  throws: {
    combine() {
      throw new Refused("refused");
    },
  },
};

/** @param {Case["operation"]} operation @param {number} left @param {number} right */
function combined(operation, left, right) {
  if (operation === "max") return Math.max(left, right);
  return operation === "min" ? Math.min(left, right) : left + right;
}

/**
 * A member's part in an operation: its parameters, and a look at what it has got.
 * @param {Case} one
 * @param {number} rank
 * @param {number} size
 * @param {(elements: number) => View} take gives memory for a view of the operation
 * @returns {{ parameters: object, problem: () => string | undefined }}
 */
export function partOf(one, rank, size, take) {
  const { type, root, count, operation, inPlace, exclusive, element } = one;
  const Class = ARRAYS[element];
  const isRoot = rank === root;
  const ranks = Array.from({ length: size }, (_, other) => other);
  /** @param {number} elements */
  const plain = (elements) => new Class(elements);
  /** @param {number} elements */
  const empty = (elements) => {
    const view = take(elements);
    new Uint8Array(view.buffer, view.byteOffset, view.byteLength).fill(FILL);
    return view;
  };
  /** @param {number[]} list */
  const sum = (list) => list.reduce((all, each) => all + each, 0);
  /** Blocks one behind the other. @param {number[]} counts @param {(other: number) => number} who @param {(elements: number) => View} make */
  const blocks = (counts, who, make) => {
    const whole = make(sum(counts));
    let at = 0;
    for (const [other, elements] of counts.entries()) {
      whole.set(valuesOf(one, who(other), elements, plain), at);
      at += elements;
    }
    return whole;
  };
  /** The vectors of members, combined. @param {number[]} members @param {number} from @param {number} elements */
  const reduced = (members, from, elements) => {
    const out = plain(elements);
    for (let at = 0; at < elements; at++) {
      const values = members.map((member) => valueAt(one.seed, member, from + at) & (element === "u8" ? 255 : -1));
      out[at] = values.reduce((left, right) => combined(operation, left, right));
    }
    return out;
  };
  /** @param {object} parameters @param {View} [got] @param {() => View} [expected] */
  const part = (parameters, got, expected) => ({
    parameters,
    problem: () => (got === undefined || expected === undefined ? undefined : differ(got, expected())),
  });
  const reduction = {
    operation: operation in USERS ? USERS[/** @type {keyof typeof USERS} */ (operation)] : operation,
  };

  switch (type) {
    case "barrier":
      return part({});
    case "broadcast": {
      const buffer = isRoot ? valuesOf(one, root, count, take) : empty(count);
      return part({ buffer, root }, buffer, () => valuesOf(one, root, count, plain));
    }
    case "reduce":
    case "allreduce":
    case "scan": {
      const gets = type !== "reduce" || isRoot;
      const receive = !gets ? undefined : inPlace ? valuesOf(one, rank, count, take) : empty(count);
      const send = inPlace && gets ? null : valuesOf(one, rank, count, take);
      const members = type === "scan" ? ranks.slice(0, exclusive ? rank : rank + 1) : ranks;
      const extra = type === "reduce" ? { root } : type === "scan" ? { exclusive } : {};
      const expected = gets && members.length > 0 ? () => reduced(members, 0, count) : undefined;
      return part({ send, receive, ...reduction, ...extra }, receive, expected);
    }
    case "reduceScatter": {
      const counts = ranks.map((other) => countOf(one, other));
      const receive = empty(/** @type {number} */ (counts[rank]));
      const send = valuesOf(one, rank, sum(counts), take);
      const from = sum(counts.slice(0, rank));
      return part({ send, receive, counts, ...reduction }, receive, () => reduced(ranks, from, receive.length));
    }
    case "gather":
    case "gatherv":
    case "allgather":
    case "allgatherv": {
      const isAll = type.startsWith("all");
      const counts = ranks.map((other) => (type.endsWith("v") ? countOf(one, other) : count));
      const own = /** @type {number} */ (counts[rank]);
      const receive = isAll || isRoot ? empty(sum(counts)) : undefined;
      const isWithin = inPlace && receive !== undefined;
      if (isWithin) receive.set(valuesOf(one, rank, own, plain), sum(counts.slice(0, rank)));
      const send = isWithin ? null : valuesOf(one, rank, own, take);
      const extra = { ...(isAll ? {} : { root }), ...(type.endsWith("v") && receive !== undefined ? { counts } : {}) };
      return part({ send, receive, ...extra }, receive, () => blocks(counts, (other) => other, plain));
    }
    case "scatter":
    case "scatterv": {
      const counts = ranks.map((other) => (type === "scatterv" ? countOf(one, other) : count));
      const send = isRoot ? blocks(counts, (other) => pair(root, other), take) : undefined;
      const receive = empty(/** @type {number} */ (counts[rank]));
      const extra = type === "scatterv" && isRoot ? { counts } : {};
      const expected = () => valuesOf(one, pair(root, rank), receive.length, plain);
      return part({ send, receive, root, ...extra }, receive, expected);
    }
    case "amBroadcast":
      return part({ payload: valuesOf(one, root, count, take) });
    case "amScatter": {
      const counts = ranks.map((other) => countOf(one, other));
      return part({ send: blocks(counts, (other) => pair(root, other), take), counts });
    }
    case "amGather": {
      const receive = empty(count * size);
      const counts = ranks.map(() => count);
      return part({ send: valuesOf(one, rank, count, take), receive }, receive, () =>
        blocks(counts, (other) => other, plain),
      );
    }
    case "amReduce": {
      const receive = empty(count);
      return part({ send: valuesOf(one, rank, count, take), receive, ...reduction }, receive, () =>
        reduced(ranks, 0, count),
      );
    }
    default: {
      const counts = ranks.map((other) => (type === "alltoallv" ? countBetween(one, rank, other) : count));
      const outgoing = (/** @type {number} */ other) => pair(rank, other);
      const receive = inPlace ? blocks(counts, outgoing, take) : empty(sum(counts));
      const send = inPlace ? null : blocks(counts, outgoing, take);
      const extra = type === "alltoallv" ? { receiveCounts: counts, ...(inPlace ? {} : { sendCounts: counts }) } : {};
      return part({ send, receive, ...extra }, receive, () => blocks(counts, (other) => pair(other, rank), plain));
    }
  }
}

/**
 * What a handler of an active message answers, and what is wrong with the message.
 * @param {Case} one
 * @param {number} rank
 * @param {import("pamir").ActiveMessage} message
 */
export function answerOf(one, rank, { type, root, payload }) {
  const Class = ARRAYS[one.element];
  const plain = (/** @type {number} */ elements) => new Class(elements);
  const isCall = type === one.type && root === one.root;
  const answer = type === "amGather" || type === "amReduce" ? valuesOf(one, rank, one.count, plain) : undefined;
  const expected =
    type === "amBroadcast"
      ? valuesOf(one, root, one.count, plain)
      : valuesOf(one, pair(root, rank), type === "amScatter" ? countOf(one, rank) : 0, plain);
  const isSame = Buffer.compare(payload, new Uint8Array(expected.buffer)) === 0;
  return { answer, problem: isCall && isSame ? undefined : `${type} of ${root}, ${payload.length} bytes` };
}

/** @param {View} got @param {View} expected */
function differ(got, expected) {
  const at = expected.findIndex((value, place) => value !== got[place]);
  return at < 0 ? undefined : `element ${at} of ${expected.length} is ${got[at]}, not ${expected[at]}`;
}
