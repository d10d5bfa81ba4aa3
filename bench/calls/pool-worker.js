// @ts-check
import { serve } from "pamir/pool";
import { echo, square } from "./functions.js";

export const api = serve({ square, echo });
