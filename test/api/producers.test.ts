// Loops over messages end once nobody can send to them any more, behind the last message.
import { type Context, type Endpoint, launch, type MessagesOptions, type PamiError } from "pamir";
import { describe, expect, it } from "vitest";
import { DATA, LINKED_VARIANTS, PATIENCE, rejectionOf, type Variant, withJob } from "./support.js";

const COUNT = 40;
const timeout = PATIENCE;

/** Reads to the end of a loop. @returns how many messages came of each task */
async function read(context: Context, options: MessagesOptions = {}): Promise<number[]> {
  const counts: number[] = [];
  for await (const { task } of context.messages(DATA, { timeout, ...options })) counts[task] = (counts[task] ?? 0) + 1;
  return counts;
}

function suite(variant: Variant): void {
  const job = (ends: readonly string[], more: object = {}) => ({
    module: "producer.js",
    scenario: "send",
    tasks: ends.length + 1,
    args: { ends: ["", ...ends], count: COUNT, bytes: 3000 },
    onExit: () => {},
    ...more,
  });

  it("all that was sent comes first, then the loop ends: producers that close their clients, or return", () =>
    withJob(variant, job(["close", "return", "close"]), async ({ context }) => {
      expect(await read(context)).toEqual([undefined, COUNT, COUNT, COUNT]);
    }));

  it.each([
    ["exit", "task 2 exited with code 3"],
    ["throw", "in the middle of it"],
  ])("the end of a producer that failed is thrown, behind all that was sent: %s", (how, message) =>
    withJob(variant, job(["close", how]), async ({ context }) => {
      const counts = [0, 0, 0];
      const loop = async () => {
        for await (const { task } of context.messages(DATA, { timeout })) counts[task] = (counts[task] as number) + 1;
      };
      const error = await rejectionOf(loop());
      expect(error).toMatchObject({ code: "PAMIR_SHUTDOWN", cause: { message } });
      expect(error.text).toContain("messages(): context 0 of task 2 has ended: ");
      expect(counts).toEqual([0, COUNT, COUNT]);
    }),
  );

  it("chosen endpoints end it: others go on, a context closes while its task goes on, more tasks may come", () =>
    withJob(variant, job(["context", "stay"], { maxTasks: 4 }), async ({ context, client }) => {
      const counts = await read(context, { from: [client.endpoint(1)] });
      expect(counts[1]).toBe(COUNT);
      // The other one goes on, so the next loop, without a choice, does not end.
      const error = await rejectionOf(read(context, { timeout: 1000 }));
      expect(error.code).toBe("PAMIR_TIMEDOUT");
    }));
}

for (const variant of LINKED_VARIANTS) describe(`producers: ${variant.name}`, () => suite(variant));

describe("whose end ends the loop", () => {
  const alone = { tasks: 1, join: true } as const;

  it("none, by default: a job of one task sends to itself", async () => {
    const job = await launch(null, alone);
    const context = job.client.createContext();
    context.sendImmediate(0, DATA);
    const messages = context.messages(DATA, { timeout: 20 });
    expect((await messages.next()).done).toBe(false);
    expect((await rejectionOf(messages.next())).code).toBe("PAMIR_TIMEDOUT");
    job.client.close();
    await job.exited;
  });

  it("an empty choice ends it behind what is there; what is not of endpoints is refused", async () => {
    const job = await launch(null, alone);
    const context = job.client.createContext();
    for (let i = 0; i < 3; i++) context.sendImmediate(0, DATA);
    context.advance();
    let count = 0;
    for await (const _ of context.messages(DATA, { timeout, from: [0, 0] })) if (++count === 3) break;
    expect(count).toBe(3);
    for await (const _ of context.messages(DATA, { timeout, from: [] })) count++;
    expect(count).toBe(3);
    for (const from of [[1], ["0"], [-1], [2 ** 24 * 4], 0, {}, null] as unknown as Endpoint[][]) {
      let error: PamiError | undefined;
      try {
        context.messages(DATA, { from });
      } catch (thrown) {
        error = thrown as PamiError;
      }
      expect(error?.code, `${from}`).toBe("PAMIR_INVAL");
    }
    job.client.close();
    await job.exited;
  });
});
