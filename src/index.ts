// Public names only.
import {
  DISPATCH_ID_MAX as dispatchIdMax,
  RECV_IMMEDIATE_MAX as recvImmediateMax,
  SEND_IMMEDIATE_MAX as sendImmediateMax,
} from "../assembly/layout.js";

/** Largest dispatch id. */
export const DISPATCH_ID_MAX: number = dispatchIdMax;
/** Bytes of header (padded to 8) and payload that `sendImmediate` takes. */
export const SEND_IMMEDIATE_MAX: number = sendImmediateMax;
/** Bytes of header (padded to 8) and payload up to which a message arrives whole. */
export const RECV_IMMEDIATE_MAX: number = recvImmediateMax;

export { VERSION } from "./generated/version.js";
export type { KernelName } from "./kernel/kernel.js";
export { type AttachPort, attach } from "./launch/attach.js";
export { type HostMode, type Info, info } from "./launch/info.js";
export type { AdoptOptions, Job, SpawnOptions } from "./launch/job.js";
export { type LaunchOptions, launch, type TraceOptions } from "./launch/launch.js";
export type { AdoptTarget, TaskExit } from "./launch/monitor.js";
export type { Trace, TraceEvent } from "./launch/trace.js";
export type { Attributes, Capabilities, Client, CloseOptions } from "./pami/client.js";
export { type Codec, codecs, type DispatchId, dispatchId, type TypedHandler } from "./pami/codec.js";
export type { CallOptions, Context, ContextOptions, Received } from "./pami/context.js";
export type { DebugOptions } from "./pami/debug.js";
export type { DispatchHints, Handler, Hint } from "./pami/dispatch.js";
export type {
  ContextDump,
  Dump,
  EngineDump,
  HeapDump,
  InjectionDump,
  LaneDump,
  TaskDump,
  TransferDump,
} from "./pami/dump.js";
export type { Endpoint } from "./pami/endpoint.js";
export { type ErrorCode, PamiError, RemoteError } from "./pami/error.js";
export type { Pacing, ReceiveOptions } from "./pami/intake.js";
export { MemRegion, type RegionHandle } from "./pami/memregion.js";
export type { Message, PayloadView } from "./pami/message.js";
export {
  CANCELED,
  type Callback,
  EAGAIN,
  ENOMEM,
  ERROR,
  errorText,
  INTERRUPTED,
  INVAL,
  type Result,
  SHUTDOWN,
  SUCCESS,
  TIMEDOUT,
  UNIMPL,
} from "./pami/result.js";
export type { NotifyWord, PutParameters, RegionWord, RmwParameters, TransferParameters } from "./pami/rma.js";
export type { RmwOperation, RmwType } from "./pami/rmw.js";
export type { SendParameters, TypedSendParameters } from "./pami/send.js";
export type { ProgressOptions, WaitOptions } from "./pami/waits.js";
export type { Work } from "./pami/work.js";
export type { AbortSignalLike, HostMessagePort, MessagePortLike, URLLike, WorkerLike } from "./support/like.js";
