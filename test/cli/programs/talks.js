// Task 0 writes on and on; the others wait for something that never comes.
import { attach } from "pamir";

const client = await attach();
setInterval(() => client.task === 0 && process.stdout.write("on and on\n"), 1);
