// @ts-check
import { codecs, dispatchId } from "pamir";

/** @type {import("pamir").DispatchId<{ number: number }, number>} */
export const SQUARE = dispatchId(1, codecs.json(), codecs.json());
export const PORT = 2;
