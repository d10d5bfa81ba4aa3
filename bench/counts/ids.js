// @ts-check
export const CALL = 1;
export const SEND = 2;
export const BEGIN = 3;
export const END = 4;
export const PUT = 5;
export const ALLREDUCE = 6;
export const BARRIER = 7;
export const AGAIN = 8;
