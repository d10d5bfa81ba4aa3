// @ts-check
// A program for `pamir run`: says what shape its job has.
import { attach } from "pamir";

const client = await attach();
let regions = 0;
try {
  for (; regions < 1e4; regions++) client.createRegion(64);
} catch {
  // The limit.
}
let contexts = 0;
try {
  for (; contexts < 1e3; contexts++) client.createContext();
} catch {
  // The limit.
}
const { kernel } = client;
console.log(JSON.stringify({ kernel, contexts, heapMib: client.query("CLIENT_MEM_SIZE"), regions }));
client.close();
