// The nodes of a job whose processes share no memory, as the job's monitor sees them. The monitor answers the requests by which
// nodes find each other, and tells the nodes of processes that have ended.
import { LATER_BEGUN, type Later } from "../../bootstrap/later.js";
import type { NodePort } from "../../support/host.js";
import { encodeText } from "../../support/text.js";
import { type BootstrapAnswer, type BootstrapRequest, BootstrapServer } from "../join/link-bootstrap.js";

/** Data common to the nodes of a job. */
export interface LinkSetup {
  /** Tasks with which the job begins. Each of these tasks is a node, as is each later task. */
  readonly size: number;
  readonly later: Later;
  /** The job key, which is on no command line and in no environment. */
  readonly key: Uint8Array;
  /** Options of the nodes' memories. */
  readonly options: object;
  /** The launching program's command line, if `pamir top` may see the job. */
  readonly program: readonly string[] | undefined;
  /** A channel to the launching thread, if that is a task. */
  readonly caller: NodePort | undefined;
}

/** To a process, or to the agent of the launching thread: a task has ended for certain, and its node has lost its link. */
export type NodeEnd = { readonly gone: number } | { readonly lost: number };
type News = BootstrapAnswer | NodeEnd;

export class LinkedNodes {
  readonly #server: BootstrapServer;
  readonly #size: number;
  readonly #listeners = new Set<(news: News) => void>();
  /** Nodes whose processes have ended. */
  readonly ended = new Set<number>();

  constructor({ size, caller }: LinkSetup) {
    this.#server = new BootstrapServer(size);
    this.#size = size;
    if (caller === undefined) return;
    const tell = (news: News): void => caller.postMessage(news);
    caller.on("message", (request: BootstrapRequest) => this.take(request, tell));
    caller.unref();
    this.add(tell);
  }

  /** A task is about to begin. Numbers rise. */
  begin(task: number): void {
    if (task >= this.#size) this.#server.store(LATER_BEGUN, encodeText(`${task + 1 - this.#size}`));
  }

  /** A process begins. @param tell sends it news @returns a function to call when the process has ended */
  add(tell: (news: News) => void): () => void {
    this.#listeners.add(tell);
    return () => void this.#listeners.delete(tell);
  }

  take(request: BootstrapRequest, tell: (news: News) => void): void {
    this.#server.take(request, tell);
  }

  /**
   * A process has ended. @param why the process had nodes that have not left; undefined: its nodes have told the other nodes
   * everything
   */
  over(nodes: readonly number[], why: string | undefined): void {
    for (const node of nodes) this.ended.add(node);
    if (why === undefined) return;
    this.#server.fail(why);
    for (const tell of this.#listeners) {
      // A node has one task, and both have the same number.
      for (const gone of nodes) tell({ gone });
      for (const lost of nodes) tell({ lost });
    }
  }
}
