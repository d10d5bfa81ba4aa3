// @ts-check
// A barrier and two allreduces of argv[2] members, one of them in place, again and again. Prints the bytes of garbage of each member in each round. A
// process of its own: the code that other tests have run decides what V8 optimizes.
import { launch } from "pamir";

const ROUNDS = 500;
const size = Number(process.argv[2]);
const job = await launch(null, { tasks: 1, join: true, contexts: size, heapBytes: 2 ** 24 });
const { client } = job;
const contexts = Array.from({ length: size }, () => client.createContext());
const endpoints = contexts.map(({ endpoint }) => endpoint);
const geometries = await Promise.all(contexts.map((context) => client.createGeometry(endpoints, { context })));
let done = 0;
const onDone = () => {
  done++;
};
const members = geometries.map((geometry) => ({
  geometry,
  barrier: { onDone },
  sum: /** @type {const} */ ({ onDone, send: new Float64Array(1), receive: new Float64Array(1), operation: "sum" }),
  inPlace: /** @type {const} */ ({ onDone, send: null, receive: new Float64Array(1), operation: "max" }),
}));

/** Bytes of some rounds. */
function stretch() {
  const before = process.memoryUsage().heapUsed;
  for (let round = 0; round < ROUNDS; round++) {
    for (const { geometry, barrier, sum, inPlace } of members) {
      geometry.collective("barrier", barrier);
      geometry.collective("allreduce", sum);
      geometry.collective("allreduce", inPlace);
    }
    for (done = 0; done < 3 * size; ) for (const context of contexts) context.advance();
  }
  return process.memoryUsage().heapUsed - before;
}

for (let count = 0; count < 20; count++) stretch();
// The median, since the collector runs now and then.
const made = Array.from({ length: 9 }, stretch).sort((one, other) => one - other);
console.log(Number(made[4]) / ROUNDS / size);
await job.terminate();
