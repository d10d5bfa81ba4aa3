// pamir/pool: functions of workers, called by name.
export { type Connection, type ConnectionMethods, connect, expose } from "./connect.js";
export { currentCall, type ServedCall } from "./current-call.js";
export { proxy } from "./lent.js";
export type { Functions } from "./names.js";
export {
  type Pool,
  type PoolCallOptions,
  type PoolEvent,
  type PoolMethods,
  type PoolOptions,
  type PoolStats,
  pool,
} from "./pool.js";
export type { Remote, RemoteFunction, RemoteSync } from "./remote.js";
export { type Api, type ServeOptions, serve } from "./serve.js";
export type { Times } from "./stats.js";
