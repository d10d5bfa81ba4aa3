// Clients, contexts, endpoints, attributes, time, and the text of the last error.
import { type Attributes, EAGAIN, PamiError, type Result, SUCCESS } from "../../index.js";
import {
  ATTRIBUTES,
  CLIENT_MEMREGION_SIZE,
  CLIENT_WTIMEBASE_MHZ,
  CONFIGURATION,
  MEMREGION,
  NULL,
  RESULT,
} from "./layouts.js";
import type { ProgramContext } from "./program-context.js";
import { CLIENT, type PamiCall, type PamiState } from "./state.js";

/** Advances without an event after which it is looked whether the program only waits; and for how long it then sleeps at most. */
const IDLE_ADVANCES = 256;
const SLEEP_MS = 1;
/** Seconds that so many advances take where a program does nothing else: each 0.2 to 1 µs. */
const IDLE_SECONDS = IDLE_ADVANCES * 2e-6;
const ROUNDS_MAX = 2 ** 31 - 1;

/** Calls without a guard: they return no result. */
export function freeCalls(state: PamiState): Record<string, (...given: number[]) => number | bigint> {
  return {
    PAMI_Wtime: () => state.client.now(),
    PAMI_Wtimebase: () => BigInt(Math.round(state.client.now() * 1e6)),
    PAMI_Error_text: (pointer, length) => {
      if ((length as number) >>> 0 === 0 || pointer === NULL) return 0;
      const text = new TextEncoder().encode(state.lastText).subarray(0, ((length as number) >>> 0) - 1);
      const target = state.target(pointer as number, text.length + 1, "text");
      target.set(text);
      target[text.length] = 0;
      return text.length;
    },
  };
}

export function environmentCalls(state: PamiState): Record<string, PamiCall> {
  const queried = (configurations: number, count: number): Result =>
    query(configurations, count, (name, value) => attribute(state, name, value));
  const query = (configurations: number, count: number, read: (name: number, value: number) => void): Result => {
    for (let i = 0; i < count; i++) {
      const at = configurations + i * CONFIGURATION.BYTES;
      read(state.word(at + CONFIGURATION.NAME), at + CONFIGURATION.VALUE);
    }
    return SUCCESS;
  };
  const update = (): Result => {
    throw new PamiError("PAMIR_INVAL", "the attributes can only be read");
  };
  return {
    PAMI_Client_create: (_name, pointer, _configurations, _count) => {
      if (state.clientPhase !== "before") throw new PamiError("PAMIR_INVAL", "a task has one client, and has made it");
      state.clientPhase = "open";
      state.setWord(pointer as number, CLIENT);
      return SUCCESS;
    },
    PAMI_Client_destroy: (pointer) => {
      state.checkClient(state.word(pointer as number));
      const open = state.contexts.filter((context) => context !== undefined).length;
      if (open > 0) throw new PamiError("PAMIR_INVAL", `${open} contexts of the client are not destroyed`);
      state.clientPhase = "after";
      state.setWord(pointer as number, NULL);
      return SUCCESS;
    },
    PAMI_Client_query: (client, configurations, count) => {
      state.checkClient(client as number);
      return queried(configurations as number, count as number);
    },
    PAMI_Client_update: update,
    PAMI_Context_query: (context, configurations, count) => {
      state.context(context as number);
      return queried(configurations as number, count as number);
    },
    PAMI_Context_update: update,
    PAMI_Dispatch_query: (context, _dispatch, configurations, count) => {
      state.context(context as number);
      return queried(configurations as number, count as number);
    },
    PAMI_Dispatch_update: update,
    PAMI_Endpoint_create: (client, task, offset, pointer) => {
      state.checkClient(client as number);
      state.setWord(pointer as number, state.client.endpoint((task as number) >>> 0, (offset as number) >>> 0));
      return SUCCESS;
    },
    PAMI_Endpoint_query: (endpoint, task, offset) => {
      state.setWord(task as number, state.client.taskOf((endpoint as number) >>> 0));
      state.setWord(offset as number, state.client.contextOf((endpoint as number) >>> 0));
      return SUCCESS;
    },
    PAMI_Extension_open: () => {
      state.lastText = "there are no extensions";
      return RESULT.UNIMPL;
    },
    ...contextCalls(state),
  };
}

