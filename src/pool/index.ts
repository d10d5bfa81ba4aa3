// pamir/pool: functions of workers, called by name.
export { type Connection, type ConnectionMethods, connect, expose } from "./connect.js";
export { currentCall, type ServedCall } from "./current-call.js";
export type { PoolEvent } from "./events.js";
export { proxy } from "./lent.js";
export { move } from "./move.js";
export type { Functions } from "./names.js";
export type { PoolCallOptions, PoolOptions } from "./options.js";
export { type Pool, type PoolMethods, pool } from "./pool.js";
export type { Remote, RemoteFunction, RemoteSync } from "./remote.js";
export { type Api, type ServeOptions, serve } from "./serve.js";
export type { PoolStats, Times } from "./stats.js";
