// Dispatch ids of the page with a strip.
export const HALO = 1;
export const STEP = 2;
export const UP = 3;
export const KILL = 4;
