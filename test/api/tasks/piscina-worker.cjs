// A file of piscina's users: nothing in it names either pool.
module.exports = async (/** @type {{ a: number, b: number }} */ { a, b }) => a + b;
module.exports.same = (/** @type {unknown} */ value) => value;
module.exports.fail = () => {
  throw new RangeError("on purpose");
};
module.exports.never = () => new Promise(() => {});
module.exports.exit = () => process.exit(3);
