import { chainSuite } from "./chain.suite.js";
import { kernelSuite } from "./kernel.suite.js";
import { packetSuite } from "./packet.suite.js";
import { reorderSuite } from "./reorder.suite.js";
import { rmaSuite } from "./rma.suite.js";
import { serveSuite } from "./serve.suite.js";

kernelSuite("wasm", { producer: "wasm" });

rmaSuite("wasm", { producer: "wasm" });
chainSuite("wasm", { producer: "wasm" });

rmaSuite("wasm, engine thread", { producer: "wasm", engine: "thread" });
chainSuite("wasm, engine thread", { producer: "wasm", engine: "thread" });
serveSuite("wasm", { producer: "wasm" });

reorderSuite("wasm", { producer: "wasm" });

packetSuite("wasm", { producer: "wasm" });
