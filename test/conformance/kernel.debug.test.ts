import { kernelSuite } from "./kernel.suite.js";

kernelSuite("debug", { producer: "debug" });
