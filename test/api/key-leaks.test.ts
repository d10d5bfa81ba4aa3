// The job key is in no output, dump, report, error, command line or environment of a linked job, its children and its commands.
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, inject, it } from "vitest";
import { freePort } from "../support/free-port.js";
import { cli, withoutWaits } from "../support/run-command.js";
import { run } from "./run-program.js";

const folder = mkdtempSync(join(inject("folder"), "key-leaks-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The forms in which a key could be written, each long enough to be no accident. */
function formsOf(key: Uint8Array): string[] {
  const bytes = Buffer.from(key);
  const forms = (["hex", "base64", "base64url", "latin1"] as const).map((encoding) => bytes.toString(encoding));
  const numbers = [...key].join(",");
  // A part of it would be as bad.
  return [...forms, forms[0]?.toUpperCase() as string, numbers, numbers.replaceAll(",", ", ")].flatMap((form) => [
    form.slice(0, form.length >>> 1),
    form.slice(form.length >>> 1).replace(/=+$/, ""),
  ]);
}

const leaksIn = (text: string, key: Uint8Array): string[] => formsOf(key).filter((form) => text.includes(form));

describe.skipIf(process.platform !== "linux")("the key of a job that a link joins", () => {
  it.each(["udp", "websocket"])("is in nothing that its tasks and their children show, by %s", async (link) => {
    const key = randomBytes(32);
    const file = join(folder, `key-${link}`);
    // Both forms of a key file are allowed.
    writeFileSync(file, link === "udp" ? key : key.toString("hex"), { mode: 0o600 });
    const common = {
      PATH: process.env.PATH,
      PAMIR_SIZE: "2",
      PAMIR_RENDEZVOUS: `127.0.0.1:${await freePort()}`,
      PAMIR_KEY_FILE: file,
      PAMIR_OPTIONS: JSON.stringify({ link }),
    };
    const ends = await Promise.all(
      ["0", "1"].map((rank) => run([], [], { env: { ...common, PAMIR_RANK: rank, PAMIR_NODE: rank } }, "leaks.js")),
    );
    for (const { out, err, code } of ends) {
      expect([code, withoutWaits(err)]).toEqual([0, ""]);
      expect(out.length).toBeGreaterThan(10_000);
      expect(out).toContain("refused");
      expect(leaksIn(out, key)).toEqual([]);
    }
    const info = await run([], ["info"], { env: common }, cli);
    expect(leaksIn(info.out + info.err, key)).toEqual([]);
    // The search finds what it is to find.
    expect(leaksIn(`x ${key.toString("base64")} y`, key).length).toBeGreaterThan(0);
  });

  it("is in no error of a wrong key file or descriptor", async () => {
    const key = randomBytes(32);
    const forms = { short: key.subarray(0, 31), long: Buffer.concat([key, key]), hex: `${key.toString("hex")}0` };
    for (const [name, content] of Object.entries(forms)) {
      const file = join(folder, name);
      writeFileSync(file, content, { mode: 0o600 });
      const env = {
        PATH: process.env.PATH,
        PAMIR_RANK: "0",
        PAMIR_SIZE: "2",
        PAMIR_RENDEZVOUS: "127.0.0.1:9",
        PAMIR_KEY_FILE: file,
      };
      const { out, err, code } = await run([], [], { env }, "leaks.js");
      expect(code).not.toBe(0);
      expect(err).toContain("PAMIR_");
      expect(leaksIn(out + err, key.subarray(0, 31))).toEqual([]);
    }
  });
});
