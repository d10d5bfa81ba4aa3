// The limits in bare wasm: no ring, no dispatch, only the instruction. Made from this text (by binaryen, 240 bytes):
//
//   (module
//     (import "env" "memory" (memory 1 65536 shared))
//     (func (export "load") (param $at i32) (result i32) (i32.load (local.get $at)))
//     (func (export "add") (param $at i32) (param $value i32) (result i32)
//       (i32.atomic.rmw.add (local.get $at) (local.get $value)))
//     (func (export "copy") (param $to i32) (param $from i32) (param $bytes i32) (param $times i32)
//       (loop $again
//         (memory.copy (local.get $to) (local.get $from) (local.get $bytes))
//         (br_if $again (local.tee $times (i32.sub (local.get $times) (i32.const 1))))))
//     (func (export "lead") (param $last i32) (param $count i32) (result i32)
//       (loop $next
//         (local.set $last (i32.add (local.get $last) (i32.const 1)))
//         (i32.atomic.store (i32.const 0) (local.get $last))
//         (loop $wait (br_if $wait (i32.ne (i32.atomic.load (i32.const 128)) (local.get $last))))
//         (br_if $next (local.tee $count (i32.sub (local.get $count) (i32.const 1)))))
//       (local.get $last))
//     (func (export "follow") (local $seen i32) (local $now i32)
//       (loop $next
//         (loop $wait
//           (local.set $now (i32.atomic.load (i32.const 0)))
//           (br_if $wait (i32.eq (local.get $now) (local.get $seen))))
//         (local.set $seen (local.get $now))
//         (i32.atomic.store (i32.const 128) (local.get $now))
//         (br_if $next (i32.ne (local.get $now) (i32.const -1))))))
const MODULE =
  "AGFzbQEAAAABFgRgAX8Bf2ACf38Bf2AEf39/fwBgAAACEgEDZW52Bm1lbW9yeQIDAYCABAMGBQABAgEDByUFBGxvYWQAAANhZGQAAQRjb3B5AAIE" +
  "bGVhZAADBmZvbGxvdwAECooBBQcAIAAoAgALCgAgACAB/h4CAAsYAANAIAAgASAC/AoAACADQQFrIgMNAAsLLgADQCAAQQFqIQBBACAA/hcCAANA" +
  "QYAB/hACACAARw0ACyABQQFrIgENAAsgAAstAQJ/A0ADQEEA/hACACEBIAEgAEYNAAsgASEAQYABIAH+FwIAIAFBf0cNAAsL";

export interface BareWasm {
  /** Loads a word. */
  load(at: number): number;
  /** Adds to a word atomically: its old value. */
  add(at: number, value: number): number;
  /** memory.copy, `times` in a row. */
  copy(to: number, from: number, bytes: number, times: number): void;
  /** `count` round trips with a thread in follow(); returns the last number sent, to go on from. */
  lead(last: number, count: number): number;
  /** Answers until the number -1 comes. */
  follow(): void;
}

export function bareWasm(memory: WebAssembly.Memory): BareWasm {
  const module = new WebAssembly.Module(Buffer.from(MODULE, "base64"));
  return new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as BareWasm;
}
