import { chainSuite } from "./chain.suite.js";
import { kernelSuite } from "./kernel.suite.js";
import { rmaSuite } from "./rma.suite.js";

kernelSuite("wasm sends, twin receives", { producer: "wasm", consumer: "twin" });
kernelSuite("twin sends, wasm receives", { producer: "twin", consumer: "wasm" });

rmaSuite("wasm sends, twin receives", { producer: "wasm", consumer: "twin" });
rmaSuite("twin sends, wasm receives", { producer: "twin", consumer: "wasm" });

chainSuite("wasm sends, twin receives", { producer: "wasm", consumer: "twin" });
chainSuite("twin sends, wasm receives", { producer: "twin", consumer: "wasm" });
