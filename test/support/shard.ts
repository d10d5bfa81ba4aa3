// Shards of a run: parts that together are the whole. A test belongs to one by its title, so that long files are spread;
// files that are short belong to one as they are, so that the others need not load them.
import { hashOf } from "./effort.js";

const [shard, shards] = (process.env.PAMIR_SHARD ?? "1/1").split("/").map(Number) as [number, number];

const isOurs = (text: string): boolean => hashOf(text) % shards === shard - 1;
const isSpread = (file: string): boolean =>
  /^test\/(api|cli|conformance|interleaving|soak)\/|^test\/(examples|types|property\/(agent|packets))|\.deep\.test\.ts$/.test(
    file,
  );

/** Whether a file has tests of this shard; all of them are, if it is short. */
export function hasFile(file: string): boolean {
  return isSpread(file) || isOurs(file);
}

/** Whether a test of such a file is this shard's. */
export function hasTest(file: string, path: string): boolean {
  return !isSpread(file) || isOurs(file + path);
}
