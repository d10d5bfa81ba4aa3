// @ts-check
import { serve } from "pamir/pool";
import { api } from "./call-api.js";

await serve(api);
