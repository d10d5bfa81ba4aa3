// A worker of `pamir tour`: one function, called by name.
import { serve } from "pamir/pool";

export const api = serve({ square: (n: number): number => n ** 2 });
