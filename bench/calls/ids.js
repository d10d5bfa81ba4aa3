// @ts-check
import { codecs, dispatchId } from "pamir";

/** @type {import("pamir").DispatchId<{ number: number }, number>} */
export const SQUARE = dispatchId(1, codecs.json(), codecs.json());
export const PORT = 2;
/** Of Comlink over pamir: values as a MessagePort copies them. */
export const CODEC = codecs.clone();
/** Words of the bare hand-off, in lines of their own: what went over, and what came back. */
export const WENT = 0;
export const CAME = 32;
