// What a context remembers of the calls that it serves: nothing of one that is answered, whatever its caller said before.
import { expect, it } from "vitest";
import { DISPATCH_ID_ABORT } from "../../assembly/layout.js";
import type { ScopeMaker } from "../../src/core/message/call-scope.js";
import type { Handler, HandlerTable } from "../../src/core/message/dispatch.js";
import type { Message } from "../../src/core/message/message.js";
import { SUCCESS } from "../../src/core/result.js";
import { type CallHost, Calls } from "../../src/protocol/call.js";

const ORIGIN = 3;
const NUMBER = 7;

/** The calls of a context that keeps what comes, and what the transport does with them. */
function served(): { serve(handler: Handler): void; abort(): void } {
  const own = new Map<number, Handler>();
  let serve: (handler: Handler, message: Message) => void = () => {};
  const handlers = {
    handle: (id: number, handler: Handler) => void own.set(id, handler),
    handleCalls: (given: typeof serve) => {
      serve = given;
    },
  } as unknown as HandlerTable;
  const host = { sender: { sendOwn: () => SUCCESS }, keepsCall: () => true, isGone: () => false };
  new Calls(host as unknown as CallHost, handlers);
  return {
    serve(handler) {
      let scope: { readonly signal: AbortSignal } | undefined;
      let maker: ScopeMaker | undefined;
      const message = {
        origin: ORIGIN,
        takeCall: (given: ScopeMaker) => {
          maker = given;
          return NUMBER;
        },
        leaveCall: () => scope,
        checkAnswered() {},
        discard() {},
        get signal() {
          scope ??= maker?.(ORIGIN, NUMBER) as typeof scope;
          return scope?.signal;
        },
      };
      serve(handler, message as unknown as Message);
    },
    abort() {
      own.get(DISPATCH_ID_ABORT)?.({ origin: ORIGIN, headerWord: (at: number) => (at === 0 ? NUMBER : 0) } as Message);
    },
  };
}

const ANSWERS: readonly [name: string, handler: Handler][] = [
  ["returns at once", () => undefined],
  [
    "throws",
    () => {
      throw new Error("no");
    },
  ],
  ["returns a promise", async () => undefined],
];

it.each(ANSWERS)(
  "a call that was given up early is forgotten once its handler %s without asking",
  async (_, answer) => {
    const calls = served();
    calls.abort();
    calls.serve(answer);
    await new Promise(setImmediate);
    // Its number comes again, after 2^32 calls: that is another call, which nobody has given up.
    let signal: AbortSignal | undefined;
    calls.serve((message) => {
      signal = message.signal;
    });
    expect(signal?.aborted).toBe(false);
  },
);

it("a handler that asks hears that its call was given up early", () => {
  const calls = served();
  calls.abort();
  let signal: AbortSignal | undefined;
  calls.serve((message) => {
    signal = message.signal;
  });
  expect(signal?.reason).toMatchObject({ code: "PAMIR_CANCELED" });
});
