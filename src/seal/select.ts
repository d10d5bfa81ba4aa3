// Chooses the library that seals a job's packets. The bytes are the same, so nodes of a job may differ in this.
import type { KeySchedule } from "../session/wire/key-schedule.js";
import { hasNodeSeals, nodeAlgorithms } from "./node.js";
import { type Algorithms, scheduleOf } from "./schedule.js";

/** Makes the key schedule of a key: see selectKeySchedule(). */
export type MakeKeySchedule = (key: Uint8Array, job: number) => KeySchedule;

/** The algorithms of this host: of node:crypto, or of @noble/hashes and @noble/ciphers. */
export async function selectAlgorithms(): Promise<Algorithms> {
  return hasNodeSeals() ? nodeAlgorithms() : (await import("./noble.js")).NOBLE;
}

/** Chooses as selectKeySchedule() does, once for many keys. */
export async function selectKeySchedules(): Promise<MakeKeySchedule> {
  const algorithms = await selectAlgorithms();
  return (key, job) => scheduleOf(algorithms, key, job);
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
