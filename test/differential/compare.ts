// The wasm kernels and their twin do the same: the same random operations in two memories, and after each of them
// the results and every byte of the two maps are compared.
import { expect } from "vitest";
import { makeRig, type Rig, type RigOptions } from "../support/kernels.js";
import { randomOf } from "../support/random.js";
import { replayNote, SEED } from "../support/seed.js";

export type Random = (below: number) => number;

/** An operation: chosen once, done to both; undefined: it is not allowed now. */
type Operation<State> = (state: State, random: Random) => { text: string; act: (rig: Rig) => unknown } | undefined;

export type Operations<State> = Record<string, { readonly weight: number; readonly choose: Operation<State> }>;

export interface Play<State> {
  readonly options: RigOptions;
  /** How many sequences of operations, and how many of these each has. */
  readonly sequences: number;
  readonly length: number;
  /** What both memories are given before all else. */
  readonly prepare?: (rig: Rig) => void;
  /** What the operations need to know to keep to the kernels' contract. */
  readonly state: () => State;
  /** All that there are; what they do to `reference` is the state that the next choice is made from. */
  readonly operations: (reference: Rig) => Operations<State>;
}

export const pick = <T>(random: Random, from: readonly T[]): T | undefined => from[random(Math.max(1, from.length))];
export const word = (random: Random): number => pick(random, [0, 1, 0x80000000, 0xffffffff, random(2 ** 31)]) ?? 0;

/** Runs one sequence; counts how often each operation was done. */
function run<State>(play: Play<State>, seed: number, counts: Map<string, number>): void {
  const { options, prepare, length } = play;
  const [wasm, twin] = [makeRig({ ...options, producer: "wasm" }), makeRig({ ...options, producer: "twin", slot: 1 })];
  const [wasmArea, twinArea] = [wasm.area(), twin.area()];
  for (const rig of [wasm, twin]) prepare?.(rig);
  expect(Buffer.compare(wasmArea, twinArea), "the formatted memories").toBe(0);
  const random = randomOf(seed);
  const state = play.state();
  const all = Object.entries(play.operations(wasm)).flatMap(([name, { weight, choose }]) =>
    Array(weight).fill([name, choose]),
  );
  const history: string[] = [];
  for (let i = 0; i < length; i++) {
    const [name, choose] = all[random(all.length)] as [string, Operation<State>];
    const operation = choose(state, random);
    if (operation === undefined) continue;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    history.push(operation.text);
    // The twin goes first: what the wasm kernels do is the state that the next choice is made from.
    const twinResult = operation.act(twin);
    const wasmResult = operation.act(wasm);
    const note = (): string => `${replayNote()}, sequence ${seed - SEED}, after:\n${history.slice(-12).join("\n")}`;
    if (JSON.stringify(twinResult) !== JSON.stringify(wasmResult)) expect(twinResult, note()).toEqual(wasmResult);
    if (Buffer.compare(wasmArea, twinArea) !== 0) {
      const at = wasmArea.findIndex((byte, offset) => byte !== twinArea[offset]) & ~3;
      const [a, b] = [wasm, twin].map((rig) => rig.word(rig.map.job + at));
      throw new Error(`the word at ${wasm.map.job + at} is ${a} by wasm, ${b} by the twin\n${note()}`);
    }
  }
}

/** Plays sequences of operations in both memories. */
export function compare<State>(play: Play<State>): void {
  const counts = new Map<string, number>();
  for (let i = 0; i < play.sequences; i++) run(play, SEED + i, counts);
  // Each operation has been tried: a list that has gone stale would test nothing.
  const names = Object.keys(play.operations(makeRig(play.options)));
  expect(names.filter((name) => (counts.get(name) ?? 0) < 3)).toEqual([]);
}
