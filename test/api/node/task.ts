// What the tasks of agent-thread.test.ts do.
import { setTimeout as sleep } from "node:timers/promises";
import { EAGAIN, type Result, SUCCESS } from "../../../src/core/result.js";
import type { Client } from "../../../src/pami/client.js";
import type { Context } from "../../../src/pami/context.js";

const [PING, PONG, READY, ECHO, BYE] = [1, 2, 3, 4, 5];

/** Repeats what comes to EAGAIN; anything else than SUCCESS is an error. */
function begin(context: Context, attempt: () => Result): void {
  let result = attempt();
  while (result === EAGAIN) {
    context.advance();
    result = attempt();
  }
  if (result !== SUCCESS) throw new Error(`comes to ${result}`);
}

type Program = (client: Client, say: (news: string) => void) => Promise<unknown>;

const programs: Record<string, Program> = {
  /** Tasks 0 and `other` play ping-pong; both block. */
  async pingPong(client) {
    const context = client.createContext();
    const rounds = 2000;
    const other = client.size - 1;
    let count = 0;
    if (client.task === 0) {
      context.dispatch(PONG, () => void count++);
      for (let round = 1; round <= rounds; round++) {
        begin(context, () =>
          context.send({ to: client.endpoint(other), dispatch: PING, payload: Int32Array.of(round) }),
        );
        context.advanceUntil(() => count === round);
      }
      begin(context, () => context.send({ to: client.endpoint(other), dispatch: BYE }));
      await context.drain();
    } else if (client.task === other) {
      let isOver = false;
      context.dispatch(PING, (message) => {
        if (message.payload[0] !== (++count & 255)) throw new Error(`out of order: ${count}`);
        begin(context, () => context.sendImmediate(client.endpoint(0), PONG));
      });
      context.dispatch(BYE, () => {
        isOver = true;
      });
      context.advanceUntil(() => isOver);
    }
    client.close();
    return count;
  },

  /** Every task puts into, adds to and gets from a region of each other one; calls it; offers it a payload. */
  async all(client) {
    const context = client.createContext();
    const { size, task } = client;
    const region = client.createRegion(size * 64);
    region.bytes.fill(0);
    const handles = new Map<number, number>();
    let [ready, offered, bye] = [0, 0, 0];
    context.dispatch(READY, ({ origin, payload }) => {
      handles.set(client.taskOf(origin), new Float64Array(payload.slice().buffer)[0] as number);
      ready++;
    });
    context.dispatch(BYE, () => void bye++);
    context.dispatch(ECHO, (message) => message.payload.slice());
    context.dispatch(PING, (message) => {
      const bytes = new Uint8Array(message.payloadBytes);
      message.receive(bytes, (_, result) => {
        if (result === SUCCESS && bytes.every((byte, i) => byte === (i & 255))) offered++;
      });
    });
    const others = Array.from({ length: size }, (_, other) => other).filter((other) => other !== task);
    for (const other of others) {
      const payload = Float64Array.of(region.handle);
      begin(context, () => context.send({ to: client.endpoint(other), dispatch: READY, payload }));
    }
    context.advanceUntil(() => ready === others.length);
    const local = client.createRegion(4096);
    new Int32Array(local.bytes.buffer, local.bytes.byteOffset, 16).fill(task + 1);
    let open = 0;
    const done = (_: unknown, result: number): void => {
      open--;
      if (result !== SUCCESS) throw new Error(`came to ${result}`);
    };
    for (const other of others) {
      const [to, remote] = [client.endpoint(other), handles.get(other) as number];
      open += 2;
      begin(context, () => context.put({ to, local, remote, remoteOffset: 64 * task, bytes: 32, onRemote: done }));
      begin(context, () =>
        context.rmw({ to, remote, remoteOffset: 64 * other + 32, operation: "add", value: task + 1, onDone: done }),
      );
      const payload = Uint8Array.from({ length: 300_000 }, (_, i) => i);
      open++;
      begin(context, () =>
        context.send({ to, dispatch: PING, payload, rendezvous: true, onLocal: () => {}, onRemote: done }),
      );
    }
    context.advanceUntil(() => open === 0 && offered === others.length);
    for (const other of others) {
      const reply = await context.call(client.endpoint(other), ECHO, Uint8Array.of(task, other));
      if (reply[0] !== task || reply[1] !== other) throw new Error("wrong reply");
      begin(context, () => context.send({ to: client.endpoint(other), dispatch: BYE }));
    }
    // One that has everything already may have sent its second one.
    context.advanceUntil(() => bye >= others.length);
    const words = new Int32Array(region.bytes.buffer, region.bytes.byteOffset, size * 16);
    const sums = others.map((other) => words[16 * other] as number);
    const got = client.createRegion(64);
    open = 1;
    const first = others[0] as number;
    const remote = handles.get(first) as number;
    begin(context, () => context.get({ to: client.endpoint(first), local: got, remote, bytes: 64, onLocal: done }));
    context.advanceUntil(() => open === 0);
    const sum = words[16 * task + 8];
    await context.drain();
    // So that none leaves before the others have read.
    for (const other of others) begin(context, () => context.send({ to: client.endpoint(other), dispatch: BYE }));
    context.advanceUntil(() => bye === 2 * others.length);
    await context.drain();
    client.close();
    return { sums, sum };
  },

  /** Task 1 waits for the end of its node's agent: it goes on with its sibling, and others are out of reach. */
  async cutOff(client, say) {
    const context = client.createContext();
    let came = 0;
    context.dispatch(PING, () => void came++);
    const far = client.endpoint(client.size - 1);
    const near = client.endpoint(client.task ^ 1);
    if (client.task < 2) {
      // It knows the far task before.
      let isKnown = false;
      const onRemote = (): void => {
        isKnown = true;
      };
      context.send({ to: far, dispatch: PING, onRemote });
      context.advanceUntil(() => isKnown, { timeout: 60_000 });
      say("known");
      await context.whenEnded(far, { timeout: 60_000 });
      const result = context.sendImmediate(far, PING);
      const other = context.sendImmediate(client.endpoint(2), PING);
      context.send({ to: near, dispatch: PING });
      context.advanceUntil(() => came > 0, { timeout: 60_000 });
      client.close();
      return [result, other, came];
    }
    // Far tasks go on: their own end must not be what the others hear of.
    for (;;) {
      context.advance();
      await sleep(10);
    }
  },
};

/** @param say tells the test something before the end */
export function runTask(program: string, client: Client, say: (news: string) => void): Promise<unknown> {
  return (programs[program] as Program)(client, say);
}
