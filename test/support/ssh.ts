// Other hosts for `pamir run --hosts`: a remote shell that runs its command here, and a real sshd on loopback with keys that are
// thrown away.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { userInfo } from "node:os";
import { delimiter, join } from "node:path";
import { inject } from "vitest";
import { freePort } from "./free-port.js";

/** The path of a program, or undefined. sshd is in a folder that users may not have in their path. */
export function find(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin"];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

export const SSHD = find("ssh") && find("ssh-keygen") && find("sshd");

/** Writes a script for sh; its path. */
export function script(folder: string, name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

/** Runs the command as the login shell of another host would, after some lines of its own. */
export const LOCAL_SHELL = `shift\necho "Welcome"\nexec sh -c "$1"`;

export class Sshd {
  /** A remote shell that reaches hosts "one" and "two", also as "alpha" and "beta". */
  readonly rsh: string;
  readonly #folder: string;
  readonly #daemon: ChildProcess;

  private constructor(folder: string, daemon: ChildProcess) {
    this.#folder = folder;
    this.#daemon = daemon;
    this.rsh = `ssh -F ${join(folder, "config")}`;
  }

  static async start(): Promise<Sshd> {
    const folder = mkdtempSync(join(inject("folder"), "sshd-"));
    const at = (name: string) => join(folder, name);
    for (const name of ["host", "user"]) {
      execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", at(name)]);
    }
    const port = await freePort();
    execFileSync("sh", ["-c", `cp user.pub authorized; sed "s/^/* /" host.pub > known`], { cwd: folder });
    const daemonLines = [
      `Port ${port}`,
      "ListenAddress 127.0.0.1",
      "ListenAddress 127.0.0.2",
      `HostKey ${at("host")}`,
      `AuthorizedKeysFile ${at("authorized")}`,
      "StrictModes no",
      "UsePAM no",
      "PasswordAuthentication no",
      "PermitRootLogin yes",
      "PidFile none",
    ];
    const clientLines = [
      `Port ${port}`,
      `User ${userInfo().username}`,
      `IdentityFile ${at("user")}`,
      "IdentitiesOnly yes",
      `UserKnownHostsFile ${at("known")}`,
      "StrictHostKeyChecking yes",
      "Host one alpha",
      "HostName 127.0.0.1",
      "Host two beta",
      "HostName 127.0.0.2",
    ];
    writeFileSync(at("sshd_config"), `${daemonLines.join("\n")}\n`);
    writeFileSync(at("config"), `${clientLines.join("\n")}\n`);
    // As root, sshd needs this folder, which a service of the system makes.
    if (process.getuid?.() === 0) mkdirSync("/run/sshd", { recursive: true });
    const daemon = spawn(find("sshd") as string, ["-D", "-e", "-f", at("sshd_config")], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    daemon.stderr?.on("data", (text) => {
      said += text;
    });
    const listens = (): Promise<boolean> =>
      new Promise((resolve) => {
        const socket = connect(port, "127.0.0.2", () => resolve(true)).on("error", () => resolve(false));
        socket.on("connect", () => socket.destroy());
      });
    while (!(await listens())) {
      if (daemon.exitCode !== null) throw new Error(`sshd has ended: ${said}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return new Sshd(folder, daemon);
  }

  async stop(): Promise<void> {
    this.#daemon.kill("SIGTERM");
    if (this.#daemon.exitCode === null && this.#daemon.signalCode === null) await once(this.#daemon, "exit");
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
