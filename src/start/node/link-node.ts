// Makes a node whose frames go over a link, through sessions. The node's host gives it a clock, an alarm and randomness, so
// that it runs in a simulation as well.
import { contextOf, type Endpoint, endpointOf, taskOf } from "../../core/endpoint.js";
import type { Kernel, Memory, PacketKernel } from "../../kernel/kernel.js";
import type { Address, Link } from "../../link/link.js";
import type { MemoryMap } from "../../memory/map.js";
import { markEngineDead } from "../../node/liveness.js";
import { type Loss, Sessions } from "../../session/sessions.js";
import type { Arena } from "../../session/store/arena.js";
import type { KeySchedule } from "../../session/wire/key-schedule.js";
import { Agent } from "../../transport/net/agent.js";
import { SessionPipe } from "../../transport/net/session-pipe.js";

/** What a host does for its node. */
export interface LinkNodeHost {
  /** Microseconds. */
  now(): number;
  /**
   * Calls `call` at a time, or soon after it. The node asks anew only for an earlier time, and ignores calls at other times:
   * the host may forget the previous one.
   */
  at(microseconds: number, call: () => void): void;
  /** Calls `call` once the link has delivered all packets that have come together; not there: at once. */
  soon?(call: () => void): void;
  /** Returns any u32. With a key schedule, the source must be cryptographic. */
  random(): number;
  /**
   * A node is lost: its tasks have ended. If the other node has given this node up, this node is closed: it has no way to other
   * nodes.
   * @param refused why it refuses this node: REFUSED_NODE, REFUSED_NAME; else 0
   */
  onLost?(node: number, why: Loss, refused: number): void;
  /** Whether the process of a task of a lost node is gone. False (the default): the process may go on. */
  hasProcessEnded?(task: number): boolean;
  /** A node did not answer, so many times in a row. The host may know that the node is gone: see LinkNode.lose(). */
  onUnanswered?(node: number, attempts: number): void;
}

/** The parts of a node. */
export interface LinkNodeParts {
  /** The node's memory, whose kernels never see a packet. */
  readonly kernel: Kernel;
  readonly memory: Memory;
  readonly map: MemoryMap;
  /** Memory and kernels for packets: packets from strangers never come into the node's memory. */
  readonly packets: { readonly kernel: PacketKernel; readonly memory: Memory; readonly arena: Arena };
  readonly link: Link;
  readonly node: number;
  /** How often this node has been started. */
  readonly epoch: number;
  /** Nodes of the job, nodes that may come later included. */
  readonly nodes: number;
  /** Tasks of each node with which the job begins: node n has the tasks from n times this number on. */
  readonly tasksPerNode: number;
  /** Tasks with which the job begins (default: all). Each later one is a node of its own. */
  readonly world?: number | undefined;
  /** The job's fingerprint. */
  readonly job: number;
  /** Undefined: the node is mobile (see SessionsOptions). */
  readonly addressOf: (node: number) => Address | undefined;
  readonly keySchedule?: KeySchedule | undefined;
  readonly initiators?: number | undefined;
  readonly responders?: number | undefined;
  readonly txQueueBytes?: number | undefined;
  /** Microseconds: see SessionsOptions. */
  readonly silence?: number | undefined;
  /** Whether the agent works in each advance() of the node's tasks (default), or has a thread of its own. */
  readonly isInline?: boolean | undefined;
}

export class LinkNode {
  readonly agent: Agent;
  readonly sessions: Sessions;
  readonly pipe: SessionPipe;
  readonly #host: LinkNodeHost;
  readonly #link: Link;
  readonly #firstOf: (node: number) => number;
  /** Tasks of other nodes of whose ends the host has told. */
  readonly #gone = new Set<number>();
  #alarm = Number.POSITIVE_INFINITY;
  readonly #soon: LinkNodeHost["soon"];
  #isBatch = false;
  #onSettled: (() => void) | undefined;
  /** Whether the node neither sends nor receives; the host sets this flag. */
  isDown = false;

