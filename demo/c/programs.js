// @ts-check
// The programs that the page offers. Their binaries are those of test/c/built, which `node scripts/build-c.mjs` makes.

/**
 * @typedef {object} Program
 * @property {string} name of its source, without ".c"
 * @property {string} folder where its source stands
 * @property {string} title
 * @property {string} args that it is given at first
 * @property {string} hint about its arguments; empty: it has none
 */

/** @type {readonly Program[]} */
export const PROGRAMS = [
  { name: "circle", folder: "examples/c", title: "Pi: sums by MPI_Reduce", args: "200000000", hint: "how many strips" },
  { name: "hello", folder: "test/c/programs", title: "Hello: MPI_Allreduce", args: "", hint: "" },
  { name: "token", folder: "demo/c/programs", title: "A ring: a token goes round", args: "", hint: "" },
  { name: "jacobi", folder: "examples/c", title: "Heat: a stencil, rows to neighbors", args: "", hint: "" },
  {
    name: "faults",
    folder: "demo/c/programs",
    title: "Faults: a rank goes wrong",
    args: "abort",
    hint: "exit, abort, MPI_Abort, trap, rank, loop, lines, long or flood",
  },
];

/** What a program's own command line is. @param {Program} program */
export function commandOf({ name, args }) {
  return `npx pamir cc -O2 ${name}.c -o ${name}.wasm && npx pamir run -n 4 ${`${name}.wasm ${args}`.trim()}`;
}
