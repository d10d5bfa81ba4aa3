// @ts-check
// A pool's worker that serves move-functions.js.
import { serve } from "pamir/pool";
import { api as functions } from "./move-functions.js";

export const api = serve(functions);
