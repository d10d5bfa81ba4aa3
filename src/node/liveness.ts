// Liveness: which tasks, contexts and engine threads have ended, how the others learn of it, and when memory may be used
// again. This is quiescent-state-based reclamation: a change raises each task's notice; a context that has acknowledged
// that notice holds no reference from before it.
import * as L from "../../assembly/layout.js";
import { seqDelta } from "../../assembly/seq.js";
import { taskOf } from "../core/endpoint.js";
import { TaskErrors } from "../core/task-errors.js";
import type { Kernel, Memory } from "../kernel/kernel.js";
import { contextBlock, engineSlot, isClosed, type MemoryMap, ordinalOf, taskSlot } from "../memory/map.js";
import type { GracePeriod, GracePeriods } from "../memory/regions.js";
import { endpointCount, taskAt } from "./address.js";

/** The errors of the node's dead tasks, behind the map. */
export function taskErrorsIn({ buffer, words }: Memory, { end, endpointsBase }: MemoryMap): TaskErrors {
  // plain: the node's own tasks have had their endpoints from the start.
  return new TaskErrors(buffer, end, taskOf(words[endpointsBase >>> 2] as number));
}

/** The kernel functions that an announcement calls. */
export type Announcing = "loadWord" | "storeWord" | "addWord" | "ringAlways";
type Sync = Pick<Kernel, "loadWord" | "addWord" | "ring">;

/**
 * Marks a task as dead, releases the locks and bits that it held, and announces its end. The task's thread no longer runs;
 * any other thread may call this.
 */
export function markDead(
  kernel: Pick<Kernel, Announcing | "exchangeIf" | "clearBits">,
  map: MemoryMap,
  task: number,
): void {
  // SYNC task-state (dead): pairs with the looks at whether a task has ended.
  kernel.storeWord(taskSlot(map, task) + L.TASK_STATE_OFFSET, L.TASK_DEAD);
  // SYNC heap-lock (mend): its holder is gone; the table is whole after any of its stores.
  kernel.exchangeIf(map.job + L.JOB_HEAP_LOCK_OFFSET, task + 1, 0);
  // The task may have bound a slot and not counted that. So the agent looks at the slots before another thread binds one.
  kernel.addWord(map.job + L.JOB_BINDS_OFFSET, 1); // SYNC endpoint (count)
  kernel.exchangeIf(map.job + L.JOB_BIND_LOCK_OFFSET, task + 1, 0); // SYNC bind-lock (mend)
  kernel.clearBits(map.job + L.JOB_SPINNING_OFFSET + ((task >>> 5) << 2), 1 << (task & 31));
  announceEnds(kernel, map, [task]);
}

/**
 * Marks the engine thread as dead. Each context then ends what that thread was doing for it, and is its own engine from
 * then on. An engine thread that had not begun was doing nothing.
 */
export function markEngineDead(kernel: Pick<Kernel, Announcing | "exchangeIf">, map: MemoryMap): void {
  const agent = engineSlot(map) + L.TASK_STATE_OFFSET;
  // SYNC task-state (dead): pairs with hasEngineThread(), with serve(), which then does not begin, and with bind().
  if (kernel.exchangeIf(agent, L.TASK_ABSENT, L.TASK_CLOSED) === L.TASK_UP) kernel.storeWord(agent, L.TASK_DEAD);
  const peers = markUnreachable(kernel, map);
  announceEnds(kernel, map, peers);
}

/**
 * Without an agent, no message reaches the tasks of other nodes: marks them as dead, and releases the heap's lock that the
 * agent took for one of them. Returns the slots of those marked.
 */
function markUnreachable(kernel: Pick<Kernel, "exchangeIf">, map: MemoryMap): number[] {
  const peers: number[] = [];
  for (let slot = map.locals; slot < map.tasks; slot++) {
    kernel.exchangeIf(map.job + L.JOB_HEAP_LOCK_OFFSET, slot + 1, 0); // SYNC heap-lock (mend)
    const peer = taskSlot(map, slot) + L.TASK_STATE_OFFSET;
    // SYNC task-state (peer): after the agent's state, and bind() looks at that after its store.
    if (kernel.exchangeIf(peer, L.TASK_UP, L.TASK_DEAD) === L.TASK_UP) peers.push(slot);
  }
  return peers;
}

