// All calls of MPI that a program may import, by their names.
import { collectiveCalls } from "./collective/calls.js";
import { localCalls } from "./collective/local.js";
import { communicatorCalls } from "./communicators.js";
import { ERR } from "./constants.js";
import { withContents } from "./datatypes/contents.js";
import { elementCalls } from "./datatypes/elements.js";
import { externalCalls } from "./datatypes/external.js";
import { environmentCalls, freeCalls } from "./environment.js";
import { MpiFailure } from "./failure.js";
import { failureCalls } from "./failures/calls.js";
import { Messages, messageCalls } from "./messages.js";
import { attributeCalls, ObjectAttributes } from "./objects/attributes.js";
import { errorCalls } from "./objects/error-calls.js";
import { grequestCalls } from "./objects/grequests.js";
import { Infos, infoCalls } from "./objects/info.js";
import { matchedCalls } from "./point/matched.js";
import { sendrecvCalls } from "./point/sendrecv.js";
import { completionCalls } from "./requests/completion.js";
import type { MpiState } from "./state.js";
import { cartCalls } from "./topology/cart.js";
import { graphCalls } from "./topology/graph.js";
import { neighborCalls } from "./topology/neighbors.js";
import { typeCalls } from "./type-calls.js";
import { windowCalls } from "./windows/calls.js";

export function mpiCalls(state: MpiState): Record<string, (...given: number[]) => number> {
  const messages = new Messages(state);
  const attributes = new ObjectAttributes(state);
  const infos = new Infos(state);
  const guarded = {
    ...messageCalls(state, messages),
    ...matchedCalls(state, messages),
    ...sendrecvCalls(state, messages),
    ...completionCalls(state, messages),
    ...collectiveCalls(state),
    ...localCalls(state),
    ...communicatorCalls(state, attributes),
    ...cartCalls(state),
    ...graphCalls(state),
    ...neighborCalls(state),
    ...withContents(state, typeCalls(state, attributes)),
    ...elementCalls(state),
    ...externalCalls(state),
    ...attributeCalls(state, attributes),
    ...infoCalls(state, infos, attributes),
    ...errorCalls(state),
    ...grequestCalls(state),
    ...environmentCalls(state, attributes),
    ...windowCalls(state, infos),
    ...failureCalls(state),
  };
  const calls: Record<string, (...given: number[]) => number> = { ...freeCalls(state) };
  for (const [name, [at, run]] of Object.entries(guarded)) {
    calls[name] = state.guarded(name, at, state.isApart && NOT_APART.test(name) ? refuse : run);
  }
  return state.isApart
    ? Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, renewing(state, call)]))
    : calls;
}

/** Calls by which other ranks would reach into the program's memory. */
const NOT_APART = /^MPI_Win_(?:allocate|allocate_shared|create|create_dynamic)$/;

/** @throws MpiFailure MPI_ERR_UNSUPPORTED_OPERATION */
function refuse(): never {
  const text = "the program has a memory of its own (isolate), which other ranks can't reach";
  throw new MpiFailure(ERR.UNSUPPORTED_OPERATION, text);
}

/** A call of a program whose memory may have grown. */
function renewing(state: MpiState, call: (...given: number[]) => number): (...given: number[]) => number {
  return (...given) => {
    state.renew();
    return call(...given);
  };
}
