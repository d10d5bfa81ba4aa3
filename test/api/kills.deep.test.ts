import { killSuite } from "./kills.js";

killSuite(250, 600_000);
