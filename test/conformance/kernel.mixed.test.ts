import { kernelSuite } from "./kernel.suite.js";

kernelSuite("wasm sends, twin receives", { producer: "wasm", consumer: "twin" });
kernelSuite("twin sends, wasm receives", { producer: "twin", consumer: "wasm" });
