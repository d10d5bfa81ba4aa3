// Timers, in one place: a host's own timer takes at most 2^31 - 1 ms. With more, Node and browsers call back after 1 ms.

/** Longest delay of a host's timer, in milliseconds: 24.8 days. */
const TIMER_MAX = 0x7fffffff;

/**
 * Calls something once, after some milliseconds; what is returned prevents it. Any number is right: with Infinity, there is
 * no timer, and nothing keeps the thread running.
 * @param isHeld whether it keeps a thread of Node running until then
 */
export function after(milliseconds: number, call: () => void, isHeld = true): () => void {
  if (milliseconds > TIMER_MAX) return afterLong(milliseconds, call, isHeld);
  const timer = setTimeout(call, milliseconds);
  // A browser's timer is a number.
  if (!isHeld && typeof timer === "object") timer.unref();
  return () => clearTimeout(timer);
}

/** One timer behind the other. */
function afterLong(milliseconds: number, call: () => void, isHeld: boolean): () => void {
  if (milliseconds === Number.POSITIVE_INFINITY) return () => {};
  let stop = after(
    TIMER_MAX,
    () => {
      stop = after(milliseconds - TIMER_MAX, call, isHeld);
    },
    isHeld,
  );
  return () => stop();
}

/** Resolves after some milliseconds, any number of them. @param isHeld whether it keeps a thread of Node running */
export function pause(milliseconds: number, isHeld = true): Promise<void> {
  return new Promise((resolve) => {
    after(milliseconds, resolve, isHeld);
  });
}

/**
 * In Node: calls something each so many milliseconds, while something else keeps the thread running. Returns what ends it.
 * @param milliseconds at most 2^31 - 1
 */
export function every(milliseconds: number, call: () => void): () => void {
  const timer = setInterval(call, milliseconds);
  timer.unref();
  return () => clearInterval(timer);
}

/** In Node: a timer that does nothing but keep the thread running, at first, or not. */
export function hold(): { ref(): void; unref(): void } {
  return setInterval(() => {}, TIMER_MAX);
}
