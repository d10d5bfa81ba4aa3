// Dispatch ids of the measurements in a browser.
export const ANSWER = 1;
export const BALL = 2;
export const LATENCY = 3;
export const PING = 4;
export const STAMP = 5;
