// The job key of the environment: files, descriptors, and what is wrong with them.
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, closeSync, fstatSync, mkdirSync, mkdtempSync, openSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { agreeOnKey, checkKey, makeKey, takeKey } from "../../src/bootstrap/key.js";
import { bundle } from "../support/bundle.js";

const KEY = Uint8Array.from({ length: 32 }, (_, i) => i * 5 + 1);
const HEX = Buffer.from(KEY).toString("hex");
const folder = mkdtempSync(join(inject("folder"), "key-"));
let files = 0;

function keyFile(content: string | Uint8Array, mode = 0o600): string {
  const path = join(folder, `key-${files++}`);
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

/** The error of an environment, which must not show the key. */
async function errorOf(env: Record<string, string>): Promise<string> {
  const own: Record<string, string | undefined> = { ...env };
  const error = await takeKey(own).then(
    () => expect.fail("it did not reject"),
    (reason: Error) => reason,
  );
  expect(error).toMatchObject({ code: "PAMIR_KEY" });
  expect(error.message).not.toContain(HEX.slice(0, 16));
  // Also then, no program that is started later gets the variables.
  expect(Object.keys(own)).toEqual([]);
  return error.message;
}

describe("PAMIR_KEY_FILE", () => {
  it.each([
    ["32 bytes", KEY],
    ["hexadecimal digits", HEX],
    ["capitals and a line feed", `${HEX.toUpperCase()}\n`],
    ["a carriage return, too", `${HEX}\r\n`],
  ])("%s", async (_, content) => {
    for (const mode of [0o600, 0o400]) {
      const env: Record<string, string | undefined> = { PAMIR_KEY_FILE: keyFile(content, mode), OTHER: "x" };
      expect(await takeKey(env)).toEqual(KEY);
      expect(env).toEqual({ OTHER: "x" });
      expect("PAMIR_KEY_FILE" in env).toBe(false);
    }
  });

  it("a symbolic link, as Kubernetes mounts secrets", async () => {
    const path = join(folder, "link");
    symlinkSync(keyFile(KEY), path);
    expect(await takeKey({ PAMIR_KEY_FILE: path })).toEqual(KEY);
  });

  it("none is no key", async () => {
    expect(await takeKey({})).toBeUndefined();
  });

  it.each([
    ["an empty file", "", /has 0 bytes: it is neither 32 bytes, nor 64 hexadecimal digits/],
    ["a byte too few", KEY.subarray(1), /has 31 bytes/],
    ["a byte too many", Uint8Array.of(...KEY, 1), /has 33 bytes/],
    ["a digit too few", HEX.slice(1), /has 63 bytes/],
    ["another character", `x${HEX.slice(1)}`, /has 64 bytes/],
    ["two line feeds", `${HEX}\n\n`, /has 66 bytes/],
    ["much more", "x".repeat(100_000), /has more than 66 bytes/],
    ["zeros", new Uint8Array(32), /has 32 equal bytes/],
    ["zeros as digits", "0".repeat(64), /has 32 equal bytes/],
  ])("%s", async (_, content, why) => {
    const path = keyFile(content);
    const message = await errorOf({ PAMIR_KEY_FILE: path });
    expect(message).toMatch(why);
    expect(message).toContain(path);
  });

  it.each([0o640, 0o620, 0o604, 0o602, 0o644, 0o660, 0o610, 0o777])("mode %o is refused", async (mode) => {
    const message = await errorOf({ PAMIR_KEY_FILE: keyFile(KEY, mode) });
    expect(message).toContain(`has mode 0${mode.toString(8)}: other users may use it; make it 0600 or 0400`);
  });

  it.skipIf(process.getuid?.() !== 0)(
    "a file of another user is refused (not run: only root can give files away)",
    async () => {
      const path = keyFile(KEY);
      execFileSync("chown", ["12345", path]);
      expect(await errorOf({ PAMIR_KEY_FILE: path })).toMatch(/belongs to user 12345, not to user 0/);
    },
  );

  it("what is no file", async () => {
    const sub = join(folder, "folder");
    mkdirSync(sub, { mode: 0o700 });
    const fifo = join(folder, "fifo");
    execFileSync("mkfifo", ["-m", "600", fifo]);
    expect(await errorOf({ PAMIR_KEY_FILE: join(folder, "absent") })).toMatch(/can't be opened: ENOENT/);
    expect(await errorOf({ PAMIR_KEY_FILE: "" })).toMatch(/the key file "" .*can't be opened/);
    expect(await errorOf({ PAMIR_KEY_FILE: sub })).toMatch(/is no regular file|can't be opened: EISDIR/);
    expect(await errorOf({ PAMIR_KEY_FILE: fifo })).toMatch(/is no regular file/);
  });

  it("both variables", async () => {
    expect(await errorOf({ PAMIR_KEY_FILE: keyFile(KEY), PAMIR_KEY_FD: "3" })).toMatch(/both PAMIR_KEY_FILE and/);
  });
});

describe("PAMIR_KEY_FD", () => {
  it.each(["", "-1", "x", "0", "1", "2", "1.5", "3 "])("%j is no descriptor", async (text) => {
    expect(await errorOf({ PAMIR_KEY_FD: text })).toContain(
      `PAMIR_KEY_FD is ${JSON.stringify(text)}, not a descriptor from 3 up`,
    );
  });

  it("a descriptor that is not open", async () => {
    expect(await errorOf({ PAMIR_KEY_FD: "99999" })).toMatch(/can't be read: EBADF/);
  });

  it("a file, which is closed then", async () => {
    const descriptor = openSync(keyFile(`${HEX}\n`), "r");
    expect(await takeKey({ PAMIR_KEY_FD: `${descriptor}` })).toEqual(KEY);
    expect(() => fstatSync(descriptor)).toThrow(/EBADF/);
    const short = openSync(keyFile("short"), "r");
    expect(await errorOf({ PAMIR_KEY_FD: `${short}` })).toMatch(/has 5 bytes/);
    expect(() => fstatSync(short)).toThrow(/EBADF/);
  });

  it("a device", async () => {
    const descriptor = openSync("/dev/zero", "r");
    try {
      expect(await errorOf({ PAMIR_KEY_FD: `${descriptor}` })).toMatch(/is no file, pipe or socket/);
    } finally {
      closeSync(descriptor);
    }
  });

  it.each([
    ["a key", KEY, `${HEX} undefined`],
    ["digits", HEX, `${HEX} undefined`],
    ["nothing", "", "PAMIR_KEY has 0 bytes"],
    ["too much", "x".repeat(10_000), "PAMIR_KEY has more than 66 bytes"],
  ])("%s in a socket that a child inherits, and its own children do not", async (_, content, said) => {
    const program = await bundle(new URL("../api/programs/key.ts", import.meta.url));
    const child = spawn(process.execPath, [program.pathname], {
      stdio: ["ignore", "pipe", "inherit", "pipe"],
      env: { ...process.env, PAMIR_KEY_FILE: undefined, PAMIR_KEY_FD: "3" },
    });
    const pipe = child.stdio[3] as import("node:stream").Writable;
    // The child ends its side before all is written.
    pipe.on("error", () => {});
    pipe.end(content);
    let output = "";
    for await (const part of child.stdout as AsyncIterable<Buffer>) output += part;
    expect(output.trim()).toBe(said);
  });
});

describe("a key of a program", () => {
  it("is copied", () => {
    const given = KEY.slice();
    const checked = checkKey("key", given);
    given.fill(7);
    expect(checked).toEqual(KEY);
  });

  it.each([
    ["text", "x".repeat(32), /^key is string, not a Uint8Array$/],
    ["31 bytes", KEY.subarray(1), /^key has 31 bytes, not 32$/],
    ["equal bytes", new Uint8Array(32).fill(9), /^key has 32 equal bytes$/],
    ["nothing", undefined, /^key is undefined/],
  ])("%s", (_, key, why) => {
    expect(() => checkKey("key", key)).toThrow(
      expect.objectContaining({ code: "PAMIR_KEY", message: expect.stringMatching(why) }),
    );
  });

  it("that is made is another one each time", () => {
    expect(new Set(Array.from({ length: 100 }, () => makeKey().toString())).size).toBe(100);
  });
});

describe("agreeOnKey", () => {
  /** What each rank gets, or its error. */
  async function agree(own: readonly (Uint8Array | undefined)[]): Promise<(Uint8Array | string)[]> {
    const values = new Map<string, Uint8Array>();
    let arrived = 0;
    let open: () => void = () => {};
    const all = new Promise<void>((resolve) => {
      open = resolve;
    });
    return Promise.all(
      own.map((key, rank) =>
        agreeOnKey(
          {
            rank,
            put: async (name, value) => void values.set(name, value.slice()),
            get: async (name) => values.get(name),
            async barrier() {
              arrived++;
              if (arrived === own.length) open();
              await all;
            },
          },
          key,
        ).catch((error: Error & { code: string }) => `${error.code}: ${error.message}`),
      ),
    );
  }

  it("gives all the key of rank 0 if none has one", async () => {
    const keys = await agree([undefined, undefined, undefined]);
    expect(keys[0]).toHaveLength(32);
    expect(keys).toEqual([keys[0], keys[0], keys[0]]);
    expect(await agree([undefined])).not.toEqual([keys[0]]);
  });

  it("leaves all their own if it is the same", async () => {
    expect(await agree([KEY, KEY.slice()])).toEqual([KEY, KEY]);
  });

  it("names the rank that has another one, or none, or one alone", async () => {
    expect(await agree([KEY, KEY.map((byte) => byte ^ 1), undefined])).toEqual([
      KEY,
      "PAMIR_KEY: rank 1 has another job key than rank 0",
      "PAMIR_KEY: rank 0 has a job key of its environment, rank 2 has none",
    ]);
    expect((await agree([undefined, KEY]))[1]).toBe(
      "PAMIR_KEY: rank 1 has a job key of its environment, rank 0 has none",
    );
  });

  it("refuses what is no key", async () => {
    const exchange = { rank: 1, put: async () => {}, barrier: async () => {} };
    for (const [value, why] of [
      [undefined, /of 0 bytes/],
      [Uint8Array.of(0, 1, 2), /of 3 bytes/],
      [new Uint8Array(33), /32 equal bytes/],
    ] as const) {
      await expect(agreeOnKey({ ...exchange, get: async () => value }, undefined)).rejects.toThrow(why);
    }
  });
});
