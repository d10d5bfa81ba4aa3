// Folders that no other user can enter or replace: for sockets, and for programs that are run then. Others know
// their names, and may have made something there first.
import { nodeModule } from "../host.js";

/** The number by which a user namespace shows the root outside of it. */
const OVERFLOW_USER = 65_534;
const STICKY = 0o1000;

type Stats = Record<"uid" | "mode", number>;

/**
 * Why other users may read or write a folder, or put another one in its place; undefined: they can't. Windows is not looked at:
 * a user's folders there are private by default.
 */
export function whyNotPrivate(folder: string): string | undefined {
  const fs = nodeModule("fs") as typeof import("node:fs");
  const user = process.geteuid?.();
  if (user === undefined) return undefined;
  // Not of what a symbolic link leads to: its maker may change that at any time.
  const stats = fs.lstatSync(folder);
  if (stats.isSymbolicLink()) return `${folder} is a symbolic link`;
  if (!stats.isDirectory()) return `${folder} is no folder`;
  if (stats.uid !== user) return `${folder} belongs to user ${stats.uid}, not to user ${user}`;
  if ((stats.mode & 0o077) !== 0) return `${folder} has mode ${octal(stats)}: other users may use it; make it 0700`;
  let path = fs.realpathSync(folder);
  for (;;) {
    const above = path.replace(/\/[^/]*$/, "") || "/";
    if (above === path) return undefined;
    const why = whyReplaceable(above, fs.lstatSync(above), user);
    if (why !== undefined) return why;
    path = above;
  }
}

/** Why other users may replace what lies in a folder. Its group may: administrators make groups. */
function whyReplaceable(path: string, stats: Stats, user: number): string | undefined {
  const { uid, mode } = stats;
  if (uid !== user && uid !== 0 && uid !== OVERFLOW_USER) return `${path} belongs to user ${uid}`;
  if ((mode & 0o002) !== 0 && (mode & STICKY) === 0)
    return `${path} has mode ${octal(stats)}: other users may write to it`;
  return undefined;
}

/** Makes a folder for this user alone, unless it is there. @throws Error it can't be made, or is not this user's alone */
export function makePrivateFolder(folder: string): void {
  const fs = nodeModule("fs") as typeof import("node:fs");
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  const why = whyNotPrivate(folder);
  if (why !== undefined) throw new Error(why);
}

function octal({ mode }: Stats): string {
  return (mode & 0o7777).toString(8).padStart(4, "0");
}
