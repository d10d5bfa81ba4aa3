import { cSuite } from "./c-suite.js";
import { openBrowser } from "./support.js";

cSuite(openBrowser);
