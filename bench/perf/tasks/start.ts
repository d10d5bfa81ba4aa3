// A task of the test `start` of `pamir perf`: sends to the next task, and says when a message has come.
import { attach } from "pamir";

const HELLO = 1;

const client = await attach();
const context = client.createContext();
let hasHeard = false;
context.dispatch(HELLO, () => {
  hasHeard = true;
});
context.sendImmediate(client.endpoint((client.task + 1) % client.size), HELLO);
context.advanceUntil(() => hasHeard);
process.stdout.write("heard\n");
client.close();
