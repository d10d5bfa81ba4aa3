// @ts-check
import { codecs, dispatchId } from "pamir";

/** @type {import("pamir").DispatchId<{ number: number }, number>} */
export const SQUARE = dispatchId(1, codecs.json(), codecs.json());
export const PORT = 2;
/** Words of the bare hand-off, in lines of their own: what went over, and what came back. */
export const WENT = 0;
export const CAME = 32;
