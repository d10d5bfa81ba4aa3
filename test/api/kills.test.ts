import { killSuite } from "./kills.js";

killSuite(25, 240_000);
