// @ts-check
// Serves what the variable HOW names: a pool's worker with something wrong.
import { serve } from "pamir/pool";

const how = process.env.HOW;
if (how === "reserved") serve({ fine: () => 1, close: () => 1 });
else if (how === "digits") serve({ 0: () => 1 });
else if (how === "nothing") serve({ version: 1 });
else if (how === "null") serve(/** @type {never} */ (null));
else if (how === "function") serve(/** @type {never} */ (() => 1));
else if (how === "throws") throw new RangeError("while loading");
else if (how === "rejects") await Promise.reject(new TypeError("while awaiting"));
else if (how === "exits") process.exit(7);
else if (how === "returns") void 0;
else if (how === "twice") {
  let text = "";
  serve({ text: () => text });
  try {
    serve({ other: () => 1 });
  } catch (error) {
    text = /** @type {Error} */ (error).message;
  }
} else if (how === "many") serve(Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`f${i}`, () => i])));
