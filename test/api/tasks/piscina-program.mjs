// A program with several pools, one of which it leaves open. It prints all of its lines, and ends.
import { Piscina } from "pamir/piscina";

const filename = new URL("./piscina-worker.cjs", import.meta.url).href;
const make = () => new Piscina({ filename, minThreads: 1, maxThreads: 2 });
const [first, second, unused] = [make(), make(), make()];
console.log(await first.run({ a: 1, b: 2 }), await second.run("printed", { name: "print" }));
for (let i = 0; i < 300; i++) await second.run(i, { name: "same" });
await first.close();
console.log("first closed");
await Promise.all([second.close(), unused.close()]);
console.log("all closed");
const left = make();
console.log(await left.run({ a: 3, b: 4 }));
