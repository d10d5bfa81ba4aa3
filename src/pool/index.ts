// pamir/pool: functions of workers, called by name.
export { type Connection, type ConnectionMethods, connect, expose } from "./connect.js";
export { currentCall, type ServedCall } from "./exchange/current-call.js";
export { proxy } from "./exchange/lent.js";
export { move } from "./exchange/move.js";
export type { Functions } from "./names.js";
export type { PoolCallOptions, PoolOptions } from "./options.js";
export { type Pool, type PoolMethods, pool } from "./pool.js";
export type { Remote, RemoteFunction, RemoteSync } from "./remote.js";
export { type Api, type ServeOptions, serve } from "./serve.js";
export type { PoolEvent } from "./workers/events.js";
export type { PoolStats, Times } from "./workers/stats.js";
