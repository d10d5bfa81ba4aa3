// Public names only.
import {
  DISPATCH_ID_MAX as dispatchIdMax,
  RECV_IMMEDIATE_MAX as recvImmediateMax,
  SEND_IMMEDIATE_MAX as sendImmediateMax,
} from "../assembly/layout.js";

/** Largest dispatch id. */
export const DISPATCH_ID_MAX: number = dispatchIdMax;
/** Largest message of `sendImmediate` in bytes: header (padded to 8) plus payload. */
export const SEND_IMMEDIATE_MAX: number = sendImmediateMax;
/** Largest message that always arrives whole, in bytes: header (padded to 8) plus payload. Also the limit of `reserve`. */
export const RECV_IMMEDIATE_MAX: number = recvImmediateMax;

export type { ActiveHandler, ActiveMessage } from "./collective/active.js";
export type { ActiveType, CollectiveType } from "./collective/operations.js";
export type { AlgorithmInfo } from "./collective/select.js";
export type { Handles, Place } from "./core/clone/handles.js";
export { recycle } from "./core/clone/spare.js";
export type { Endpoint } from "./core/endpoint.js";
export { type ErrorCode, PamiError, RemoteError } from "./core/error.js";
export type { KernelName } from "./core/kernel-name.js";
export type { CallScope } from "./core/message/call-scope.js";
export {
  type Codec,
  codecs,
  type DispatchId,
  dispatchId,
  type InPlaceCodec,
  type Parts,
  type TypedHandler,
} from "./core/message/codec.js";
export type { DispatchHints, Handler, Hint } from "./core/message/dispatch.js";
export type { Message } from "./core/message/message.js";
export type { Pacing, ReceiveOptions } from "./core/message/pacing.js";
export type { PayloadView } from "./core/message/view.js";
export type { ElementType, Operation } from "./core/reduction.js";
export { MemRegion, type RegionHandle } from "./core/region.js";
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
} from "./core/result.js";
export type {
  CompleteOptions,
  PackOptions,
  TransferField,
  TransferType,
  TransferTypeInfo,
} from "./core/transfer-type.js";
export type { Work } from "./core/work.js";
export { VERSION } from "./generated/version.js";
export type { AbsenceScope, LinkKind, LinkOpening, LinkPlace, LinkWay, NodeLink } from "./link/kind.js";
export type { Address, Link } from "./link/link.js";
export type { DebugOptions } from "./observe/debug.js";
export type {
  ContextDump,
  Dump,
  EngineDump,
  HeapDump,
  InjectionDump,
  LaneDump,
  NodeDump,
  TaskDump,
  TransferDump,
} from "./observe/dump.js";
export type { Trace, TraceEvent, TraceReadOptions } from "./observe/trace.js";
export type { Attributes, Capabilities, Client, CloseOptions } from "./pami/client.js";
export type {
  ActiveParameters,
  AllgathervParameters,
  AlltoallvParameters,
  AmBroadcastParameters,
  AmGatherParameters,
  AmReduceParameters,
  AmScatterParameters,
  BroadcastParameters,
  CollectiveParameters,
  CollectiveParametersOf,
  ExchangeParameters,
  GathervParameters,
  ReduceParameters,
  ReduceScatterParameters,
  ReductionParameters,
  RootedParameters,
  ScanParameters,
  UserOperation,
} from "./pami/collective-parameters.js";
export type {
  CallOptions,
  CallSyncOptions,
  Context,
  ContextOptions,
  MessagesOptions,
  Received,
} from "./pami/context.js";
export type {
  Aggregator,
  AggregatorOptions,
  AggregatorParameters,
  IntegerArray,
  KindsParameters,
} from "./pami/extensions/aggregator.js";
export type { Counter, CounterOptions } from "./pami/extensions/counter.js";
export type { CellArray, Grid, GridParameters } from "./pami/extensions/grid.js";
export type { ItemArray, ItemKind, UpdateOperation } from "./pami/extensions/item-kind.js";
export type { SharedRegion } from "./pami/extensions/shared-region.js";
export type { Geometry } from "./pami/geometry.js";
export type { GeometryOptions, GeometryRange, GeometrySyncOptions } from "./pami/make-geometry.js";
export type { ProgressOptions, WaitOptions } from "./pami/waits.js";
export type { SendParameters, TypedSendParameters } from "./protocol/eager/send-parameters.js";
export type {
  NotifyWord,
  PutParameters,
  RegionWord,
  RmwParameters,
  TransferParameters,
} from "./protocol/rma/parameters.js";
export type { RmwOperation, RmwType } from "./protocol/rma/rmw.js";
export { type AttachPort, attach } from "./start/attach.js";
export { type HostMode, type Info, info } from "./start/info.js";
export type { AdoptOptions, AskOptions, Job, SpawnOptions } from "./start/job.js";
export type { NatsJob } from "./start/join/nats-job.js";
export { launch } from "./start/launch.js";
export type { LaunchOptions, TraceOptions } from "./start/launch-options.js";
export type { AdoptTarget, TaskExit } from "./start/tasks/monitor.js";
export type {
  AbortSignalLike,
  HostAbortSignal,
  HostMessagePort,
  MessagePortLike,
  URLLike,
  WorkerLike,
} from "./support/like.js";
