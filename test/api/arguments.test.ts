// Every public function, with every kind of wrong argument in each of its places: PAMIR_INVAL, or another coded error, at
// the caller, whose text has the value; and nothing is left half done.
import { MessageChannel } from "node:worker_threads";
import {
  attach,
  type Client,
  type Codec,
  type Context,
  codecs,
  dispatchId,
  type Job,
  launch,
  type MemRegion,
  type Message,
  PamiError,
  SUCCESS,
} from "pamir";
import { type Port, portTo } from "pamir/port";
import { describe, expect, it } from "vitest";
import { DATA, OTHER, PATIENCE, refusalOf, thrownBy, until, VARIANTS, withJob } from "./support.js";

const variant = VARIANTS[0] as (typeof VARIANTS)[number];

interface Given {
  readonly job: Job;
  readonly client: Client;
  readonly context: Context;
  readonly region: MemRegion;
  readonly message: Message;
}

/** What a place takes, and so what it refuses. */
type Kind =
  | "endpoint"
  | "number"
  | "milliseconds"
  | "id"
  | "view"
  | "callback"
  | "function"
  | "flag"
  | "signal"
  | "object"
  | "options"
  | "array"
  | "region"
  | "any";

const noop = (): void => {};
const thing = new (class Thing {})();

/** Values of every kind; `is` names the kinds of place that take each. */
const VALUES: readonly { readonly value: unknown; readonly shown: string; readonly is: readonly Kind[] }[] = [
  { value: undefined, shown: "undefined", is: ["callback", "flag", "signal", "options", "view"] },
  { value: null, shown: "null", is: ["view"] },
  { value: true, shown: "true", is: ["flag"] },
  { value: -1, shown: "-1", is: [] },
  { value: 0.5, shown: "0.5", is: ["milliseconds"] },
  { value: Number.NaN, shown: "NaN", is: [] },
  { value: 7n, shown: "7n", is: [] },
  { value: "text", shown: '"text"', is: [] },
  { value: Symbol("s"), shown: "Symbol(s)", is: [] },
  { value: [1], shown: "Array", is: ["array"] },
  { value: thing, shown: "Thing", is: ["options", "object"] },
  { value: noop, shown: "function noop", is: ["callback", "function"] },
  { value: new Uint8Array(8), shown: "Uint8Array", is: ["view"] },
  { value: new ArrayBuffer(0), shown: "ArrayBuffer", is: [] },
];

/** A place of an argument: what calls the function with it, and what it takes. */
type Place = readonly [name: string, kind: Kind, call: (given: Given, bad: never) => unknown];

/** The same function with one parameter after the other; `good` is right in all. */
const members = (
  name: string,
  call: (given: Given, parameters: never) => unknown,
  good: (given: Given) => object,
  kinds: Readonly<Record<string, Kind>>,
): Place[] => [
  [name, "object", call],
  ...Object.entries(kinds).map(
    ([key, kind]): Place => [
      `${name}: ${key}`,
      kind,
      (given, bad) => call(given, { ...good(given), [key]: bad } as never),
    ],
  ),
];
const WAIT: Readonly<Record<string, Kind>> = { timeout: "milliseconds", signal: "signal" };
const waits = (name: string, call: (given: Given, options: never) => unknown, more = WAIT): Place[] =>
  members(name, call, () => ({}), more).map(([place, kind, run]) => [place, kind === "object" ? "options" : kind, run]);

const self = ({ context }: Given) => ({ to: context.endpoint });
const moved = (given: Given) => ({ ...self(given), local: given.region, remote: given.region.handle, bytes: 8 });
const word = (given: Given) => ({ ...self(given), remote: given.region.handle, operation: "add", value: 1 });

