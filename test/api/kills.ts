// Kills at random moments, under traffic of every kind, in two sizes: those who are left learn it, lose nothing, hang
// nowhere, and get all memory back. Each victim takes a new place.
import { type Context, type Endpoint, type KernelName, launch, SUCCESS } from "pamir";
import { describe, expect, it } from "vitest";
import { chooseSeed, PATIENCE, randomFrom } from "./support.js";
import { chaos, STOP } from "./tasks/chaos.js";

/** How victims end. Those at the end are terminated: in the midst of it, blocked, and asleep. */
const HOWS = ["throw", "exit", "memory", "terminate", "parked", "asleep"];

const ROWS: readonly (readonly KernelName[])[] = [["wasm"], ["ts"], ["wasm", "ts"], ["ts", "wasm"]];

interface Seen {
  readonly messages: number;
  readonly operations: number;
  readonly wrong: number;
  readonly why: string;
  readonly pending: number;
  readonly calls: number;
}

/** Until an endpoint has ended: blocked, or not. */
async function untilEnded(context: Context, to: Endpoint, blocked: boolean): Promise<void> {
  if (!blocked) return context.whenEnded(to, { timeout: PATIENCE });
  let hasEnded = false;
  context.whenEnded(to, () => {
    hasEnded = true;
  });
  expect(context.advanceUntil(() => hasEnded, { timeout: PATIENCE })).toBe(SUCCESS);
}

/** PAMIR_SEED=… runs the same again, as far as the threads' timing lets it. */
export function killSuite(kills: number, timeout: number): void {
  describe(`${kills * ROWS.length} kills at random moments, under traffic of every kind`, () => {
    const seed = chooseSeed();
    for (const [row, kernels] of ROWS.entries()) {
      it(`${kernels.join(" and ")} (PAMIR_SEED=${seed})`, { timeout }, async () => {
        const random = randomFrom(seed + row);
        const flags = new Int32Array(new SharedArrayBuffer(64));
        const kernelOf = (task: number) => kernels[task % kernels.length] as KernelName;
        const job = await launch(new URL("tasks/killed.js", import.meta.url), {
          tasks: 2,
          spare: kills,
          join: true,
          contexts: 1,
          laneBytes: 2048,
          heapBytes: 2 ** 26,
          kernel: [kernelOf(0), kernelOf(1)],
          args: { scenario: "survivor", seed: random.below(2 ** 31), flags },
        });
        const context = job.client.createContext();
        const mine = chaos(job.client, context, random.below(2 ** 31));
        let report: Seen | undefined;
        context.dispatch(STOP, ({ payload }) => {
          report = JSON.parse(new TextDecoder().decode(payload.slice()));
        });
        Atomics.store(flags, 1, 1);
        for (let kill = 0; kill < kills; kill++) {
          const how = HOWS[random.below(HOWS.length)] as string;
          const lifetime = 1 + random.below(40);
          const task = job.spawn({
            kernel: kernelOf(kill),
            args: { scenario: "victim", seed: random.below(2 ** 31), how, lifetime, flags },
            ...(how === "memory" && { workerOptions: { resourceLimits: { maxOldGenerationSizeMb: 24 } } }),
          });
          Atomics.store(flags, 1, task);
          const to = job.client.endpoint(task);
          // It is up, and in the midst of it.
          const end = performance.now() + PATIENCE;
          while (job.dump().tasks[task]?.state === "absent" && performance.now() < end) {
            mine.step(task);
            context.advance();
          }
          const enough = performance.now() + lifetime;
          while (performance.now() < enough) {
            mine.step(task);
            if (random.below(3) === 0) context.advance();
          }
          if (HOWS.indexOf(how) >= 3) void job.terminate(task);
          await untilEnded(context, to, random.below(2) === 0);
          if (mine.seen.wrong > 0) break;
        }
        await mine.finish();
        context.sendImmediate(job.client.endpoint(1), STOP);
        const waits = performance.now() + 30_000;
        while (report === undefined && performance.now() < waits)
          await context.progress({ timeout: 100 }).catch(() => {});
        await mine.leave();
        await context.whenEnded(job.client.endpoint(1), { timeout: PATIENCE });
        // The last of it comes back when this task has heard that the other one is gone.
        const heard = performance.now() + PATIENCE;
        while (job.dump().heap.owners.length > 1 && performance.now() < heard) context.advance();
        // Of its own it has a lane to itself, and the region's pages until it makes another; nothing is anybody else's.
        const { owners } = job.dump().heap;
        const lanes = job.dump().tasks.flatMap(({ contexts }) => contexts[0]?.lanes ?? []);
        const left = { others: owners.slice(1), lanes: lanes.filter(({ origin }) => origin[0] > 0) };
        await job.terminate();
        const quiet = { wrong: 0, why: "", pending: 0, calls: 0 };
        expect({ seed, mine: mine.seen, theirs: report, left }).toMatchObject({
          seed,
          mine: quiet,
          theirs: quiet,
          left: { others: [], lanes: [] },
        });
        expect(mine.seen.messages).toBeGreaterThan(0);
        expect((report as unknown as Seen).messages).toBeGreaterThan(0);
      });
    }
  });
}