/**
 * Announces the end of tasks that are marked as ended, in two rounds, with TASK.told set between them. A context that has
 * acknowledged the first round alone must not free anything of a dead task. The second round makes it look again.
 */
export function announceEnds(kernel: Pick<Kernel, Announcing>, map: MemoryMap, ended: readonly number[]): void {
  notifyTasks(kernel, map);
  // SYNC quiescence (told): pairs with mayBeInUse().
  for (const task of ended) kernel.storeWord(taskSlot(map, task) + L.TASK_TOLD_OFFSET, 1);
  notifyTasks(kernel, map);
}

/** Marks a context of a task that goes on as closed, and announces it. One round is enough: its lanes alone are freed. */
export function announceClose(kernel: Pick<Kernel, Announcing>, map: MemoryMap, ordinal: number): void {
  // SYNC context-state (closed): pairs with isClosed().
  kernel.storeWord(contextBlock(map, ordinal) + L.CONTEXT_STATE_OFFSET, L.CONTEXT_CLOSED);
  notifyTasks(kernel, map);
}

/** Whether a task has closed its client. */
export function hasLeft(kernel: Pick<Kernel, "loadWord">, map: MemoryMap, task: number): boolean {
  return kernel.loadWord(taskSlot(map, task) + L.TASK_STATE_OFFSET) === L.TASK_CLOSED;
}

/** Ends a task's current wait, or its next one. */
export function interruptTask(kernel: Pick<Kernel, "addWord" | "ringAlways">, map: MemoryMap, task: number): void {
  const slot = taskSlot(map, task);
  kernel.addWord(slot + L.TASK_INTERRUPT_OFFSET, 1);
  kernel.addWord(slot + L.TASK_NOTICE_OFFSET, 1); // SYNC notice (tell)
  kernel.ringAlways(slot);
}

/** Announces that the job has more tasks, or that the sleepers of this node are to look again for another reason. */
export function announceStart(kernel: Pick<Kernel, Announcing>, map: MemoryMap): void {
  notifyTasks(kernel, map);
}

/**
 * Raises the notice of every own task and of the engine thread, and wakes them, armed or not: a task may have died between
 * taking a sleeper's flag down and ringing. Each then looks for what has changed.
 */
function notifyTasks(kernel: Pick<Kernel, Announcing>, map: MemoryMap): void {
  const slots = Array.from({ length: map.locals }, (_, task) => taskSlot(map, task));
  if (map.engine) slots.push(engineSlot(map));
  for (const slot of slots) {
    kernel.addWord(slot + L.TASK_NOTICE_OFFSET, 1); // SYNC notice (tell)
    kernel.ringAlways(slot);
  }
}

/** Whether a context has acknowledged a notice, has ended, or is not open yet: it holds nothing from before the notice. */
export function hasAcknowledged(kernel: Kernel, map: MemoryMap, ordinal: number, notice: number): boolean {
  if (kernel.loadWord(taskSlot(map, taskAt(map, ordinal)) + L.TASK_STATE_OFFSET) >= L.TASK_CLOSED) return true;
  const block = contextBlock(map, ordinal);
  if (kernel.loadWord(block + L.CONTEXT_STATE_OFFSET) !== L.CONTEXT_OPEN) return true;
  return seqDelta(kernel.loadWord(block + L.CONTEXT_NOTICE_SEEN_OFFSET), notice) >= 0;
}