const PLACES: readonly Place[] = [
  ...waits("createContext", ({ client }, o) => client.createContext(o), {
    pendingBytes: "number",
    unexpectedBytes: "number",
    spin: "milliseconds",
    fragment: "number",
    depth: "number",
    mayBlock: "flag",
  }),
  ["createRegion", "number", ({ client }, bytes) => client.createRegion(bytes)],
  ["endpoint: task", "number", ({ client }, task) => client.endpoint(task)],
  ["endpoint: context", "number", ({ client }, context) => client.endpoint(0, context)],
  ["taskOf", "endpoint", ({ client }, endpoint) => client.taskOf(endpoint)],
  ["contextOf", "endpoint", ({ client }, endpoint) => client.contextOf(endpoint)],
  ["client.advance: contexts", "any", ({ client }, contexts) => client.advance(contexts)],
  ["client.advance: a context", "any", ({ client }, context) => client.advance([context])],
  ["client.advance: max", "number", ({ client }, max) => client.advance([], max)],
  ["query", "any", ({ client }, name) => client.query(name)],
  ...waits("client.close", ({ client }, o) => client.close(o), { ...WAIT, drain: "flag" }),
  ["dispatch: id", "id", ({ context }, id) => context.dispatch(id, noop)],
  ["dispatch: handler", "function", ({ context }, handler) => context.dispatch(OTHER, handler)],
  ["dispatch: hints", "options", ({ context }, hints) => context.dispatch(OTHER, noop, hints)],
  ["call: to", "endpoint", ({ context }, to) => context.call(to, DATA)],
  ["call: id", "id", ({ context }, id) => context.call(context.endpoint, id)],
  ["call: request", "view", ({ context }, request) => context.call(context.endpoint, DATA, request, { timeout: 0 })],
  ...waits("call", ({ context }, o) => context.call(context.endpoint, DATA, null, o), { ...WAIT, header: "view" }),
  ["callSync: to", "endpoint", ({ context }, to) => context.callSync(to, DATA)],
  ["callSync: id", "id", ({ context }, id) => context.callSync(context.endpoint, id)],
  ["callSync: request", "view", ({ context }, bad) => context.callSync(context.endpoint, DATA, bad, { timeout: 0 })],
  ...waits("callSync", ({ context }, o) => context.callSync(context.endpoint, DATA, null, o), {
    timeout: "milliseconds",
    header: "view",
  }),
  ["messages: id", "id", ({ context }, id) => context.messages(id)],
  ...waits("messages", ({ context }, o) => context.messages(DATA, o)),
  ["sendImmediate: to", "endpoint", ({ context }, to) => context.sendImmediate(to, DATA)],
  [
    "sendImmediate of 8 bytes: to",
    "endpoint",
    ({ context }, to) => context.sendImmediate(to, DATA, null, new Uint8Array(8)),
  ],
  ["sendImmediate: dispatch", "id", ({ context }, id) => context.sendImmediate(context.endpoint, id)],
  [
    "sendImmediate of 8 bytes: dispatch",
    "id",
    ({ context }, id) => context.sendImmediate(context.endpoint, id, null, new Uint8Array(8)),
  ],
  ["sendImmediate: header", "view", ({ context }, bad) => context.sendImmediate(context.endpoint, DATA, bad)],
  ["sendImmediate: payload", "view", ({ context }, bad) => context.sendImmediate(context.endpoint, DATA, null, bad)],
  [
    "sendImmediate: queueImmediate",
    "flag",
    ({ context }, bad) => context.sendImmediate(context.endpoint, DATA, null, null, bad),
  ],
  ...members(
    "send",
    ({ context }, p) => context.send(p),
    (given) => ({ ...self(given), dispatch: DATA }),
    {
      to: "endpoint",
      dispatch: "id",
      header: "view",
      payload: "view",
      onLocal: "callback",
      onRemote: "callback",
      queue: "flag",
      signal: "signal",
    },
  ),
  [
    "send: rendezvous",
    "flag",
    ({ context }, bad) =>
      context.send({
        to: 0,
        dispatch: DATA,
        payload: new Uint8Array(8),
        onLocal: noop,
        rendezvous: bad,
        signal: AbortSignal.abort(),
      }),
  ],
  ["room", "endpoint", ({ context }, to) => context.room(to)],
  ["whenRoom: to", "endpoint", ({ context }, to) => context.whenRoom(to, 8, noop)],
  ["whenRoom: bytes", "number", ({ context }, bytes) => context.whenRoom(context.endpoint, bytes, noop)],
  ["whenRoom as a promise: bytes", "number", ({ context }, bytes) => context.whenRoom(context.endpoint, bytes)],
  ...waits("whenRoom", ({ context }, o) => context.whenRoom(context.endpoint, 8, o)).map(orCallback),
  ["whenEnded: to", "endpoint", ({ context }, to) => context.whenEnded(to, noop)],
  ...waits("whenEnded", ({ context }, o) => context.whenEnded(context.endpoint, o)).map(orCallback),
  ["reserve: to", "endpoint", ({ context }, to) => context.reserve(to, DATA, 8)],
  ["reserve: dispatch", "id", ({ context }, id) => context.reserve(context.endpoint, id, 8)],
  ["reserve: payloadBytes", "number", ({ context }, bytes) => context.reserve(context.endpoint, DATA, bytes)],
  ["reserve: headerBytes", "number", ({ context }, bytes) => context.reserve(context.endpoint, DATA, 8, bytes)],
  ["commit: to", "endpoint", ({ context }, to) => context.commit(to)],
  ["commit: payloadBytes", "number", reserved((context, bytes) => context.commit(context.endpoint, bytes))],
  ["abort: to", "endpoint", ({ context }, to) => context.abort(to)],
  ...["put" as const, "get" as const].flatMap((call) =>
    members(call, ({ context }, p) => context[call](p), moved, {
      to: "endpoint",
      local: "region",
      localOffset: "number",
      remote: "number",
      remoteOffset: "number",
      bytes: "number",
      onLocal: "callback",
      onRemote: "callback",
    }),
  ),
  ...members("rmw", ({ context }, p) => context.rmw(p), word, {
    to: "endpoint",
    remote: "number",
    remoteOffset: "number",
    operation: "any",
    type: "any",
    onDone: "callback",
  }),
  [
    "rmw: value",
    "any",
    ({ context, region }, value) =>
      context.rmw({ to: 0, remote: region.handle, operation: "add", type: "u32", value: value === 7n ? -7n : value }),
  ],
  ["fence: to", "endpoint", ({ context }, to) => context.fence(to, noop)],
  ["fence: done", "function", ({ context }, done) => context.fence(context.endpoint, done)],
  ["fenceAll", "function", ({ context }, done) => context.fenceAll(done)],
  ...waits("flush", ({ context }, o) => context.flush(o)),
  ...waits("flushSync", ({ context }, o) => context.flushSync(o), { timeout: "milliseconds" }),
  ...waits("sendSync", ({ context }, o) => context.sendSync({ to: context.endpoint, dispatch: 9 }, o), {
    timeout: "milliseconds",
  }),
  ["purge", "array", ({ context }, endpoints) => context.purge(endpoints)],
  ["resume", "array", ({ context }, endpoints) => context.resume(endpoints)],
  ["resume: an endpoint", "endpoint", ({ context }, endpoint) => context.resume([endpoint])],
  ...waits("drain", ({ context }, o) => context.drain(o)),
  ["post", "function", ({ context }, work) => context.post(work)],
  ["advance", "number", ({ context }, max) => context.advance(max)],
  ["advanceUntil: condition", "function", ({ context }, condition) => context.advanceUntil(condition)],
  ...waits("advanceUntil", ({ context }, o) => context.advanceUntil(() => true, o), { timeout: "milliseconds" }),
  ...["waitWord" as const, "waitWordSync" as const].flatMap((call): Place[] => [
    [`${call}: region`, "region", ({ context }, region) => context[call](region, 0, () => true)],
    [`${call}: offset`, "number", ({ context, region }, offset) => context[call](region, offset, () => true)],
    [`${call}: predicate`, "function", ({ context, region }, predicate) => context[call](region, 0, predicate)],
    ...waits(call, ({ context, region }, o) => context[call](region, 0, () => true, o), { timeout: "milliseconds" }),
  ]),
  ...waits("progress", ({ context }, o) => context.progress(o)),
  ["getInt32", "number", ({ message }, offset) => message.getInt32(offset)],
  ["getUint8", "number", ({ message }, offset) => message.getUint8(offset)],
  ["view", "any", ({ message }, type) => message.view(type)],
  ["region.view", "any", ({ region }, type) => region.view(type)],
  ["copyTo: target", "any", ({ message }, target) => message.copyTo(target)],
  ["copyTo: offset", "number", ({ message }, offset) => message.copyTo(new Uint8Array(64), offset)],
  ["interrupt", "number", ({ job }, task) => job.interrupt(task)],
  ["terminate", "number", ({ job }, task) => job.terminate(task)],
  ...waits("dumpAll", ({ job }, o) => job.dumpAll(o), { timeout: "milliseconds" }),
  ...waits("traceAll", ({ job }, o) => job.traceAll(o), { timeout: "milliseconds" }),
  ["adopt", "any", ({ job }, target) => job.adopt(target)],
  ...waits("adopt", ({ job }, o) => job.adopt(new MessageChannel().port1, o), { kernel: "any" }),
  ...waits("spawn", ({ job }, o) => job.spawn(o), { kernel: "any", entry: "any", workerOptions: "object" }),
  ["launch: entry", "any", (_, entry) => launch(entry)],
  ...waits("launch", (_, o) => launch(new URL("data:text/javascript,"), o), {
    tasks: "number",
    maxTasks: "number",
    kernel: "any",
    join: "flag",
    contexts: "number",
    laneBytes: "number",
    heapBytes: "number",
    regions: "number",
    fifos: "number",
    slots: "number",
    engine: "any",
    onExit: "callback",
    signal: "signal",
    top: "flag",
    workerOptions: "object",
  }),
  ...["debug", "trace"].map(
    (key): Place => [`launch: ${key}`, "any", (_, bad) => launch(new URL("data:text/javascript,"), { [key]: bad })],
  ),
  ...["slow", "wait"].map(
    (key): Place => [
      `launch: debug.${key}`,
      "milliseconds",
      (_, bad) => launch(new URL("data:text/javascript,"), { debug: { [key]: bad } }),
    ],
  ),
  ["attach", "any", (_, port) => attach(port)],
  ["dispatchId: id", "number", (_, id) => dispatchId(id, codecs.bytes)],
  ["dispatchId: request", "any", (_, codec) => dispatchId(1, codec)],
  ["dispatchId: reply", "any", (_, codec) => dispatchId(1, codecs.bytes, codec)],
  ["portTo: context", "any", (_, context) => portTo(context, 0, { id: 1, codec: codecs.bytes })],
  [
    "portTo: to",
    "endpoint",
    ({ context }, to) => portTo(context, to, { id: 1, codec: codecs.bytes as Codec<unknown> }),
  ],
  ["portTo: options", "object", ({ context }, options) => portTo(context, 0, options)],
  ["portTo: id", "number", ({ context }, id) => portTo(context, 0, { id, codec: codecs.bytes as Codec<unknown> })],
  ["portTo: codec", "any", ({ context }, codec) => portTo(context, 0, { id: 1, codec })],
  [
    "port.addEventListener",
    "function",
    ({ context }, bad) => withPort(context, (port) => port.addEventListener("message", bad)),
  ],
  [
    "port.onmessage",
    "function",
    ({ context }, bad) => withPort(context, (port) => Object.assign(port, { onmessage: bad })),
  ],
  [
    "port.postMessage: transfer",
    "array",
    ({ context }, bad) => withPort(context, (port) => port.postMessage(new Uint8Array(1), bad)),
  ],
];

