// All calls of MPI that a program may import, by their names.
import { collectiveCalls } from "./collective/calls.js";
import { communicatorCalls } from "./communicators.js";
import { completionCalls } from "./completion.js";
import { environmentCalls, freeCalls } from "./environment.js";
import { Messages, messageCalls } from "./messages.js";
import type { MpiState } from "./state.js";
import { cartCalls } from "./topology/cart.js";
import { graphCalls } from "./topology/graph.js";
import { neighborCalls } from "./topology/neighbors.js";
import { typeCalls } from "./type-calls.js";
import { windowCalls } from "./windows/calls.js";

export function mpiCalls(state: MpiState): Record<string, (...given: number[]) => number> {
  const messages = new Messages(state);
  const guarded = {
    ...messageCalls(state, messages),
    ...completionCalls(state, messages),
    ...collectiveCalls(state),
    ...communicatorCalls(state),
    ...cartCalls(state),
    ...graphCalls(state),
    ...neighborCalls(state),
    ...typeCalls(state),
    ...environmentCalls(state),
    ...windowCalls(state),
  };
  const calls: Record<string, (...given: number[]) => number> = { ...freeCalls(state) };
  for (const [name, [at, run]] of Object.entries(guarded)) calls[name] = state.guarded(name, at, run);
  return calls;
}
