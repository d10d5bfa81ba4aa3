import { chainSuite } from "./chain.suite.js";
import { kernelSuite } from "./kernel.suite.js";
import { packetSuite } from "./packet.suite.js";
import { reorderSuite } from "./reorder.suite.js";
import { rmaSuite } from "./rma.suite.js";
import { serveSuite } from "./serve.suite.js";

kernelSuite("debug", { producer: "debug" });

rmaSuite("debug", { producer: "debug" });
chainSuite("debug", { producer: "debug" });

serveSuite("debug", { producer: "debug" });

reorderSuite("debug", { producer: "debug" });

packetSuite("debug", { producer: "debug" });
