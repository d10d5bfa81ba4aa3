import { byEffort } from "../support/effort.js";
import { stressSuite } from "./stress.js";

stressSuite({
  count: byEffort({ quick: 500, normal: 1000, deep: 3000 }),
  largest: 200_000,
  rounds: 1,
  timeout: 120_000,
});
