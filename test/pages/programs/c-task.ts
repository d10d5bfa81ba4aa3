import { programTask } from "pamir/c";

await programTask();
