// As piscina-worker.cjs, as a module.
export default async (/** @type {{ a: number, b: number }} */ { a, b }) => a * b;
export const twice = Promise.resolve((/** @type {number} */ n) => 2 * n);
export const notAFunction = 7;
