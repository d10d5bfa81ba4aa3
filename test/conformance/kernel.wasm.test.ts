import { kernelSuite } from "./kernel.suite.js";

kernelSuite("wasm", { producer: "wasm" });
