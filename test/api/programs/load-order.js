// @ts-check
// Code that is loaded late comes to the first import() of it later than to all others, as it may. Calls keep their order.
import { register } from "node:module";
import { launch } from "pamir";

const HOOK = `
const seen = new Set();
export async function resolve(specifier, context, next) {
  const [, part] = /(extensions|make-geometry)/.exec(specifier) ?? [];
  if (part !== undefined && !seen.has(part)) {
    seen.add(part);
    await new Promise((done) => setTimeout(done, 200));
  }
  return next(specifier, context);
}`;
register(`data:text/javascript,${encodeURIComponent(HOOK)}`);

const job = await launch(null, { tasks: 1, join: true, contexts: 2, heapBytes: 2 ** 22 });
const contexts = [job.client.createContext(), job.client.createContext()];
const members = contexts.map(({ endpoint }) => endpoint);
const options = { timeout: 60_000 };
// The first of these four waits for its code, the others find it.
const [one, others, two, further] = await Promise.all(
  [0, 0, 1, 1].map((context) => job.client.createGeometry(members, { context: contexts[context], ...options })),
);
const sums = await Promise.all([
  one?.allreduce({ send: Int32Array.of(1), operation: "sum" }, options),
  two?.allreduce({ send: Int32Array.of(2), operation: "sum" }, options),
  others?.allreduce({ send: Int32Array.of(10), operation: "sum" }, options),
  further?.allreduce({ send: Int32Array.of(20), operation: "sum" }, options),
]);
console.log("sums", sums.map((sum) => sum?.[0]).join());
await Promise.all([
  one?.shareRegion(8, options),
  one?.createGrid({ size: [4], ...options }),
  two?.shareRegion(8, options),
  two?.createGrid({ size: [4], ...options }),
]);
console.log("made");
await job.terminate();
