import { chainSuite } from "./chain.suite.js";
import { kernelSuite } from "./kernel.suite.js";
import { reorderSuite } from "./reorder.suite.js";
import { rmaSuite } from "./rma.suite.js";
import { serveSuite } from "./serve.suite.js";

kernelSuite("wasm sends, twin receives", { producer: "wasm", consumer: "twin" });
kernelSuite("twin sends, wasm receives", { producer: "twin", consumer: "wasm" });

rmaSuite("wasm sends, twin receives", { producer: "wasm", consumer: "twin" });
rmaSuite("twin sends, wasm receives", { producer: "twin", consumer: "wasm" });

chainSuite("wasm sends, twin receives", { producer: "wasm", consumer: "twin" });
chainSuite("twin sends, wasm receives", { producer: "twin", consumer: "wasm" });

const THREADS = [
  ["wasm sends, twin receives, and is the engine thread", { producer: "wasm", consumer: "twin", engine: "thread" }],
  ["twin sends, wasm receives, and is the engine thread", { producer: "twin", consumer: "wasm", engine: "thread" }],
] as const;

for (const [name, options] of THREADS) {
  rmaSuite(name, options);
  chainSuite(name, options);
}

serveSuite("of wasm tasks, twin", { producer: "wasm", consumer: "twin" });
serveSuite("of twin tasks, wasm", { producer: "twin", consumer: "wasm" });

reorderSuite("wasm inserts, twin consumes", { producer: "wasm", consumer: "twin" });
reorderSuite("twin inserts, wasm consumes", { producer: "twin", consumer: "wasm" });
