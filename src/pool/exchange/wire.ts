// The messages between a caller and a worker that serves functions. Values are clones: see core/clone/tags.ts.
//
//   id          kind     from      payload                         reply
//   HELLO       call     caller    whether it has a port to it     [[name, …], whether both have it]: numbers are places
//   LENT        call     either    [number, name or null, args]    what the lent function, or the lent object's method, gives
//   RETURNED    message  either    [number, messages]              –: this side holds no more what so many messages have lent
//   ABORTED     message  either    [number, reason]                –: a signal that was lent is aborted
//   STREAM      call     caller    [stream, function, args]        nothing, once the function has given an iterable
//   PULL        call     caller    stream                          [values, whether it is over]
//   STOP        message  caller    stream                          –: the caller wants no more of it
//   SETTLED     call     caller    –                               what has moved last, once all has ended that it has given up
//   LEAVE       message  caller    –                               –: the worker closes its client
//   FUNCTIONS+n call     caller    arguments                       what function n gives
//
// Functions and streams have numbers, the latter of the caller's choice. Arguments are an array of them, or a single argument
// that is no array.
import type { Place } from "../../index.js";

export const HELLO = 0;
export const LENT = 1;
export const RETURNED = 2;
export const ABORTED = 3;
export const STREAM = 4;
export const PULL = 5;
export const STOP = 6;
export const SETTLED = 7;
export const LEAVE = 8;
export const FUNCTIONS = 16;

/** Functions that a worker serves at the most: DISPATCH_ID_MAX of them have a number. */
export const FUNCTIONS_MAX = 4096 - FUNCTIONS;

/** Arguments as they travel. */
export const packed = (args: readonly unknown[]): unknown =>
  args.length === 1 && !Array.isArray(args[0]) ? args[0] : args;
/** Arguments as they came. */
export const unpacked = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

/** The arguments of a request. */
export function argsOf(id: number, request: unknown): readonly unknown[] {
  if (id >= FUNCTIONS) return unpacked(request);
  return id === STREAM || id === LENT ? ((request as unknown[])[2] as unknown[]) : [];
}

/** A request with other arguments. */
export function withArgs(id: number, request: unknown, args: readonly unknown[]): unknown {
  return id >= FUNCTIONS ? args : [...(request as unknown[]).slice(0, 2), args];
}

/** The parts of a request by the names that its caller knows, for errors. */
export function placesOfRequest(id: number, request: unknown): readonly Place[] {
  const args = argsOf(id, request);
  const name = id === LENT ? (request as unknown[])[1] : undefined;
  const of = id !== LENT ? "" : typeof name === "string" ? ` of ${name}()` : " of a callback";
  const places = args.map((arg, i): Place => [`argument ${i + 1}${of}: value`, arg]);
  return places.length === 1 ? places : [...places, [`the arguments${of}`, args]];
}

/** The parts of a reply by the names that the caller knows, for errors. */
export function placesOfReply(id: number, reply: unknown): readonly Place[] {
  if (id !== PULL) return [[id === LENT ? "the result of a callback: value" : "the result: value", reply]];
  const [values] = reply as [unknown[]];
  const places = values.map((value): Place => ["a value of the stream: value", value]);
  return places.length === 1 ? places : [...places, ["the values of the stream", values]];
}
