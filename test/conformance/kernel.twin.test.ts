import { chainSuite } from "./chain.suite.js";
import { kernelSuite } from "./kernel.suite.js";
import { rmaSuite } from "./rma.suite.js";

kernelSuite("twin", { producer: "twin" });

rmaSuite("twin", { producer: "twin" });
chainSuite("twin", { producer: "twin" });
