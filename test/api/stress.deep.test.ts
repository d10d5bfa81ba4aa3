import { stressSuite } from "./stress.js";

stressSuite({ count: 60_000, largest: 1_500_000, rounds: 3, timeout: 900_000 });
