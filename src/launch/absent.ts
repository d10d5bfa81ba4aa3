// Stands in for what only Node can use, where a bundler makes a program for browsers. Nothing there calls it.

function absent(): never {
  throw new Error("this part of pamir is for Node only");
}

export const joinByLauncher = absent;
export const makeHost = absent;
export const openLink = absent;
export const openProcesses = absent;
export const ProcessMemories = absent;
export const futexOf = absent;
export const openInput = absent;
export const processSource = "";
