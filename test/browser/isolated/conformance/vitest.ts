// What the conformance suites use of Vitest, whose own runner is at home on a page and not in a worker: the names of
// its functions, its expect(), and a list of tests that worker.ts runs.
import {
  ASYMMETRIC_MATCHERS_OBJECT,
  GLOBAL_EXPECT,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
  setState,
} from "@vitest/expect";
import * as chai from "chai";

type Body = (...given: never[]) => unknown;

export interface Case {
  readonly name: string;
  readonly before: readonly (() => unknown)[];
  readonly body: () => unknown;
  readonly after: readonly (() => unknown)[];
}

/** What came of a test. */
export interface Outcome {
  readonly name: string;
  readonly error?: string;
}

/** Milliseconds after which a test hangs: the slowest takes 5 s where nothing else runs. */
export const HANGS_MS = 120_000;

/** Runs a test. One that hangs is left behind: those after it run, and it is known which it was. */
export async function run({ name, before, body, after }: Case): Promise<Outcome> {
  let limit: ReturnType<typeof setTimeout> | undefined;
  const hang = new Promise<never>((_, reject) => {
    limit = setTimeout(() => reject(new Error("hangs")), HANGS_MS);
  });
  const test = async () => {
    try {
      for (const prepare of before) await prepare();
      await body();
    } finally {
      for (const clear of after) await clear();
    }
  };
  try {
    await Promise.race([test(), hang]);
    return { name };
  } catch (thrown) {
    return { name, error: thrown instanceof Error ? `${thrown.message}\n${thrown.stack}` : String(thrown) };
  } finally {
    clearTimeout(limit);
  }
}

/** The tests that the suites have declared. */
export const cases: Case[] = [];
let names: string[] = [];
let before: (() => unknown)[] = [];
let after: (() => unknown)[] = [];

chai.use(JestExtend);
chai.use(JestChaiExpect);
chai.use(JestAsymmetricMatchers);
export const expect = Object.assign(
  (value: unknown, message?: string) => chai.expect(value, message),
  chai.expect,
  (globalThis as Record<symbol, object>)[ASYMMETRIC_MATCHERS_OBJECT],
) as unknown as typeof import("vitest").expect;
setState({ assertionCalls: 0, isExpectingAssertions: false, expectedAssertionsNumber: null }, expect as never);
Object.defineProperty(globalThis, GLOBAL_EXPECT, { value: expect, configurable: true });

export function describe(name: string, body: () => void): void {
  const outer = { names, before, after };
  names = [...names, name];
  before = [...before];
  after = [...after];
  body();
  ({ names, before, after } = outer);
}

/** Options may stand before the body, and a timeout behind it: neither counts here. */
export function it(name: string, ...given: readonly unknown[]): void {
  const body = given.find((one) => typeof one === "function") as () => unknown;
  cases.push({ name: [...names, name].join(" > "), before, body, after });
}

/** Each row is a test, or a group; what stands in it follows the name. */
const each =
  (declare: (name: string, body: () => void) => void) => (rows: readonly unknown[]) => (name: string, body: Body) => {
    for (const row of rows) {
      const given = (Array.isArray(row) ? row : [row]) as never[];
      declare(`${name} ${given.map(String).join(", ")}`, () => body(...given) as undefined);
    }
  };
it.each = each(it);
describe.each = each(describe);

export function beforeEach(body: () => unknown): void {
  before.push(body);
}

export function afterEach(body: () => unknown): void {
  after.push(body);
}
