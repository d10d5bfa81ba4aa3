// The life of an agent on a thread of its own: turns while there is work, then a spin, then sleep on its bell. A link's
// events come by the thread's event loop, so the agent never blocks: it sleeps by Atomics.waitAsync, or
// by a pipe where processes share the memory.
import { JOB_CORES_OFFSET, TASK_INTERRUPT_OFFSET } from "../../../assembly/layout.js";
import { bellWaitAsync } from "../../kernel/atomics.js";
import type { Kernel, Memory } from "../../kernel/kernel.js";
import { engineSlot, type MemoryMap } from "../../memory/map.js";
import { RESTLESS_MS } from "../../node/park.js";
import { mayAgentSpin, Spins } from "../../node/spins.js";
import { type Clock, systemClock } from "../../support/clock.js";
import { nextTurn } from "../../support/host.js";
import { Keepalive } from "../../support/keepalive.js";
import { after } from "../../support/timers.js";
import type { Agent } from "../../transport/net/agent.js";

/**
 * Milliseconds of spinning before the thread sleeps: the time of a datagram to another process and back. With 0.05, a context's
 * default, half of a ping-pong took 115 µs in the median and 160 µs in the mean; with this value, 72 µs and 110 µs.
 */
const SPIN_MS = 0.1;
/** Milliseconds after which a busy agent gives the event loop a turn, which brings frames. */
const LOOP_MS = 0.2;

/** Serves a node's tasks until an interrupt of the engine's slot, or until all tasks have left. */
export async function serveNode(
  agent: Agent,
  kernel: Kernel,
  memory: Memory,
  map: MemoryMap,
  clock: Clock = systemClock,
): Promise<void> {
  const { words, futex } = memory;
  const slot = engineSlot(map);
  const spins = new Spins();
  const keepalive = new Keepalive();
  const bell = futex?.doorbell?.(slot);
  let hasCome = (): void => {};
  agent.serve(map.tasks, () => hasCome());
  // plain: written before any task.
  const cores = words[(map.job + JOB_CORES_OFFSET) >>> 2] as number;

  const maySpin = (): boolean => mayAgentSpin(kernel, map.job, map.locals, cores);

  function isAsked(): boolean {
    // SYNC notice (interrupt): pairs with interruptTask().
    return agent.hasLeft || kernel.loadWord(slot + TASK_INTERRUPT_OFFSET) !== 0;
  }

  /** Turns for a while. Returns whether the last turn still found work. */
  function work(): boolean {
    const end = clock.now() + LOOP_MS;
    let isBusy = agent.turn();
    while (isBusy && clock.now() < end) isBusy = agent.turn();
    return isBusy;
  }

  /** Spins until there is work, or until the spin is over; a turn that finds work does it. Returns whether there was work. */
  function spin(): boolean {
    if (!maySpin() || !spins.pays(clock)) return false;
    const end = clock.now() + SPIN_MS;
    let now = 0;
    do {
      const hasReceived = agent.receive?.() === true;
      if (agent.turn() || hasReceived) {
        spins.won();
        return true;
      }
      now = clock.now();
    } while (maySpin() && now < end);
    spins.lost(now, false);
    return false;
  }

  /** Sleeps until the bell rings, or a frame comes. */
  async function sleep(): Promise<void> {
    const seen = kernel.bellArm(slot);
    // Arms the bell, then takes one more turn: a ring from here on finds the flag up.
    if (!agent.turn() && !agent.hasWork && !isAsked()) {
      const came = new Promise<void>((resolve) => {
        hasCome = resolve;
      });
      const forget = agent.isRestless ? after(RESTLESS_MS, () => kernel.ring(slot)) : undefined;
      await Promise.race([bell?.wait(seen) ?? bellWaitAsync(memory, slot, seen), came]);
      forget?.();
    }
    kernel.bellDisarm(slot);
  }

  keepalive.begin();
  while (!isAsked()) {
    if (work() || spin()) await nextTurn();
    else await sleep();
  }
  agent.end();
  keepalive.end();
  bell?.close();
  futex?.close();
}
