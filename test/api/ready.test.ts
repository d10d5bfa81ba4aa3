// Calls to a dispatch id that its target does not have: they wait until the target says that it is ready.
import { type Context, launch } from "pamir";
import { describe, expect, it } from "vitest";
import { COUNT, DATA, LINKED_VARIANTS, OTHER, PATIENCE, QUIT, rejectionOf, type Variant, withJob } from "./support.js";

const timeout = PATIENCE;
/** In a record, in packets or in a buffer. */
const SIZES = [0, 100, 30_000, 300_000];
/** More than the unexpected queue keeps: it would hold up what is behind it. */
const LARGE = 3_000_000;

function suite(variant: Variant): void {
  it("a call to an id without a handler waits until its target is ready, and is refused then", () =>
    withJob(variant, { module: "producer.js", scenario: "ready" }, async ({ context, client }) => {
      const to = client.endpoint(1);
      const refused = (id: number, bytes = 0) => rejectionOf(context.call(to, id, new Uint8Array(bytes), { timeout }));
      const early = SIZES.map((bytes) => refused(DATA + 20, bytes));
      let isWaiting = true;
      void Promise.race(early).then(() => {
        isWaiting = false;
      });
      // Behind them, to another id: they are kept by now.
      expect([...(await context.call(to, COUNT, null, { timeout }))]).toEqual([7]);
      expect(isWaiting).toBe(true);
      while (context.sendImmediate(to, QUIT) !== 0) await context.progress({ timeout });
      const text = `context 0 of task 1 has no handler of dispatch id 30; it has handlers of ${QUIT}, ${COUNT}, ${OTHER}`;
      for (const error of await Promise.all(early)) expect(error).toMatchObject({ code: "PAMIR_NO_HANDLER", text });
      for (const bytes of [...SIZES, LARGE]) expect((await refused(31, bytes)).code).toBe("PAMIR_NO_HANDLER");
      expect([...(await context.call(to, COUNT, null, { timeout }))]).toEqual([7]);
    }));
}

for (const variant of LINKED_VARIANTS) describe(`ready(): ${variant.name}`, () => suite(variant));

const alone = async (body: (context: Context) => Promise<void>): Promise<void> => {
  const job = await launch(null, { tasks: 1, join: true });
  await body(job.client.createContext());
  job.client.close();
  await job.exited;
};

it("a handler that is added later takes later calls; messages and loops are as before", () =>
  alone(async (context) => {
    const to = context.endpoint;
    context.sendImmediate(to, DATA, null, Uint8Array.of(1));
    const kept = context.call(to, DATA, null, { timeout });
    context.ready();
    context.ready();
    expect(await rejectionOf(kept)).toMatchObject({
      code: "PAMIR_NO_HANDLER",
      text: `context 0 of task 0 has no handler of dispatch id ${DATA}; it has none`,
    });
    context.sendImmediate(to, DATA, null, Uint8Array.of(2));
    expect((await rejectionOf(context.call(to, DATA, null, { timeout }))).code).toBe("PAMIR_NO_HANDLER");
    const seen: number[] = [];
    context.dispatch(DATA, (message) => {
      seen.push(message.payloadBytes === 0 ? 0 : message.getUint8(0));
      return Uint8Array.of(9);
    });
    expect([...(await context.call(to, DATA, null, { timeout }))]).toEqual([9]);
    // The messages have waited; of the calls, the last has come.
    expect(seen).toEqual([1, 2, 0]);
    // A loop reads the calls to its id, also before and behind it.
    const answers: Promise<Uint8Array>[] = [];
    const first = context.messages(OTHER, { timeout });
    for (let round = 0; round < 2; round++) {
      answers.push(context.call(to, OTHER, Uint8Array.of(round), { timeout }));
      if (round === 0) {
        const { value } = await first.next();
        (value as { reply(bytes: Uint8Array): void }).reply(Uint8Array.of(5));
        await first.return(undefined);
      }
    }
    for await (const { reply } of context.messages(OTHER, { timeout })) {
      reply?.(Uint8Array.of(6));
      break;
    }
    expect((await Promise.all(answers)).map(([byte]) => byte)).toEqual([5, 6]);
  }));

it("names at most 16 ids", () =>
  alone(async (context) => {
    for (let id = 1; id <= 40; id += 2) context.dispatch(id, () => undefined);
    context.ready();
    const { text } = await rejectionOf(context.call(context.endpoint, 2, null, { timeout }));
    const ids = Array.from({ length: 16 }, (_, i) => 2 * i + 1).join(", ");
    expect(text).toBe(`context 0 of task 0 has no handler of dispatch id 2; it has handlers of ${ids}, and 4 more`);
  }));
