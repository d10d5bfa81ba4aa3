// Where a NATS server is: what the variables may be.
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, it } from "vitest";
import { natsPlace } from "../../src/nats/place.js";
import type { NatsVariables } from "../../src/nats/variables.js";

const NATS = "nats://127.0.0.1:4222";

it.each([
  ["127.0.0.1", { servers: ["127.0.0.1:4222"], isTls: false }],
  ["nats://a:1,nats://b:2", { servers: ["a:1", "b:2"], isTls: false }],
  ["tls://[::1]:4222/", { servers: ["[::1]:4222"], isTls: true }],
  ["nats://me:s%40t@host", { servers: ["host:4222"], user: "me", password: "s@t" }],
  ["nats://token@host", { servers: ["host:4222"], token: "token" }],
])("PAMIR_NATS=%s", (nats, wanted) => {
  expect(natsPlace({ nats, job: "a-B_9" })).toMatchObject({ ...wanted, job: "a-B_9" });
});

/** A file of this run. */
function fileOf(name: string, mode: number): string {
  const path = join(inject("folder"), name);
  writeFileSync(path, "");
  chmodSync(path, mode);
  return path;
}

it.each<[string, NatsVariables, RegExp]>([
  ["no server", { nats: undefined }, /^PAMIR_NATS is not set: .* nats:\/\/host:4222$/],
  ["an empty server", { nats: " " }, /^PAMIR_NATS is not set/],
  [
    "another scheme",
    { nats: "http://h:1" },
    /^PAMIR_NATS has "http:\/\/h:1", not nats:\/\/HOST:PORT or tls:\/\/HOST:PORT$/,
  ],
  ["a path", { nats: "nats://h:1/x" }, /^PAMIR_NATS has "nats:\/\/h:1\/x", not/],
  ["a port that is none", { nats: "nats://h:99999" }, /^PAMIR_NATS has "nats:\/\/h:99999", not/],
  ["a password is not shown", { nats: "http://me:secret@h:1" }, /^PAMIR_NATS has "http:\/\/…@h:1", not/],
  ["a user with a part of a character", { nats: "nats://a%ZZ:b@h:1" }, /^PAMIR_NATS has "nats:\/\/…@h:1", not/],
  ["two users", { nats: "nats://a@h:1,nats://b@i:1" }, /^PAMIR_NATS has two users: i:1 and h:1 need the same$/],
  [
    "a job with a dot",
    { nats: NATS, job: "a.b" },
    /^PAMIR_JOB is "a\.b", and has "\.": it may have 1 to 64 letters, digits/,
  ],
  ["a job with a star", { nats: NATS, job: "a*" }, /^PAMIR_JOB is "a\*", and has "\*"/],
  ["a job with >", { nats: NATS, job: ">" }, /^PAMIR_JOB is ">", and has ">"/],
  ["a job with a space", { nats: NATS, job: "a b" }, /^PAMIR_JOB is "a b", and has " "/],
  ["a job without a name", { nats: NATS, job: "" }, /^PAMIR_JOB is "", and has 0 characters/],
  ["a long job", { nats: NATS, job: "j".repeat(65) }, /^PAMIR_JOB is "j{65}", and has 65 characters/],
  [
    "no file of credentials",
    { nats: NATS, credentials: "/nowhere/c" },
    /^PAMIR_NATS_CREDS is "\/nowhere\/c", which can't be read: ENOENT/,
  ],
  [
    "no file of authorities",
    { nats: NATS, authorities: "/nowhere/c" },
    /^PAMIR_NATS_CA is "\/nowhere\/c", which can't be read: ENOENT/,
  ],
])("%s is refused", (_, variables, text) => {
  expect(() => natsPlace(variables)).toThrow(
    expect.objectContaining({ code: "PAMIR_NATS", message: expect.stringMatching(text) }),
  );
});

it.skipIf(process.platform === "win32")("credentials that other users may read are refused", () => {
  const credentials = fileOf("open.creds", 0o644);
  expect(() => natsPlace({ nats: NATS, credentials })).toThrow(
    expect.objectContaining({
      code: "PAMIR_NATS",
      message: expect.stringMatching(/has mode 0644: other users may use it/),
    }),
  );
  expect(natsPlace({ nats: NATS, credentials: fileOf("own.creds", 0o600) }).credentials).toContain("own.creds");
});
