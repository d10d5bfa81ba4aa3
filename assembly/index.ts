// The wasm module's exports: the kernels, and the hash of the layout they were compiled for.
import { LAYOUT_HASH } from "./layout-hash";

export { bufferRelease, bufferWant } from "./buffer";
export {
  chainBreak,
  chainLeft,
  chainNotice,
  chainRun,
  chainWrite,
  rgetClear,
  rgetClose,
  rgetOpen,
} from "./chain";
export { completionTake } from "./completion";
export { engineCall } from "./due";
export {
  changeNow,
  engineCarried,
  engineGiveUp,
  engineRun,
  inject,
  moveNow,
  perform,
  submit,
} from "./engine";
export { extentPass, heapAllocate, heapFree, heapFreePages, heapReclaim, regionAllocate } from "./heap";
export {
  copyBytes,
  fillBytes,
  laneAbort,
  laneCommit,
  laneInit,
  laneOpen,
  laneReclaim,
  laneRelease,
  laneReplace,
  laneReserve,
  laneRoom,
  laneSendWords,
  laneWantRoom,
} from "./lane";
export {
  advance,
  laneOf,
  lanePause,
  lanePeek,
  laneReady,
  laneResume,
  laneSwitch,
  lastLook,
  peek,
  release,
} from "./reception";
export { placeOf, regionClose, regionOpen } from "./region";
export { engineServe } from "./serve";
export { packetCheck } from "./session/packet";
export { queueInit, queueInsert, queueNext, queueReset, queueTake } from "./session/reorder";
export {
  addWord,
  bellArm,
  bellDisarm,
  bellWait,
  clearBits,
  exchangeIf,
  loadWord,
  pause,
  ring,
  ringAlways,
  spinEnter,
  spinLeave,
  storeWord,
} from "./sync";

/** Fingerprint of the sources of layout and kernels. The loader compares it with its own. */
export function layoutHash(): u32 {
  return LAYOUT_HASH;
}
