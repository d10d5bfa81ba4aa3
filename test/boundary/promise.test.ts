// What is awaited, and how: as the engine's own `await` does it.
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { isPromised, promised } from "../../src/support/promise.js";

const THEN = "then";
type Settle = (value?: unknown) => void;
const then = (then: (resolve: Settle, reject: Settle) => unknown) => ({ [THEN]: then });
const withGetter = (get: () => unknown): object => Object.defineProperty({}, THEN, { get });

/** Values that are awaited, made anew for each use. */
const AWAITED: Record<string, () => unknown> = {
  "a promise": () => Promise.resolve(1),
  "a promise that rejects": () => Promise.reject(new Error("no")),
  "a promise of a subclass": () => class extends Promise<number> {}.resolve(2),
  "a promise of another realm": () => runInNewContext("Promise.resolve(3)"),
  "a promise of another realm that rejects": () => runInNewContext("Promise.reject('no')"),
  "an object": () => then((resolve) => resolve(4)),
  "an object without a prototype": () =>
    Object.assign(
      Object.create(null),
      then((resolve) => resolve(5)),
    ),
  "a function": () =>
    Object.assign(
      () => {},
      then((resolve) => resolve(6)),
    ),
  "an array": () =>
    Object.assign(
      [7],
      then((resolve) => resolve(7)),
    ),
  "an instance of a class": () =>
    new (class Query {
      rows = [8];
      [THEN](resolve: Settle) {
        setTimeout(() => resolve(this.rows));
      }
    })(),
  "one that rejects": () => then((_, reject) => reject("no")),
  "one whose getter throws": () =>
    withGetter(() => {
      throw new RangeError("of the getter");
    }),
  "one whose getter gives it once": () => {
    let count = 0;
    return withGetter(() => (count++ === 0 ? (resolve: Settle) => resolve("once") : undefined));
  },
  "one that resolves, then rejects": () =>
    then((resolve, reject) => {
      resolve("first");
      reject("second");
    }),
  "one that rejects, then resolves": () =>
    then((resolve, reject) => {
      reject("first");
      resolve("second");
    }),
  "one that resolves twice": () =>
    then((resolve) => {
      resolve("first");
      resolve("second");
    }),
  "one that throws": () =>
    then(() => {
      throw new TypeError("of then()");
    }),
  "one that throws after it has resolved": () =>
    then((resolve) => {
      resolve("first");
      throw new TypeError("dropped");
    }),
  "one that resolves with another": () => then((resolve) => resolve(then((inner) => inner("inner")))),
  "one that resolves with one that rejects": () => then((resolve) => resolve(then((_, reject) => reject("inner")))),
  "one that resolves with itself by way of another": () => then((resolve) => resolve(Promise.resolve("late"))),
  "one that rejects with another": () => then((_, reject) => reject(then((resolve) => resolve("as it is")))),
  "a proxy of a promise": () => new Proxy(Promise.resolve(1), {}),
  "an object with the then() of promises": () => Object.create(Promise.prototype),
  "a revoked proxy": () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
};
const PLAIN: Record<string, unknown> = {
  undefined: undefined,
  null: null,
  "a number": 5,
  "a string": "then",
  "an object": { [THEN]: 5 },
  bytes: Uint8Array.of(1),
  "a function": () => {},
  "a symbol": Symbol("then"),
};

const outcome = (value: unknown): Promise<unknown> =>
  (async () => ["resolves", await value])().catch((error: unknown) => [
    "rejects",
    error instanceof Error ? `${error.name}: ${error.message}` : typeof error === "object" ? typeof error : error,
  ]);

it.each(Object.entries(AWAITED))("%s settles as by await", async (_, make) => {
  const promise = promised(make());
  expect(promise).toBeInstanceOf(Promise);
  expect(await outcome(promise)).toEqual(await outcome(make()));
});

it("then() is read once, and called behind the caller", async () => {
  const events: string[] = [];
  const call = (resolve: Settle): void => {
    events.push("called");
    resolve(1);
  };
  const promise = promised(
    withGetter(() => {
      events.push("read");
      return call;
    }),
  );
  events.push("returned");
  expect([await promise, events]).toEqual([1, ["read", "returned", "called"]]);
});

it.each(Object.entries(PLAIN))("%s is a value", (_, value) => {
  expect([promised(value), isPromised(value)]).toEqual([undefined, false]);
});

it("a promise that is refused is no unhandled rejection, and the then() of others is not called", async () => {
  let calls = 0;
  expect(isPromised(Promise.reject(new Error("refused")))).toBe(true);
  expect(isPromised(runInNewContext("Promise.reject('refused')"))).toBe(true);
  expect(isPromised({ [THEN]: () => calls++ })).toBe(true);
  await new Promise((resolve) => setTimeout(resolve));
  expect(calls).toBe(0);
});
