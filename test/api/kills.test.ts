import { killSuite } from "./kills.js";

killSuite(25, 60_000);
