// Dispatch ids that api.suite.ts and its tasks agree upon.
export const ANSWER = 1;
export const ECHO = 2;
export const LARGE = 3;
export const FORWARD = 4;
export const SEND = 5;
export const REGION = 6;
export const READ = 7;
export const HOLD = 8;
export const CLOSE = 9;
export const THROW = 10;
export const WATCH = 11;
