// @ts-check
// A program for `pamir run --restart`: rank 1 fails before it attaches.
import { attach } from "pamir";

if (process.env.PMI_RANK === "1") process.exit(5);
const client = await attach();
client.close();
