// Launchers of `pamir run --nats`, each for a machine of its own.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { inject } from "vitest";
import { cli, withoutWaits } from "./run-command.js";

/** A file with a job key. */
export function keyFile(byte = 1): string {
  const path = join(inject("folder"), `nats-key-${process.pid}-${byte}`);
  if (existsSync(path)) return path;
  const bytes = Uint8Array.from({ length: 32 }, (_, i) => byte + i);
  writeFileSync(path, bytes, { mode: 0o600 });
  chmodSync(path, 0o400);
  return path;
}

let jobs = 0;
/** The name of a job that no other test has. */
export const newJob = (): string => `job-${process.pid}-${++jobs}`;

export interface Launched {
  readonly child: ChildProcess;
  readonly ended: Promise<{ status: number | null; out: string; err: string }>;
}

/** Starts a launcher. */
export function startLauncher(
  url: string,
  job: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Launched {
  return startProgram([cli, "run", "--nats", url, "--job", job, ...args], { PAMIR_KEY_FILE: keyFile(), ...env });
}

/** Starts a program of Node. */
export function startProgram(args: readonly string[], env: Readonly<Record<string, string>>): Launched {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 230_000,
  });
  const ended = Promise.all([text(child.stdout as never), text(child.stderr as never), once(child, "close")]).then(
    ([out, err, [status]]) => ({ status: status as number | null, out, err: withoutWaits(err) }),
  );
  return { child, ended };
}

/** Resolves with what a launcher, or its tasks, have said, once something is in it. Call it before they say it. */
export function said(child: ChildProcess, what: string, by: "stdout" | "stderr" = "stdout"): Promise<string> {
  let all = "";
  return new Promise((resolve) => {
    child[by]?.on("data", (bytes) => {
      all += String(bytes);
      if (all.includes(what)) resolve(all);
    });
  });
}

/** The lines of all, sorted. */
export const linesOf = (...outs: readonly string[]): string[] => outs.join("").trim().split("\n").sort();
