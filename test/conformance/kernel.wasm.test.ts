import { chainSuite } from "./chain.suite.js";
import { kernelSuite } from "./kernel.suite.js";
import { rmaSuite } from "./rma.suite.js";

kernelSuite("wasm", { producer: "wasm" });

rmaSuite("wasm", { producer: "wasm" });
chainSuite("wasm", { producer: "wasm" });