function contextCalls(state: PamiState): Record<string, PamiCall> {
  const advance = (contexts: number, count: number, rounds: number): Result => {
    const [first, ...others] = state.array(contexts, count).map((handle) => state.context(handle));
    if (first === undefined) return EAGAIN;
    return advanced(state, first, others, rounds);
  };
  const held = (handle: number): Result => {
    state.context(handle);
    return SUCCESS;
  };
  return {
    PAMI_Context_createv: (client, _configurations, _settings, pointer, count) => {
      state.checkClient(client as number);
      const left = state.client.query("CLIENT_NUM_CONTEXTS") - state.contexts.length;
      if ((count as number) >>> 0 > left)
        throw new PamiError("PAMIR_INVAL", `${count} contexts, and the task may make ${left} more`);
      for (let i = 0; i < (count as number); i++) state.setWord((pointer as number) + 4 * i, state.addContext().handle);
      return SUCCESS;
    },
    PAMI_Context_destroyv: (pointer, count) => {
      const handles = state.array(pointer as number, count as number);
      const contexts = handles.map((handle) => state.context(handle));
      for (const [i, { context, handle }] of contexts.entries()) {
        // What waits for room would be lost with the context.
        context.advanceUntil(() => context.drained);
        context.close();
        state.contexts[handle - 1] = undefined;
        state.setWord((pointer as number) + 4 * i, NULL);
      }
      return SUCCESS;
    },
    // A context belongs to one thread: no other can take it.
    PAMI_Context_lock: held,
    PAMI_Context_trylock: held,
    PAMI_Context_unlock: held,
    PAMI_Context_advance: (handle, rounds) => advanced(state, state.context(handle as number), NONE, rounds as number),
    PAMI_Context_advancev: (contexts, count, rounds) => advance(contexts as number, count as number, rounds as number),
    PAMI_Context_trylock_advancev: (contexts, count, rounds) =>
      advance(contexts as number, count as number, rounds as number),
    PAMI_Context_post: (handle, _work, fn, cookie) => {
      const { context } = state.context(handle as number);
      state.functionAt(fn as number);
      context.post(() => state.invoke(fn as number, handle as number, cookie as number) as Result);
      return SUCCESS;
    },
    PAMI_Purge: (handle, endpoints, count) =>
      state.context(handle as number).context.purge(unsigned(state, endpoints as number, count as number)),
    PAMI_Resume: (handle, endpoints, count) =>
      state.context(handle as number).context.resume(unsigned(state, endpoints as number, count as number)),
  };
}

const NONE: readonly ProgramContext[] = [];

function unsigned(state: PamiState, pointer: number, count: number): number[] {
  return state.array(pointer, count).map((value) => value >>> 0);
}

/** Advances until a round has an event. @returns SUCCESS, or EAGAIN: there was none */
function advanced(state: PamiState, first: ProgramContext, others: readonly ProgramContext[], most: number): Result {
  const rounds = most > 0 ? most : most === 0 ? 1 : ROUNDS_MAX;
  if (
    others.length === 0
      ? first.context.advance(rounds) > 0
      : state.client.advance(
          [first, ...others].map(({ context }) => context),
          rounds,
        ) > 0
  ) {
    first.idle = 0;
    return SUCCESS;
  }
  first.idle++;
  return first.idle % IDLE_ADVANCES === 0 ? slept(state, first, others) : EAGAIN;
}

/**
 * Programs of PAMI wait in a loop of advances. Where one does nothing else, it sleeps until it is woken or a millisecond has passed:
 * otherwise the ranks that share a core with it wait for the end of its time slice.
 */
function slept(state: PamiState, first: ProgramContext, others: readonly ProgramContext[]): Result {
  const { client, calls } = state;
  const now = client.now();
  const isBusy = now - first.idleSince > IDLE_SECONDS;
  first.idleSince = now;
  if (isBusy) return EAGAIN;
  first.context.advanceUntil(
    () => {
      for (const { context } of others) context.advance();
      return state.calls !== calls;
    },
    { timeout: SLEEP_MS },
  );
  first.idleSince = client.now();
  return state.calls === calls ? EAGAIN : SUCCESS;
}

/** Writes an attribute. @throws PAMIR_INVAL it is unknown */
function attribute(state: PamiState, name: number, value: number): void {
  const known = ATTRIBUTES[name];
  if (name === CLIENT_MEMREGION_SIZE) state.setWord(value, MEMREGION.SIZE);
  else if (name === CLIENT_WTIMEBASE_MHZ) state.setWord(value, 1);
  else if (known === undefined) throw new PamiError("PAMIR_INVAL", `the attribute ${name} is not there`);
  else write(state, known, value);
}

function write(state: PamiState, name: keyof Attributes, value: number): void {
  const found = state.client.query(name);
  if (name === "CLIENT_WTICK") state.setDouble(value, found as number);
  else if (typeof found === "string") state.setWord(value, state.keepText(found));
  else if (typeof found === "object")
    state.setWord(
      value,
      state.keep(name, () => new Uint8Array(Int32Array.from(found).buffer)),
    );
  else state.setWord(value, Number(found));
}
