import { stressSuite } from "./stress.js";

stressSuite({ count: 3000, largest: 200_000, rounds: 1, timeout: 30_000 });
