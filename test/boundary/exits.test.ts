// How long calls to a dead task wait for the thread that tells the program of its end, and what they leave behind.
import { afterEach, expect, it, vi } from "vitest";
import { tasksOf } from "../support/collective-rig.js";
import { limitsOf } from "../support/collective-rigs.js";
import { NetworkedJob } from "../support/networked.js";
import { SEED } from "../support/seed.js";

const CALL = 1;

afterEach(() => {
  vi.useRealTimers();
});

it.each([
  ["is told", true],
  ["is never told, for the node was given up and goes on", false],
] as const)("the program %s: calls reject, and wait for nothing any more", async (_, isTold) => {
  const job = new NetworkedJob({ seed: SEED, limits: limitsOf(2), kernels: ["ts"], silence: 1000 });
  const { members, turn } = tasksOf(job);
  const [{ client, context }] = members as unknown as [(typeof members)[number]];
  const waiting = new Set<() => void>();
  client.hearExits({
    whenTold: (_task, then) => {
      waiting.add(then);
      return () => void waiting.delete(then);
    },
    errorOf: () => undefined,
  });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const codes: unknown[] = [];
  const call = (): Promise<unknown> =>
    context
      .call(members[1]?.context.endpoint as number, CALL)
      .catch((error: { code?: string }) => codes.push(error.code));
  const calls = [call(), call()];
  await turn();
  job.endNode(1);
  while (waiting.size < calls.length) {
    context.advance();
    await turn();
  }
  calls.push(call());
  expect([waiting.size, codes]).toEqual([3, []]);
  if (isTold) for (const then of waiting) then();
  else vi.advanceTimersByTime(1000);
  await Promise.all(calls);
  expect(codes).toEqual(Array(3).fill("PAMIR_SHUTDOWN"));
  expect([isTold ? 0 : waiting.size, vi.getTimerCount()]).toEqual([0, 0]);
  client.close();
});
