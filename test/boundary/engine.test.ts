// The end of an engine thread, as its tasks find it: one that had begun, and one that never did.
import { describe, expect, it } from "vitest";
import { TASK_STATE_OFFSET, TASK_UP } from "../../assembly/layout.js";
import type { KernelName } from "../../src/core/kernel-name.js";
import { ERROR, type Result, SUCCESS } from "../../src/core/result.js";
import { selectKernel } from "../../src/kernel/select.js";
import { engineSlot } from "../../src/memory/map.js";
import { markEngineDead } from "../../src/node/liveness.js";
import { makeJobMemory } from "../../src/node/memory.js";
import type { Client } from "../../src/pami/client.js";
import { makeClient } from "../../src/start/client.js";

const LIMITS = { tasks: 2, contexts: 1, laneBytes: 16384, heapBytes: 2 ** 23, engine: true };
const BYTES = 2 ** 20;
/** An offered payload. */
const DATA = 1;
/** More rounds than the transfers here take. */
const ROUNDS = 100;

/** Two tasks of a job whose engine thread is not there, both on this thread, with a put and a payload under way. */
function begun(name: KernelName) {
  const { map, shared, memory } = makeJobMemory({ limits: LIMITS, isFixed: true, base: 0 }, name === "wasm");
  const kernel = selectKernel(name, shared, memory);
  const [one, other] = [0, 1].map((task) => makeClient({ kernel, memory, map, task })) as [Client, Client];
  const [origin, target] = [one.createContext(), other.createContext()];
  const local = one.createRegion(BYTES);
  const [remote, destination] = [other.createRegion(BYTES), other.createRegion(BYTES)];
  local.bytes.fill(7);
  remote.bytes.fill(0);
  destination.bytes.fill(0);
  const results: Record<string, Result> = {};
  const note = (what: string) => (_: unknown, result: Result) => {
    results[what] = result;
  };
  target.dispatch(DATA, (message) => message.receive(destination.bytes, note("received")));
  origin.put({ to: target.endpoint, local, remote: remote.handle, onLocal: note("put") });
  origin.fence(target.endpoint, note("fence"));
  origin.send({ to: target.endpoint, dispatch: DATA, payload: local.bytes, rendezvous: true, onLocal: note("sent") });
  const advance = (): void => {
    for (let round = 0; round < ROUNDS; round++) for (const context of [origin, target]) context.advance();
  };
  return { map, kernel, origin, results, remote, destination, advance };
}

describe.each<KernelName>(["wasm", "ts"])("%s", (name) => {
  it("P11: what an engine thread that never began was asked for, its tasks do", () => {
    const { map, kernel, origin, results, remote, destination, advance } = begun(name);
    advance();
    expect(results).toEqual({});
    markEngineDead(kernel, map);
    // The monitor may hear of its end twice.
    markEngineDead(kernel, map);
    expect(origin.advanceUntil(() => "fence" in results, { timeout: 60_000 })).toBe(SUCCESS);
    advance();
    expect(results).toEqual({ put: SUCCESS, fence: SUCCESS, sent: SUCCESS, received: SUCCESS });
    for (const { bytes } of [remote, destination]) expect(bytes.every((byte) => byte === 7)).toBe(true);
  });

  it("P11: what one that had begun was asked for comes to ERROR, and nothing is done", () => {
    const { map, kernel, results, remote, advance } = begun(name);
    kernel.storeWord(engineSlot(map) + TASK_STATE_OFFSET, TASK_UP);
    advance();
    expect(results).toEqual({});
    markEngineDead(kernel, map);
    advance();
    expect(results).toEqual({ put: ERROR, fence: ERROR, sent: ERROR, received: ERROR });
    expect(remote.bytes.every((byte) => byte === 0)).toBe(true);
  });
});
