// @ts-check
// What the programs of this folder have in common.

const MIB = 1024 ** 2;

/** MiB that this process holds. */
export const rss = () => process.memoryUsage.rss() / MIB;

/**
 * Prints milliseconds and MiB since the start, and ends this process.
 * @param {number} start @param {number} before MiB that the process held
 */
export function report(start, before) {
  const { user, system } = process.cpuUsage();
  console.log(
    JSON.stringify({ time: performance.now() - start, processor: (user + system) / 1000, rss: rss() - before }),
  );
  process.exit();
}
