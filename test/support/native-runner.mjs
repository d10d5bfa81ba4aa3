// What Vitest loads first in each of its workers: from then on, Node loads TypeScript. See typescript-hooks.mjs.
import { register } from "node:module";

register("./typescript-hooks.mjs", import.meta.url);
const { default: ChoosingRunner } = await import("./runner.js");
export default ChoosingRunner;
