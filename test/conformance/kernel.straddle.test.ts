// The map across 2^31, where a pointer that is taken for a signed number turns negative. The memory is larger than
// 2 GiB, but only what is touched costs any.
import { chainSuite } from "./chain.suite.js";
import { kernelSuite } from "./kernel.suite.js";
import { packetSuite } from "./packet.suite.js";
import { reorderSuite } from "./reorder.suite.js";
import { rmaSuite } from "./rma.suite.js";
import { serveSuite } from "./serve.suite.js";

kernelSuite("wasm, 2^31 in the heap", { producer: "wasm", straddle: "heap" });
kernelSuite("twin, 2^31 in the heap", { producer: "twin", straddle: "heap" });
kernelSuite("wasm sends, twin receives, 2^31 in the context", {
  producer: "wasm",
  consumer: "twin",
  straddle: "context",
});
kernelSuite("twin sends, wasm receives, 2^31 in the context", {
  producer: "twin",
  consumer: "wasm",
  straddle: "context",
});

rmaSuite("wasm, 2^31 in the heap", { producer: "wasm", straddle: "heap" });
rmaSuite("twin, 2^31 in the heap", { producer: "twin", straddle: "heap" });
rmaSuite("wasm sends, twin receives, 2^31 in an injection FIFO", {
  producer: "wasm",
  consumer: "twin",
  straddle: "injection",
});
rmaSuite("twin sends, wasm receives, 2^31 in an injection FIFO", {
  producer: "twin",
  consumer: "wasm",
  straddle: "injection",
});

chainSuite("wasm, 2^31 in the heap", { producer: "wasm", straddle: "heap" });
chainSuite("twin, 2^31 in the heap", { producer: "twin", straddle: "heap" });
chainSuite("wasm sends, twin receives, 2^31 in the heap", { producer: "wasm", consumer: "twin", straddle: "heap" });
chainSuite("twin sends, wasm receives, 2^31 in the heap", { producer: "twin", consumer: "wasm", straddle: "heap" });

serveSuite("wasm, 2^31 in the heap", { producer: "wasm", straddle: "heap" });
serveSuite("twin, 2^31 in the heap", { producer: "twin", straddle: "heap" });
serveSuite("of wasm tasks, twin, 2^31 in the context", { producer: "wasm", consumer: "twin", straddle: "context" });
serveSuite("of twin tasks, wasm, 2^31 in an injection FIFO", {
  producer: "twin",
  consumer: "wasm",
  straddle: "injection",
});

reorderSuite("wasm, 2^31 in the heap", { producer: "wasm", straddle: "heap" });
reorderSuite("twin, 2^31 in the heap", { producer: "twin", straddle: "heap" });

packetSuite("wasm, 2^31 in the heap", { producer: "wasm", straddle: "heap" });
packetSuite("twin, 2^31 in the heap", { producer: "twin", straddle: "heap" });
