// @ts-check
/** What is called, whoever calls it. @param {number} number */
export const square = (number) => number * number;
