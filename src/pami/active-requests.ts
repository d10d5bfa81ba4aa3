// Active messages of a geometry at their root: checks the parameters, and takes the answers.
import { reduceBlocks } from "../collective/geometry/reduce-blocks.js";
import type { GeometryCore } from "../collective/geometry-core.js";
import type { CollectiveOperation, Reducer } from "../collective/operation.js";
import { type ActiveType, OPERATION_ROWS } from "../collective/operations.js";
import { ACTIVE_ALGORITHM, algorithmOf } from "../collective/select.js";
import { checkInteger, PamiError } from "../core/error.js";
import { DISPATCH_ID_MAX } from "../core/limits.js";
import type { Given } from "./collective-parameters.js";
import { bytesOf, checkKinds, NOTHING, type Requests } from "./collective-requests.js";

/** @throws PAMIR_INVAL, PAMIR_BOUNDS */
export function beginActive(
  core: GeometryCore,
  requests: Requests,
  type: ActiveType,
  given: Given,
): CollectiveOperation {
  const { dispatch, header, payload, send, counts, algorithm } = given;
  checkInteger("dispatch", dispatch, 0, DISPATCH_ID_MAX);
  if (algorithm !== undefined) algorithmOf(type, [ACTIVE_ALGORITHM], algorithm);
  const headerBytes = header == null ? NOTHING : bytesOf(type, "header", header);
  const { gives, gets, isReduction } = OPERATION_ROWS[type];
  const begin = core.active.begin.bind(core.active, type, dispatch, headerBytes);
  if (gets === "" && gives === "blocks") return begin(requests.blocksOf(type, send as ArrayBufferView, counts));
  if (gets === "") return begin(payload == null ? NOTHING : bytesOf(type, "payload", payload));
  const own = bytesOf(type, "send", send);
  const receive = bytesOf(type, "receive", given.receive);
  if (!isReduction) checkKinds(type, send, given.receive);
  const take = isReduction ? reduced(core, requests, given, own, receive) : gathered(core, own, receive);
  const operation = begin(NOTHING, (came) => {
    const blocks = came.map((block, rank) => (rank === core.rank ? own.slice() : block));
    const odd = blocks.findIndex(({ length }) => length !== own.length);
    if (odd >= 0) return `rank ${odd} has returned ${blocks[odd]?.length} bytes, not ${own.length}`;
    take(blocks);
    return "";
  });
  if (!operation.isOver) operation.hold(core.regions, own, receive);
  return operation;
}

type Take = (blocks: readonly Uint8Array[]) => void;

function gathered({ size }: GeometryCore, own: Uint8Array, receive: Uint8Array): Take {
  if (receive.length !== own.length * size) {
    const text = `amGather() of ${size} blocks of ${own.length} bytes: receive has ${receive.length} bytes`;
    throw new PamiError("PAMIR_INVAL", text);
  }
  return (blocks) => {
    for (const [rank, block] of blocks.entries()) receive.set(block, rank * own.length);
  };
}

function reduced(core: GeometryCore, requests: Requests, given: Given, own: Uint8Array, receive: Uint8Array): Take {
  const { send, receive: result, operation, type } = given;
  const { reducer } = requests.of("allreduce", { send, receive: result, operation, type } as Given).request;
  return (blocks) => receive.set(reduceBlocks(core.scratch, blocks, own.length, reducer as Reducer));
}
