// pamir/web: pages, workers and processes join the job of a process of Node, through WebSockets.

export { type Host, type HostOptions, host, type Invitation, type InviteOptions } from "./host.js";
export { type JoinOptions, join } from "./join.js";
