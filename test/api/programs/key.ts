// Prints the job key of its environment, and what a child of it gets of the variable.
import { execFileSync } from "node:child_process";
import { takeKey } from "../../../src/bootstrap/key.js";

try {
  const key = (await takeKey(process.env)) as Uint8Array;
  const inherited = execFileSync(process.execPath, ["-p", "process.env.PAMIR_KEY_FD"], { encoding: "utf8" });
  console.log(Buffer.from(key).toString("hex"), inherited.trim());
} catch (error) {
  const { code, message } = error as Error & { code?: string };
  console.log(code, /has (more than )?\d+ bytes/.exec(message)?.[0] ?? message);
}
