// Arguments, environment, clocks, chance, and the end of a program.
import { encodeText } from "../../support/text.js";
import { ProgramExit, ProgramSignal } from "../exit.js";
import type { WasiCall, WasiState } from "./host.js";
import { CLOCK, fail, nanoseconds } from "./numbers.js";

const POINTER_BYTES = 4;
/** Resolution that the program is told: of `performance.now()`, rounded by hosts. */
const RESOLUTION = 1_000n;
/** crypto.getRandomValues() takes no more at once. */
const RANDOM_BYTES_MAX = 65_536;

export function processCalls(state: WasiState): Record<string, WasiCall> {
  const { host, memory, descriptors } = state;
  const args = host.args.map((text) => encodeText(`${text}\0`));
  const variables = Object.entries(host.env).map(([name, value]) => encodeText(`${name}=${value}\0`));
  const begin = host.now();

  const sizes = (list: readonly Uint8Array[], count: number, bytes: number): void => {
    memory.setU32(count, list.length);
    memory.setU32(
      bytes,
      list.reduce((sum, { length }) => sum + length, 0),
    );
  };
  const texts = (list: readonly Uint8Array[], pointers: number, bytes: number): void => {
    let at = bytes >>> 0;
    for (const [i, text] of list.entries()) {
      memory.setU32((pointers >>> 0) + i * POINTER_BYTES, at);
      memory.put(at, text);
      at += text.length;
    }
  };

  return {
    args_sizes_get: (count: number, bytes: number) => sizes(args, count, bytes),
    args_get: (pointers: number, bytes: number) => texts(args, pointers, bytes),
    environ_sizes_get: (count: number, bytes: number) => sizes(variables, count, bytes),
    environ_get: (pointers: number, bytes: number) => texts(variables, pointers, bytes),
    clock_res_get(clock: number, result: number) {
      if (clock >>> 0 > CLOCK.thread) fail("INVAL");
      memory.setU64(result, RESOLUTION);
    },
    clock_time_get(clock: number, _precision: bigint, result: number) {
      memory.setU64(result, timeOf(state, clock, begin));
    },
    random_get(pointer: number, count: number) {
      const into = memory.part(pointer, count);
      for (let at = 0; at < into.length; at += RANDOM_BYTES_MAX) {
        const part = into.subarray(at, at + RANDOM_BYTES_MAX);
        // No host draws into shared memory.
        part.set(crypto.getRandomValues(new Uint8Array(part.length)));
      }
    },
    sched_yield() {},
    proc_exit(code: number) {
      descriptors.closeAll();
      throw new ProgramExit(code >>> 0);
    },
    proc_raise(signal: number) {
      if (signal === 0) return;
      throw new ProgramSignal(signal);
    },
    sock_accept: () => fail("NOTSUP"),
    sock_recv: () => fail("NOTSUP"),
    sock_send: () => fail("NOTSUP"),
    sock_shutdown: () => fail("NOTSUP"),
  };
}

/** Nanoseconds of a clock. No host tells a thread's processor time: those clocks show the time since the program began. */
export function timeOf({ host }: WasiState, clock: number, begin = 0): bigint {
  if (clock === CLOCK.wall) return nanoseconds(host.wallTime());
  if (clock === CLOCK.monotonic) return nanoseconds(host.now());
  if (clock === CLOCK.process || clock === CLOCK.thread) return nanoseconds(host.now() - begin);
  return fail("INVAL");
}
