// A process of a job at a NATS server, which does what a page asks for by calls: the functions of web-page.ts, by their names.
import { attach } from "pamir";
import { ASK, begin, page, runAsked } from "./web-page.js";

const client = await attach();
begin(client);
runAsked(async (name, given) => {
  if (name !== "close") return (page[name as keyof typeof page] as (...given: unknown[]) => unknown)(...given);
  // Behind the reply.
  setTimeout(() => void page.close(), 100);
  return null;
});
console.log(`task ${client.task} is up, and takes ${ASK}`);
