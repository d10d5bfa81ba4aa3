// @ts-check
// Joins its job, says so, and goes on for ever.
import { attach } from "pamir";

const client = await attach();
const context = client.createContext();
console.log("begins");
for (;;) await context.progress({ timeout: 600_000 });