/** A callback may stand where the options do. */
function orCallback([name, kind, call]: Place): Place {
  return [name, kind, (given, bad) => (kind === "options" && bad === noop ? refuse() : call(given, bad))];
}

/** With a reservation that is open. */
function reserved(call: (context: Context, bad: never) => unknown): Place[2] {
  return ({ context }, bad) => {
    expect(context.reserve(context.endpoint, DATA, 8)).toBeGreaterThan(0);
    try {
      return call(context, bad);
    } finally {
      context.abort(context.endpoint);
    }
  };
}

/** With a port, which it closes. */
function withPort(context: Context, call: (port: Port) => unknown): unknown {
  const port = portTo(context, 0, { id: 4000, codec: codecs.bytes as Codec<unknown> });
  try {
    return call(port);
  } finally {
    port.close();
  }
}

function refuse(): never {
  throw new PamiError("PAMIR_INVAL", "function noop");
}

/** Values that a place refuses, or takes for something else of its own. */
const EXCEPT: Readonly<Record<string, readonly unknown[]>> = {
  "client.advance: contexts": [undefined],
  "client.advance: max": [undefined],
  "endpoint: context": [undefined],
  "reserve: headerBytes": [undefined],
  "copyTo: target": [VALUES.find(({ shown }) => shown === "Uint8Array")?.value],
  "copyTo: offset": [undefined],
  "commit: payloadBytes": [undefined],
  "rmw: type": [undefined],
  advance: [undefined],
  attach: [undefined],
  terminate: [undefined],
  createRegion: [],
  "port.onmessage": [null, undefined],
  "port.postMessage: transfer": [undefined, thing],
  "adopt: kernel": [undefined],
  "spawn: kernel": [undefined],
  "spawn: entry": [undefined],
  "spawn: workerOptions": [undefined, thing],
  "launch: kernel": [undefined],
  "launch: engine": [undefined],
  "launch: debug": [undefined, true, thing],
  "launch: trace": [undefined, true, thing],
  "launch: workerOptions": [undefined],
  "dispatchId: reply": [undefined],
};
/** Options that are numbers may be left out. */
const isOption = (name: string): boolean =>
  /^(createContext|launch|client\.close|call|messages|whenRoom|whenEnded|flush|callSync|flushSync|sendSync|drain|advanceUntil|progress|dumpAll|traceAll): /.test(
    name,
  ) ||
  /: (localOffset|remoteOffset|bytes|resultOffset|debug\.\w+)$/.test(name) ||
  /^launch: debug\./.test(name) ||
  /^waitWord\w*: timeout$/.test(name);
