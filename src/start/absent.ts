// Stands in for what only Node can use, where a bundler makes a program for browsers. No code calls this module there. Some
// bundlers (Parcel) look up each imported name, so this module has all of them.

function absent(): never {
  throw new Error("this part of pamir is for Node only");
}

export const findYield = (): undefined => undefined;
export const joinByLauncher = absent;
export const joinLaunched = absent;
export const makeHost = absent;
export const openInlineAgent = absent;
export const openInput = absent;
export const openLink = absent;
export const openProcesses = absent;
export const taskFutexOf = absent;
export const processSource = "";
