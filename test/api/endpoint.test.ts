// Endpoints: a task's number is the endpoint of its context 0, and an endpoint is a number that fits an Int32Array.
import { type Client, type Context, type Endpoint, info, type LaunchOptions, launch, SUCCESS } from "pamir";
import { describe, expect, it } from "vitest";
import {
  DATA,
  ECHO,
  LINKED_VARIANTS,
  REPLY_WHOLE,
  rejectionOf,
  thrownBy,
  until,
  VARIANTS,
  withJob,
} from "./support.js";

const sleeper = new URL("tasks/sleeper.js", import.meta.url);
const variant = VARIANTS[2] as (typeof VARIANTS)[number];
/** Number of a context → endpoint of that context of task 0. */
const UPPER = 2 ** 24;

describe("endpoint", () => {
  it("of a task's context 0 is the task's number", () =>
    withJob(variant, { tasks: 2, contexts: 3, module: "sleeper.js" }, ({ client, context }) => {
      expect([0, 1].map((task) => client.endpoint(task))).toEqual([0, 1]);
      expect(context.endpoint).toBe(0);
      expect(client.createContext().endpoint).toBe(UPPER);
      expect(client.endpoint(1, 2)).toBe(2 * UPPER + 1);
    }));

  it.each(LINKED_VARIANTS)("a task's number reaches context 0 of that task: $name", (each) =>
    withJob(each, { tasks: 2, contexts: 2, scenario: "echo" }, ({ client, context }) => {
      const second = client.createContext();
      const came: unknown[] = [];
      for (const one of [context, second]) {
        one.dispatch(DATA, ({ origin, task, payloadBytes }) => came.push([one.index, origin, task, payloadBytes]));
      }
      const note = (message: { origin: Endpoint; task: number }) => came.push([message.origin, message.task]);
      context.dispatch(REPLY_WHOLE, note);
      // To task 1, not to context 1 of task 0.
      expect(context.sendImmediate(1, ECHO, null, new Uint8Array(8))).toBe(SUCCESS);
      until(context, () => came.length === 1);
      expect(came).toEqual([[1, 1]]);
      expect(second.advance()).toBe(0);
      expect(second.sendImmediate(0, DATA, null, new Uint8Array(3))).toBe(SUCCESS);
      expect(context.sendImmediate(second.endpoint, DATA, null, new Uint8Array(4))).toBe(SUCCESS);
      until(context, () => came.length === 2);
      until(second, () => came.length === 3);
      expect(came.slice(1)).toEqual([
        [0, UPPER, 0, 3],
        [1, 0, 0, 4],
      ]);
    }),
  );

  it("of the last context of the last task is positive in an Int32Array, and carries messages", () =>
    withJob(variant, { tasks: 1, contexts: 127, heapBytes: 2 ** 20 }, ({ client, context }) => {
      const last = Array.from({ length: 126 }, () => client.createContext()).at(-1) as Context;
      const self = client.endpoint(0, 126);
      expect(last.endpoint).toBe(self);
      const [stored] = Int32Array.of(self);
      expect(stored).toBe(126 * UPPER);
      const came: Endpoint[] = [];
      for (const one of [context, last]) one.dispatch(DATA, ({ origin }) => came.push(origin));
      context.sendImmediate(stored as Endpoint, DATA);
      last.send({ to: 0, dispatch: DATA });
      until(last, () => came.length === 1);
      until(context, () => came.length === 2);
      expect(came).toEqual([0, self]);
    }));

  it("taskOf() and contextOf() are the inverse of endpoint(), for every endpoint of a job", () =>
    withJob(variant, { tasks: 1, maxTasks: 8, contexts: 127, heapBytes: 2 ** 20 }, ({ client }) => {
      const seen = new Set<Endpoint>();
      for (let task = 0; task < 8; task++) {
        for (let context = 0; context < 127; context++) {
          const endpoint = client.endpoint(task, context);
          expect([client.taskOf(endpoint), client.contextOf(endpoint)]).toEqual([task, context]);
          seen.add(endpoint);
        }
      }
      expect(seen.size).toBe(8 * 127);
    }));

  it.each([8, UPPER, -1, 2 ** 32, 0.5, Number.NaN, "0", undefined, null] as never[])(
    "taskOf(%j) and contextOf() refuse what is no endpoint of the job",
    (endpoint) =>
      withJob(variant, { tasks: 2, contexts: 1, module: "sleeper.js" }, ({ client }: { client: Client }) => {
        for (const call of [() => client.taskOf(endpoint), () => client.contextOf(endpoint)]) {
          expect(thrownBy(call)).toMatchObject({ code: "PAMIR_INVAL", text: expect.stringMatching(/^endpoint /) });
        }
      }),
  );

  it("what messages() gives names the task", () =>
    withJob(variant, { tasks: 1, contexts: 2 }, async ({ client, context }) => {
      const second = client.createContext();
      second.sendImmediate(0, DATA, null, new Uint8Array(5));
      second.advance();
      for await (const { origin, task } of context.messages(DATA, { timeout: 1000 })) {
        expect([origin, task]).toEqual([UPPER, 0]);
        break;
      }
    }));

  it("a job has at most 127 contexts a task", async () => {
    const refused = await rejectionOf(launch(sleeper, { tasks: 1, contexts: 128 } satisfies LaunchOptions));
    expect([refused.code, refused.text]).toEqual(["PAMIR_INVAL", "contexts is 128, not an integer from 1 to 127"]);
    expect(info().limits.contexts).toBe(127);
  });
});
