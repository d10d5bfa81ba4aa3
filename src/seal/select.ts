// Chooses the library that seals a job's packets. The bytes are the same, so nodes of a job may differ in this.
import type { KeySchedule } from "../session/wire/key-schedule.js";
import { hasNodeSeals, nodeKeyScheduleOf } from "./node.js";

/** Makes the key schedule of a key: see selectKeySchedule(). */
export type MakeKeySchedule = (key: Uint8Array, job: number) => KeySchedule;

/** Chooses as selectKeySchedule() does, once for many keys. */
export async function selectKeySchedules(): Promise<MakeKeySchedule> {
  return hasNodeSeals() ? nodeKeyScheduleOf : (await import("./noble.js")).keyScheduleOf;
}

/**
 * The key schedule of a job key: over node:crypto, or over @noble/hashes and @noble/ciphers if this host has no such module.
 * @param key at least 32 random bytes, not a password; it is copied
 * @param job the job's fingerprint, as its packets have it
 * @throws RangeError if the key is shorter
 */
export async function selectKeySchedule(key: Uint8Array, job: number): Promise<KeySchedule> {
  return (await selectKeySchedules())(key, job);
}
