import { chainSuite } from "./chain.suite.js";
import { kernelSuite } from "./kernel.suite.js";
import { packetSuite } from "./packet.suite.js";
import { reorderSuite } from "./reorder.suite.js";
import { rmaSuite } from "./rma.suite.js";
import { serveSuite } from "./serve.suite.js";

kernelSuite("twin", { producer: "twin" });

rmaSuite("twin", { producer: "twin" });
chainSuite("twin", { producer: "twin" });

rmaSuite("twin, engine thread", { producer: "twin", engine: "thread" });
chainSuite("twin, engine thread", { producer: "twin", engine: "thread" });
serveSuite("twin", { producer: "twin" });

reorderSuite("twin", { producer: "twin" });

packetSuite("twin", { producer: "twin" });
