// A task of the test `idle_cpu` of `pamir perf`: says that it is there, and then waits for messages, until it is killed.
import { attach } from "pamir";

const client = await attach();
const context = client.createContext();
process.stdout.write("waits\n");
for (;;) await context.progress();
