import { kernelSuite } from "./kernel.suite.js";

kernelSuite("twin", { producer: "twin" });