/** Their text is about a part of the value, or has only its kind. */
const SAYS_ELSE =
  /^(client\.advance: contexts|send|put|get|rmw|portTo: options|(launch|adopt|spawn): (kernel|entry)|rmw: value)$/;

const CODES = ["PAMIR_INVAL", "PAMIR_TOO_LARGE", "PAMIR_ENTRY", "PAMIR_HINT"];

/** A job of one task, with a region, and a message of 16 bytes whose handler runs the body. */
function withAll(debug: boolean, body: (given: Given) => Promise<void>): Promise<void> {
  return withJob(variant, { tasks: 1, maxTasks: 2, debug: debug ? { slow: 10_000 } : false }, async (given) => {
    const { client, context } = given;
    const region = client.createRegion(64);
    let message: Message | undefined;
    context.dispatch(DATA, (each) => {
      message ??= each;
    });
    // The lane is there: the direct path is asked too.
    expect(context.sendImmediate(context.endpoint, DATA, null, new Uint8Array(16))).toBe(SUCCESS);
    until(context, () => message !== undefined);
    await body({ ...given, region, message: message as Message });
    let seen = 0;
    const last = context.closed ? client.createContext() : context;
    last.dispatch(3999, () => seen++);
    last.sendImmediate(last.endpoint, 3999);
    until(last, () => seen === 1);
    region.close();
  });
}

