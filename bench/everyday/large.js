// @ts-check
// How the programs of this folder use messages of any size, in one place.
import { EAGAIN } from "pamir";

/** Sends that are under way at a time. */
const UNDER_WAY = 4;

/**
 * Calls `handler` with the payload of a message, once all of it is here; what it returns is what a call gets.
 * @param {import("pamir").Context} context
 * @param {number} id
 * @param {(payload: Uint8Array, origin: import("pamir").Endpoint) => any} handler
 */
export function onMessage(context, id, handler) {
  context.dispatch(id, (message) => {
    const { origin } = message;
    if (message.immediate) return handler(message.payload, origin);
    const payload = new Uint8Array(message.payloadBytes);
    return new Promise((resolve) => message.receive(payload, () => resolve(handler(payload, origin))));
  });
}

/**
 * A sender of payloads of any size; its promise resolves once the next may be sent.
 * @param {import("pamir").Context} context
 * @param {import("pamir").Endpoint} to
 * @param {number} dispatch
 */
export function sender(context, to, dispatch) {
  let underWay = 0;
  const onLocal = () => {
    underWay--;
  };
  return async (/** @type {Uint8Array} */ payload) => {
    while (underWay === UNDER_WAY) await context.progress();
    underWay++;
    while (context.send({ to, dispatch, payload, onLocal }) === EAGAIN) await context.progress();
  };
}
