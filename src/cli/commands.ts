// Where commands are: in the absolute folders of PATH. An empty or relative one is the current folder, or lies in it: others may
// write there.
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

/** The path of a command; undefined: no absolute folder of PATH has it. */
export function pathOf(command: string): string | undefined {
  const folders = (process.env.PATH ?? "").split(delimiter).filter(isAbsolute);
  return folders.map((folder) => join(folder, command)).find(isProgram);
}

/** The path of a command. @throws Error it is not installed */
export function needPath(command: string): string {
  const path = pathOf(command);
  if (path === undefined) throw new Error(`${command} is not installed`);
  return path;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
