// Task 1 of a job, on a page. It answers calls, takes large payloads, and does what its test asks for.
import { openWebSocketLink } from "../../../src/link/websocket/websocket-server.js";
import type { Context } from "../../../src/pami/context.js";
import { startWebNode, type WebNode } from "../../support/web-node.js";

export const [DOUBLE, BULK, NUMBER] = [1, 2, 3];

/** A payload that shows by its bytes where they belong. */
export function patternOf(bytes: number): Uint8Array {
  return Uint8Array.from({ length: bytes }, (_, i) => i ^ (i >>> 8) ^ (i >>> 16));
}

/** Whether a payload has the bytes of the pattern. */
export function isPattern(bytes: Uint8Array): boolean {
  return bytes.every((byte, i) => byte === ((i ^ (i >>> 8) ^ (i >>> 16)) & 255));
}

/** What either task does: it doubles what a call brings, and counts large payloads and numbers that are right. */
export function answer(context: Context): { bulks: number; numbers: number; wrong: string[] } {
  const heard = { bulks: 0, numbers: 0, wrong: [] as string[] };
  context.dispatch(DOUBLE, (message) => Int32Array.of(2 * message.getInt32(0)));
  context.dispatch(BULK, (message) => {
    const into = new Uint8Array(message.payloadBytes);
    message.receive(into, (_, result) => {
      if (result !== 0) return;
      if (!isPattern(into)) heard.wrong.push("bytes of a payload");
      heard.bulks++;
    });
  });
  context.dispatch(NUMBER, (message) => {
    if (message.getInt32(0) !== heard.numbers++) heard.wrong.push(`${message.getInt32(0)}, not ${heard.numbers - 1}`);
  });
  return heard;
}

/** Calls the other task. */
export async function double(context: Context, to: number, value: number): Promise<number> {
  const reply = await context.call(to, DOUBLE, Int32Array.of(value), { timeout: 60_000 });
  return new DataView(reply.buffer, reply.byteOffset).getInt32(0, true);
}

/** Sends a large payload; its result. */
export function bulk(context: Context, to: number, bytes: number): Promise<number> {
  const payload = patternOf(bytes);
  return new Promise((resolve) => {
    const onLocal = (_: unknown, result: number): void => resolve(result);
    const result = context.send({ to, dispatch: BULK, payload, rendezvous: true, onLocal });
    if (result !== 0) resolve(result);
  });
}

/** Sends numbers from 0 on. */
export async function count(context: Context, to: number, numbers: number, isSlow: boolean): Promise<void> {
  for (let number = 0; number < numbers; ) {
    if (context.sendImmediate(to, NUMBER, null, Int32Array.of(number)) === 0) number++;
    else await context.whenRoom(to, 4, { timeout: 60_000 });
    if (isSlow) await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

let web: (WebNode & { context: Context; heard: ReturnType<typeof answer> }) | undefined;

/** What the test calls on the page. */
if (typeof document !== "undefined") {
  Object.assign(globalThis, {
    web: {
      async start(server: string, key: readonly number[], silence: number) {
        const link = await openWebSocketLink();
        const node = await startWebNode(1, link, server, Uint8Array.from(key), silence);
        const context = node.client.createContext();
        web = { ...node, context, heard: answer(context) };
        // Advances for as long as the page lives.
        for (;;) await context.progress();
      },
      double: (value: number) => double((web as NonNullable<typeof web>).context, 0, value),
      bulk: (bytes: number) => bulk((web as NonNullable<typeof web>).context, 0, bytes),
      count: (numbers: number) => count((web as NonNullable<typeof web>).context, 0, numbers, true),
      heard: () => web?.heard,
      lost: () => web?.lost,
    },
  });
}
