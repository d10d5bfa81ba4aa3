// codecs.json() in debug mode: it refuses what JSON would change or leave out without an error, and names the place.
import { codecs, dispatchId, type Job, type LaunchOptions, launch } from "pamir";
import { afterEach, describe, expect, it } from "vitest";
import { checkJson } from "../../src/observe/json-losses.js";

const SAME = { one: 1 };

class Money {
  readonly cents: number;
  constructor(cents: number) {
    this.cents = cents;
  }
  toJSON(): string {
    return `${this.cents} cents`;
  }
}

describe("is lost:", () => {
  const sparse = [1, 2, 3];
  delete sparse[1];
  it.each<[string, unknown, string]>([
    ["a Map", { rows: [new Map()] }, "value.rows[0]: it is a Map"],
    ["a Set", new Set([1]), "value: it is a Set"],
    ["a RegExp", { "a b": /x/ }, 'value["a b"]: it is a RegExp'],
    ["a Date", { when: new Date(0) }, "value.when: it is a Date"],
    ["an error", [new RangeError("x")], "value[0]: it is a Error"],
    ["bytes", { bytes: new Uint8Array(2) }, "value.bytes: it is a Uint8Array"],
    ["a Buffer, which has toJSON", { bytes: Buffer.from("x") }, "value.bytes: it is a Uint8Array"],
    ["an ArrayBuffer", [new ArrayBuffer(1)], "value[0]: it is a ArrayBuffer"],
    ["NaN", { x: { y: Number.NaN } }, "value.x.y: it is NaN"],
    ["-Infinity", [[Number.NEGATIVE_INFINITY]], "value[0][0]: it is -Infinity"],
    ["-0", [-0], "value[0]: it is -0"],
    ["undefined in an object", { a: 1, b: undefined }, "value.b: it is undefined"],
    ["undefined in an array", [1, undefined], "value[1]: it is undefined"],
    ["a hole", sparse, "value[1]: it is undefined"],
    ["a name of an array", Object.assign([1], { index: 2 }), "value.index: it is a named property of an array"],
    ["a function", { run: () => 1 }, "value.run: it is a function"],
    ["a function alone", () => 1, "value: it is a function"],
    ["a symbol", { kind: Symbol("x") }, "value.kind: it is a symbol"],
    ["a bigint", { id: 1n }, "value.id: it is a bigint"],
    ["a Promise", { later: Promise.resolve() }, "value.later: it is a Promise"],
    ["a boxed number", [Object(1)], "value[0]: it is a Number"],
  ])("%s", (_, value, text) => {
    expect(() => checkJson(value)).toThrow(
      expect.objectContaining({
        code: "PAMIR_CLONE",
        message: `codecs.json() would lose ${text}. codecs.clone() copies more`,
      }),
    );
  });
});

it.each<[string, unknown]>([
  ["what JSON has", { a: [1, "two", null, true, { b: [] }], "": "ü\ud800", c: 1e300 }],
  ["undefined alone", undefined],
  ["null", null],
  ["the same object twice", [SAME, SAME]],
  ["an object that says what it is", { price: new Money(5), at: new URL("http://localhost/") }],
  ["an object without a prototype", Object.assign(Object.create(null), { a: 1 })],
])("passes: %s", (_, value) => {
  expect(() => checkJson(value)).not.toThrow();
});

describe("a job", () => {
  let job: Job | undefined;
  afterEach(() => job?.terminate());
  const ECHO = dispatchId(1, codecs.json(), codecs.json());
  const ANSWER = dispatchId(2, codecs.json(), codecs.json());
  const NEWS = dispatchId(3, codecs.json());
  const LOST = { code: "PAMIR_CLONE", message: expect.stringMatching(/^codecs\.json\(\) would lose value\./) };

  async function start(options: LaunchOptions) {
    job = await launch(null, { tasks: 1, join: true, ...options });
    const context = job.client.createContext();
    context.dispatch(ECHO, (value) => value);
    context.dispatch(ANSWER, async () => ({ x: Number.NaN }));
    context.dispatch(NEWS, () => {});
    return context;
  }

  it("in debug mode refuses a request, a reply and a message", async () => {
    const context = await start({ debug: true });
    const to = context.endpoint;
    await expect(context.call(to, ECHO, { map: new Map() })).rejects.toMatchObject(LOST);
    await expect(context.call(to, ANSWER, 1)).rejects.toMatchObject(LOST);
    expect(() => context.send({ to, dispatch: NEWS, payload: { when: new Date() } })).toThrow(
      expect.objectContaining(LOST),
    );
    expect(await context.call(to, ECHO, { map: [] })).toEqual({ map: [] });
  });

  it("outside of it does as JSON.stringify()", async () => {
    const context = await start({});
    const to = context.endpoint;
    expect(await context.call(to, ECHO, { map: new Map(), x: Number.NaN, y: undefined })).toEqual({ map: {}, x: null });
    expect(await context.call(to, ANSWER, 1)).toEqual({ x: null });
  });
});
