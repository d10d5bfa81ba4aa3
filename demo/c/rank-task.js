// A rank: a worker, the same for each program.
import { programTask } from "pamir/c";

await programTask();
