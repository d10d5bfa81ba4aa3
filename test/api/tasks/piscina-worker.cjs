// A file of piscina's users: nothing in it names either pool.
module.exports = Object.assign(async (/** @type {{ a: number, b: number }} */ { a, b }) => a + b, {
  same: (/** @type {unknown} */ value) => value,
  fail: () => {
    throw new RangeError("on purpose");
  },
  never: () => new Promise(() => {}),
  exit: () => process.exit(3),
});