/** Whether a context of a live task has a lane of this dead task in its table, or may be using one of its regions. */
export function mayBeInUse(kernel: Kernel, map: MemoryMap, task: number): boolean {
  // SYNC quiescence (told): pairs with announceEnds(). Before that, a context may have acknowledged every notice without
  // knowing of this task's end.
  if (kernel.loadWord(taskSlot(map, task) + L.TASK_TOLD_OFFSET) === 0) return true;
  // Once the engine thread has seen all notices, it notifies every task.
  if (!hasEngineSeenAll(kernel, map)) return true;
  for (let target = 0; target < endpointCount(map); target++) {
    const slot = taskSlot(map, taskAt(map, target));
    if (kernel.loadWord(slot + L.TASK_STATE_OFFSET) >= L.TASK_CLOSED) continue;
    // The table of a context that has closed is read by no thread.
    if (isClosed(kernel, map, target)) continue;
    const block = contextBlock(map, target);
    const isOpen = kernel.loadWord(block + L.CONTEXT_STATE_OFFSET) === L.CONTEXT_OPEN;
    // SYNC quiescence (look): pairs with acknowledgeNotice(); the notice was counted up after the task had ended.
    if (
      isOpen &&
      kernel.loadWord(block + L.CONTEXT_NOTICE_SEEN_OFFSET) !== kernel.loadWord(slot + L.TASK_NOTICE_OFFSET)
    )
      return true;
    for (let context = 0; context < map.contexts; context++) {
      if (kernel.laneOf(block, ordinalOf(map, task, context)) !== 0) return true;
    }
  }
  return false;
}

/** The grace periods of the whole node: every context and the engine thread pass a quiescent state in each. */
export function gracePeriods(kernel: Kernel, map: MemoryMap): GracePeriods {
  const { locals, contexts } = map;
  return {
    begin() {
      // SYNC notice (close): the change is made before each notice; a context that has seen the notice finds it made.
      const notices = Array.from({ length: locals }, (_, task) => {
        const slot = taskSlot(map, task);
        const notice = (kernel.addWord(slot + L.TASK_NOTICE_OFFSET, 1) + 1) >>> 0;
        kernel.ring(slot);
        return notice;
      });
      return { notices, engineNotice: notifyEngine(kernel, map) };
    },
    isOver({ notices, engineNotice }: GracePeriod) {
      if (!hasEngineSeen(kernel, map, engineNotice)) return false;
      return notices.every((notice, task) => {
        for (let context = 0; context < contexts; context++) {
          if (!hasAcknowledged(kernel, map, ordinalOf(map, task, context), notice)) return false;
        }
        return true;
      });
    },
  };
}

/** Whether the job has an engine thread that has not ended. One that has not begun yet is about to. */
export function hasEngineThread(kernel: Pick<Kernel, "loadWord">, map: MemoryMap): boolean {
  // SYNC task-state (engine): pairs with the monitor's store.
  return map.engine && kernel.loadWord(engineSlot(map) + L.TASK_STATE_OFFSET) < L.TASK_CLOSED;
}

/** Whether the engine is an agent without a thread: it works within each advance(). */
export function isEngineInline(kernel: Pick<Kernel, "loadWord">, map: MemoryMap): boolean {
  return !map.engine || kernel.loadWord(engineSlot(map) + L.TASK_INLINE_OFFSET) !== 0;
}

/** Once the engine thread has ended: whether it may have done anything. If its worker was never loaded, it has not. */
export function hadEngineBegun(kernel: Pick<Kernel, "loadWord">, map: MemoryMap): boolean {
  return kernel.loadWord(engineSlot(map) + L.TASK_STATE_OFFSET) === L.TASK_DEAD;
}

/** Tells the engine thread, if there is one, that something was closed. @returns the notice to ask hasEngineSeen() for */
export function notifyEngine(kernel: Sync, map: MemoryMap): number {
  if (!map.engine) return 0;
  const slot = engineSlot(map);
  // SYNC notice (tell): pairs with acknowledge() of assembly/serve.ts.
  const notice = (kernel.addWord(slot + L.TASK_NOTICE_OFFSET, 1) + 1) >>> 0;
  kernel.ring(slot);
  return notice;
}

/** Whether the engine thread uses nothing any more that was closed before a notice; true if there is no engine thread. */
export function hasEngineSeen(kernel: Sync, map: MemoryMap, notice: number): boolean {
  if (!hasEngineThread(kernel, map)) return true;
  // SYNC quiescence (seen): pairs with acknowledge() of assembly/serve.ts.
  return seqDelta(kernel.loadWord(engineSlot(map) + L.TASK_SEEN_OFFSET), notice) >= 0;
}

/** Whether the engine thread has seen every notice so far. */
export function hasEngineSeenAll(kernel: Sync, map: MemoryMap): boolean {
  return hasEngineSeen(kernel, map, map.engine ? kernel.loadWord(engineSlot(map) + L.TASK_NOTICE_OFFSET) : 0);
}
