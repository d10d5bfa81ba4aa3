// Tasks that share no memory, all on this thread; their frames wait in lists of the test's, which says when one arrives.

import { taskOf } from "../../src/core/endpoint.js";
import type { KernelName } from "../../src/core/kernel-name.js";
import { selectKernel } from "../../src/kernel/select.js";
import type { Limits } from "../../src/memory/map.js";
import { nodeLimits } from "../../src/node/limits.js";
import { makeJobMemory } from "../../src/node/memory.js";
import { makeNodeTask } from "../../src/start/node/private-node.js";
import { Agent } from "../../src/transport/net/agent.js";
import type { Frame, OnFrame, Pipe } from "../../src/transport/net/frames.js";
import type { PrivateJob, PrivateTask } from "./ports-job.js";
import { copyOfFrame, WholeFrames } from "./whole-frames.js";

/** A frame, from a context to a context. */
export interface Posted {
  readonly from: number;
  readonly to: number;
  readonly frame: Frame;
}

/** Carries frames in order, between all tasks. */
class Post extends WholeFrames implements Pipe {
  onFrame: OnFrame = () => false;
  readonly failureDetection = true;
  readonly talkedTo = new Set<number>();
  readonly #heard = new Set<number>();
  readonly #post: (posted: Posted) => void;

  constructor(post: (posted: Posted) => void) {
    super();
    this.#post = post;
  }

  send(from: number, to: number, frame: Frame): void {
    this.talkedTo.add(taskOf(to));
    this.#post({ from, to, frame: copyOfFrame(frame) });
  }

  take({ from, to, frame }: Posted): boolean {
    this.#heard.add(taskOf(from));
    return this.onFrame(from, to, frame);
  }

  firstTaskOf(task: number): number {
    return task;
  }

  receivesFrom(task: number): boolean {
    return this.#heard.has(task);
  }

  drop(task: number): boolean {
    this.talkedTo.delete(task);
    return true;
  }
}

export interface PostedJob extends PrivateJob {
  /** What is under way. */
  readonly under: Posted[];
  /** What has arrived. */
  readonly arrived: Posted[];
  /** What arrived, and was no frame. */
  readonly wrong: Posted[];
  /** The first frame that is under way arrives; false: there is none. */
  deliver(): boolean;
  /** Somebody says what he likes. */
  forge(posted: Posted): boolean;
}

export function postedJob(limits: Limits, kernels: readonly KernelName[]): PostedJob {
  const tasks: PrivateTask[] = [];
  const posts: Post[] = [];
  const gone = new Set<number>();
  const [under, arrived, wrong]: Posted[][] = [[], [], []] as [Posted[], Posted[], Posted[]];
  const end = (ended: number, hasLeft: boolean): void => {
    if (!hasLeft) gone.add(ended);
    for (const [task, { agent }] of tasks.entries()) if (task !== ended) agent.ended(ended, hasLeft);
  };
  for (let task = 0; task < limits.tasks; task++) {
    const kernel = kernels[task % kernels.length] as KernelName;
    const { map, shared, memory } = makeJobMemory(
      { limits: nodeLimits(limits, 1, limits.tasks - 1), isFixed: true, base: 0, first: task },
      kernel === "wasm",
    );
    const inner = selectKernel(kernel, shared, memory);
    const post = new Post((posted) => void under.push(posted));
    const agent = new Agent(inner, memory, map, post, true);
    const parts = { kernel: inner, memory, map, task: 0, whyPrivate: "a test", onLeave: () => end(task, true) };
    tasks.push({
      ...makeNodeTask(parts, agent),
      agent,
      map,
      free: () => inner.heapFreePages(map.job),
    });
    posts.push(post);
  }
  function forge(posted: Posted): boolean {
    return (posts[taskOf(posted.to)] as Post).take(posted);
  }
  function deliver(): boolean {
    const first = under.shift();
    if (first === undefined) return false;
    if (gone.has(taskOf(first.from)) || gone.has(taskOf(first.to))) return true;
    arrived.push(first);
    if (!forge(first)) wrong.push(first);
    return true;
  }
  async function turn(): Promise<void> {
    await undefined; // what was sent goes out
    while (deliver());
  }
  return { tasks, under, arrived, wrong, turn, deliver, forge, end: (task) => end(task, false) };
}