describe("every public function refuses what it does not take", () => {
  it.each([...new Set(PLACES.map(([name]) => name.split(/[:.]/)[0] as string))])("%s", (group) =>
    withAll(false, async (given) => {
      const places = PLACES.filter(([name]) => name.split(/[:.]/)[0] === group);
      const wrong: string[] = [];
      for (const [name, kind, call] of places) {
        for (const { value, shown, is } of VALUES) {
          if (is.includes(kind) || (EXCEPT[name] ?? []).includes(value) || (value === undefined && isOption(name)))
            continue;
          const error = (await refusalOf(() => call(given, value as never), wrong.length === 0 ? PATIENCE : 300)) as
            | PamiError
            | undefined;
          const isCoded = error instanceof PamiError && CODES.includes(error.code);
          if (!isCoded) wrong.push(`${name} takes ${shown}: ${error ?? "no error"}`);
          else if (!error.message.includes(shown) && !SAYS_ELSE.test(name))
            wrong.push(`${name} of ${shown} says: ${error.message}`);
        }
      }
      expect(wrong).toEqual([]);
      expect(places.length).toBeGreaterThan(0);
    }),
  );

  it.each(
    PLACES.filter(([name, kind]) => kind === "options" && !name.endsWith("workerOptions")).map(([name, , call]) => ({
      name,
      call,
    })),
  )("an option that does not exist: $name", ({ name, call }) =>
    withAll(false, async (given) => {
      const error = (await refusalOf(() => call(given, { timeoutt: 5 } as never))) as PamiError;
      expect(error).toMatchObject({ code: name === "dispatch: hints" ? "PAMIR_HINT" : "PAMIR_INVAL" });
      expect(error.message).toContain("timeoutt");
      expect(error.message).toMatch(
        /: there is no "timeoutt"(, but (?!.*\btimeout\b)|: did you mean timeout\? There are .*\btimeout\b)/,
      );
    }),
  );

  it("a parameter that does not exist: hot calls refuse it in debug mode", () =>
    withAll(true, async ({ context, region }) => {
      const given = { to: 0, dispatch: DATA, paylod: new Uint8Array(1) };
      expect(thrownBy(() => context.send(given as never))).toMatchObject({
        code: "PAMIR_INVAL",
        text: expect.stringMatching(
          /^parameters of send\(\): there is no "paylod": did you mean payload\? There are to, dispatch, header/,
        ),
      });
      const transfer = { to: 0, local: region, remote: region.handle, onDone: noop };
      for (const call of ["put", "get"] as const) {
        expect(thrownBy(() => context[call](transfer as never)).text).toContain('there is no "onDone"');
      }
      const change = { to: 0, remote: region.handle, operation: "add", value: 1, onLocal: noop };
      expect(thrownBy(() => context.rmw(change as never)).text).toContain('there is no "onLocal"');
    }));

  it("contexts and regions of another job", () =>
    withAll(false, ({ client, context }) =>
      withJob(variant, { tasks: 1 }, async (other) => {
        expect(thrownBy(() => client.advance([context, other.context])).code).toBe("PAMIR_INVAL");
        expect(client.advance([context])).toBe(0);
        const local = other.client.createRegion(8);
        const own = client.createRegion(8);
        for (const call of ["put", "get"] as const) {
          const { code, text } = thrownBy(() => context[call]({ to: 0, local, remote: own.handle }));
          expect([code, text]).toEqual(["PAMIR_INVAL", "local is a region of another job"]);
        }
        local.close();
        own.close();
      }),
    ));

  it.each([{ onComplete: 3 }, { options: 3 }, { options: { chunk: 64 } }, { options: { signal: true } }])(
    "receive() with %o",
    ({ onComplete, options }) =>
      withJob(variant, { tasks: 1 }, ({ context }) => {
        const came: (string | number)[] = [];
        context.dispatch(OTHER, (message) => {
          came.push(
            thrownBy(() => message.receive(new Uint8Array(8), onComplete as never, null, options as never)).code,
          );
          message.receive(new Uint8Array(8), (_, result) => came.push(result));
        });
        const payload = new Uint8Array(8);
        context.send({ to: 0, dispatch: OTHER, payload, rendezvous: true, onLocal: noop });
        until(context, () => came.length === 2);
        expect(came).toEqual(["PAMIR_INVAL", SUCCESS]);
      }),
  );

  it("flush(), whenRoom() and drain() with a bad option have begun nothing", () =>
    withJob(variant, { tasks: 1 }, async ({ context }) => {
      for (const call of [() => context.flush(7 as never), () => context.whenRoom(0, 8, 7 as never)]) {
        expect(await refusalOf(call)).toBeInstanceOf(PamiError);
      }
      expect([context.drained, context.advance()]).toEqual([true, 0]);
    }));
});