  constructor(parts: LinkNodeParts, host: LinkNodeHost) {
    const { kernel, memory, map, packets, link, node, nodes, tasksPerNode } = parts;
    const { contexts, jobTasks } = map;
    const { world = jobTasks } = parts;
    const firstNodes = Math.ceil(world / tasksPerNode);
    this.#host = host;
    this.#link = link;
    this.#soon = parts.isInline === false ? host.soon?.bind(host) : undefined;
    const nodeOfTask = (task: number): number => {
      if (task < world) return Math.floor(task / tasksPerNode);
      return task < jobTasks ? firstNodes + task - world : -1;
    };
    const firstOf = (other: number): number => (other < firstNodes ? other * tasksPerNode : world + other - firstNodes);
    const nodeOf = (endpoint: Endpoint): number => (contextOf(endpoint) < contexts ? nodeOfTask(taskOf(endpoint)) : -1);
    this.#firstOf = firstOf;
    this.sessions = new Sessions({
      ...packets,
      link,
      now: () => Math.floor(host.now()),
      random: () => host.random(),
      node,
      epoch: parts.epoch,
      nodes,
      nodeOf,
      job: parts.job,
      keySchedule: parts.keySchedule,
      addressOf: parts.addressOf,
      initiators: parts.initiators,
      responders: parts.responders,
      txQueueBytes: parts.txQueueBytes,
      silence: parts.silence,
      soon: host.soon && ((call) => host.soon?.(call)),
      onUnanswered: (other, attempts) => host.onUnanswered?.(other, attempts),
      deliver: (segment) => this.pipe.take(segment),
      onLost: (lost, why, refused) => {
        for (let task = firstOf(lost); nodeOfTask(task) === lost; task++) this.#lost(task, contexts);
        // For the other node, the tasks of this node have ended. So they must have ended for all nodes.
        if (why === "givenUp") {
          this.close();
          markEngineDead(kernel, map);
        }
        host.onLost?.(lost, why, refused);
      },
    });
    this.pipe = new SessionPipe(
      { node, first: firstOf(node), nodeOf: nodeOfTask, firstOf },
      packets.memory,
      this.sessions,
      map.heapBytes,
      {
        now: () => host.now(),
        advance: () => this.#advance(),
        // The probe of a node that has moved finds it, before nodes that send to its old address give it up.
        probeMax: parts.silence && parts.silence / 2,
      },
    );
    this.#listen(link);
    this.agent = new Agent(kernel, memory, map, this.pipe, parts.isInline ?? true);
    this.agent.receive = link.receive;
  }

  #listen(link: Link): void {
    link.onPacket = (from, packet) => {
      if (this.isDown) return false;
      const { counts } = this.sessions;
      const { taken } = counts;
      this.sessions.receive(from, packet);
      const isTaken = counts.taken > taken;
      this.pipe.flush();
      this.#beginBatch();
      return isTaken;
    };
    link.onRoom = () => {
      this.sessions.resume();
      this.pipe.flush();
    };
    link.onMove = () => {
      if (this.isDown) return;
      this.pipe.probe();
      this.pipe.flush();
    };
  }

  /** A task of a lost node: its streams are forgotten, and it has ended for the tasks of this node. */
  #lost(task: number, contexts: number): void {
    for (let context = 0; context < contexts; context++) {
      const endpoint = endpointOf(task, context);
      this.sessions.forgetTarget(endpoint);
      this.sessions.streams.forget(endpoint);
    }
    this.agent.ended(task, false, this.#gone.has(task) || this.#host.hasProcessEnded?.(task) === true);
  }

  /**
   * The agent has left. Calls back once, when other nodes have acknowledged all that this node has sent, and have ended
   * their sessions to it. Then nothing is lost by close().
   */
  settle(call: () => void): void {
    this.#onSettled = call;
    this.#advance();
  }

  /** This node comes later than other nodes: makes itself known to one of them. */
  greet(node: number): void {
    this.agent.greet(this.#firstOf(node));
    this.pipe.flush();
  }

  /** Drops unacknowledged data for a node that is not there any more. */
  abandon(node: number): void {
    this.pipe.abandon(node, true);
    this.#advance();
  }

  /**
   * Another node is lost: its tasks count as ended at once, not only after the silence.
   * @param isCertain whether the process of its first task has ended: the other tasks may go on without a link
   */
  lose(node: number, isCertain = false): void {
    if (this.isDown) return;
    // Also if the node was given up before, for its silence.
    if (isCertain) this.confirm(this.#firstOf(node));
    this.sessions.giveUp(node);
    this.pipe.flush();
    this.#advance();
  }

  /**
   * A task of another node has ended for certain: it does not go on cut off. The report may come before or after the end of the
   * node.
   */
  confirm(task: number): void {
    this.#gone.add(task);
    this.agent.confirm(task);
  }

  /** Ends the node and its link: it neither sends nor receives any more. Data that the node has not sent is lost. */
  close(): void {
    this.isDown = true;
    this.#link.close();
  }

  /**
   * A packet has come. Its ring is sent at once: held back, it would come 10 µs later. If the agent has a thread of its own,
   * the packets that come together with this one share a second ring, whose time the host chooses.
   */
  #beginBatch(): void {
    if (this.#isBatch || this.#soon === undefined) return;
    this.#isBatch = true;
    this.agent.beginBatch();
    this.#soon(() => {
      this.#isBatch = false;
      this.agent.endBatch();
    });
  }

  /** Calls back if the node has settled. @returns when to look again, in microseconds */
  #settleBy(): number {
    const call = this.#onSettled;
    if (call === undefined || this.pipe.inUse.frames > 0) return Number.POSITIVE_INFINITY;
    const next = this.sessions.end();
    if (next !== Number.NEGATIVE_INFINITY) return next;
    this.#onSettled = undefined;
    call();
    return Number.POSITIVE_INFINITY;
  }

  /** Advances the sessions now, and at their next deadline. */
  #advance(): void {
    if (this.isDown) return;
    const next = Math.min(this.sessions.advance(), this.pipe.due, this.#settleBy());
    if (next >= this.#alarm || next === Number.POSITIVE_INFINITY) return;
    const time = Math.max(Math.ceil(next), Math.floor(this.#host.now()) + 1);
    this.#alarm = time;
    this.#host.at(time, () => {
      if (this.#alarm !== time) return;
      this.#alarm = Number.POSITIVE_INFINITY;
      if (!this.isDown) this.pipe.flush();
    });
  }
}
