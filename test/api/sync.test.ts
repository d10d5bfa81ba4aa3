// Blocking forms for code that computes: sendSync() and flushSync(); and what a handler does instead.
import { EAGAIN, ERROR, type Result, SHUTDOWN, SUCCESS, TIMEDOUT } from "pamir";
import { describe, expect, it } from "vitest";
import { DATA, LINKED_VARIANTS, OTHER, openGate, PATIENCE, QUIT, RESULT, thrownBy, until, withJob } from "./support.js";

describe.each(LINKED_VARIANTS)("blocking forms: $name", (variant) => {
  it("sendSync() advances until there is room, and loses nothing", () =>
    withJob(
      variant,
      { scenario: "hold", laneBytes: 1024, context: { pendingBytes: 0 } },
      ({ client, context, flags }) => {
        const to = client.endpoint(1);
        let report: unknown;
        context.dispatch(RESULT, ({ payload }) => {
          report = JSON.parse(new TextDecoder().decode(payload.slice()));
        });
        const header = Int32Array.of(0);
        const payload = new Uint8Array(200);
        let sent = 0;
        while (context.send({ to, dispatch: DATA, header, payload }) === SUCCESS) sent++;
        openGate(flags, 0);
        for (let i = 0; i < 500; i++) {
          expect(context.sendSync({ to, dispatch: DATA, header, payload }, { timeout: PATIENCE })).toBe(SUCCESS);
          sent++;
        }
        expect(context.sendSync({ to, dispatch: QUIT })).toBe(SUCCESS);
        until(context, () => report !== undefined);
        expect(report).toBe(sent);
      },
    ));

  it("sendSync() ends with SHUTDOWN where its target does", () =>
    withJob(variant, { tasks: 1, contexts: 2, context: { pendingBytes: 0 } }, ({ client, context }) => {
      const target = client.createContext();
      const parameters = { to: target.endpoint, dispatch: DATA, payload: new Uint8Array(4000), queue: false };
      // Until its lane is not replaced by a larger one any more.
      for (let refused = 0; refused < 100; ) refused = context.send(parameters) === SUCCESS ? 0 : refused + 1;
      expect(context.sendSync(parameters, { timeout: 20 })).toBe(TIMEDOUT);
      context.post(() => {
        target.close();
        return SUCCESS;
      });
      expect(context.sendSync(parameters, { timeout: PATIENCE })).toBe(SHUTDOWN);
    }));

  it("a send in a handler waits in the pending queue, then comes to EAGAIN; a wait there is refused", () =>
    withJob(variant, { tasks: 1, contexts: 2, laneBytes: 1024, context: { pendingBytes: 10_000 } }, (given) => {
      const { client, context } = given;
      const target = client.createContext();
      const parameters = { to: target.endpoint, dispatch: DATA, payload: new Uint8Array(900) };
      const results: Result[] = [];
      let code = "";
      context.dispatch(OTHER, () => {
        for (let i = 0; i < 40; i++) results.push(context.send(parameters));
        code = thrownBy(() => context.sendSync(parameters)).code;
        expect(thrownBy(() => context.flushSync()).code).toBe("PAMIR_REENTRANT");
      });
      context.sendImmediate(context.endpoint, OTHER);
      until(context, () => results.length === 40);
      const accepted = results.filter((result) => result === SUCCESS).length;
      expect([results.at(-1), code]).toEqual([EAGAIN, "PAMIR_REENTRANT"]);
      expect(accepted).toBeGreaterThanOrEqual(11);
      let came = 0;
      target.dispatch(DATA, () => came++);
      for (let i = 0; i < 100; i++) for (const one of [target, context]) one.advance();
      expect(came).toBe(accepted);
    }));

  it("flushSync() returns once all transfers are done, with what came of them", () =>
    withJob(variant, { tasks: 1, heapBytes: 2 ** 26 }, ({ client, context }) => {
      const [local, remote] = [client.createRegion(2 ** 23), client.createRegion(2 ** 23)];
      local.bytes.fill(7);
      remote.bytes.fill(0);
      const put = { to: context.endpoint, local, remote: remote.handle };
      context.put({ ...put, onLocal: () => {} });
      expect(context.flushSync({ timeout: PATIENCE })).toBe(SUCCESS);
      expect(remote.bytes.every((byte) => byte === 7)).toBe(true);
      context.put({ ...put, onLocal: () => {} });
      remote.close();
      expect(context.flushSync({ timeout: PATIENCE })).toBe(ERROR);
      expect(context.flushSync()).toBe(SUCCESS);
    }));
});
