// @ts-check
// Attaches and sleeps, blocking, until it is terminated.
import { attach } from "pamir";

const client = await attach();
client.createContext().advanceUntil(() => false);
