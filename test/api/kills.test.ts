import { byEffort } from "../support/effort.js";
import { killSuite } from "./kills.js";

killSuite(byEffort({ quick: 3, normal: 8, deep: 25 }), 240_000);
