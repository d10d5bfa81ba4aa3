import { openBrowser } from "./support.js";
import { webSuites } from "./web-suites.js";

webSuites(openBrowser);
