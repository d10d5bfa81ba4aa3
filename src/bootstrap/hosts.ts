// Lists of hosts for a job, in the formats of launchers, and which task goes to which host.
//
//  --hosts     a:4,b:4            MPICH's spelling; a host without a number has one slot
//  host file   a slots=4          Open MPI's; also max_slots=8 or max-slots=8; # begins a comment
//              b:4                MPICH's; both spellings may be in one file. Its fields binding= and ifname= are ignored
//
// A host is a name or an address, maybe with a user before it: me@a. An IPv6 address needs brackets before a number:
// [2001:db8::1]:4. A host that is named again gets the sum of its slots.
import { PamiError } from "../core/error.js";
import { quote } from "./text.js";

/** Tasks that a host has room for. */
export interface HostSlots {
  /** A name, an address without brackets, or either with a user: "me@a". */
  readonly host: string;
  readonly slots: number;
  /** Most tasks, with `oversubscribe`; undefined if there is no limit. */
  readonly maxSlots: number | undefined;
}

/** Consecutive tasks on one host. */
export interface HostPlacement {
  readonly host: string;
  readonly firstTask: number;
  readonly count: number;
}

/** Most slots of a host, and most tasks. */
const SLOTS_MAX = 65_536;
/** Most hosts of a list. */
const HOSTS_MAX = 65_536;
/** Fields of MPICH: which processors a process has, and at which interface the launcher listens. */
const IGNORED = /^(binding|ifname)=./;
const USER = /^\w[\w.-]*$/;
const NAME = /^\w[\w.-]{0,252}$/;
const ADDRESS = /^[\da-fA-F:.]{2,45}(?:%\w+)?$/;

/**
 * The hosts of a list such as "a:4,b:4".
 * @param option the list's name in errors
 * @throws PAMIR_HOSTS with the place of the malformed entry
 */
export function parseHosts(list: string, option = "--hosts"): HostSlots[] {
  const hosts = new HostList();
  for (const [i, entry] of list.split(",").entries()) {
    const where = `${option}, entry ${i + 1}`;
    hosts.add(where, withFields(where, parseHost(where, entry.trim()), []));
  }
  return hosts.all(option);
}

/**
 * The hosts of a host file.
 * @param file the file's name in errors
 * @param warn called with a text for each field that is ignored
 * @throws PAMIR_HOSTS with the line and the malformed field
 */
export function parseHostFile(text: string, file: string, warn: (text: string) => void = () => {}): HostSlots[] {
  const hosts = new HostList();
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/);
  for (const [i, line] of lines.entries()) {
    const where = `${file}, line ${i + 1}`;
    const [first, ...fields] = line
      .replace(/#.*$/, "")
      .split(/[ \t]+/)
      .filter((field) => field !== "");
    if (first === undefined) continue;
    const kept = fields.filter((field) => !IGNORED.test(field));
    for (const field of fields) if (!kept.includes(field)) warn(`${where}: the field ${quote(field)} is ignored`);
    hosts.add(where, withFields(where, parseHost(where, first), kept));
  }
  return hosts.all(file);
}

/**
 * Places tasks on hosts in blocks: the first host gets the first tasks.
 * @param ppn tasks on each host, instead of its slots
 * @param oversubscribe whether further tasks are dealt out, host by host, up to `maxSlots`, once all slots are taken
 * @returns hosts with at least one task, in the order of the list
 * @throws PAMIR_HOSTS if there is not enough room; PAMIR_INVAL if a number is out of range
 */
export function placeTasks(
  tasks: number,
  hosts: readonly HostSlots[],
  { ppn, oversubscribe = false }: { readonly ppn?: number | undefined; readonly oversubscribe?: boolean } = {},
): HostPlacement[] {
  checkCount("tasks", tasks);
  if (ppn !== undefined) checkCount("ppn", ppn);
  const counts = hosts.map(({ host, slots, maxSlots }) => {
    if (ppn === undefined) return slots;
    if (ppn <= (maxSlots ?? SLOTS_MAX)) return ppn;
    throw new PamiError("PAMIR_HOSTS", `--ppn is ${ppn}, but ${host} takes at most ${maxSlots} tasks`);
  });
  let room = counts.reduce((sum, count) => sum + count, 0);
  if (room < tasks && oversubscribe && ppn === undefined) {
    for (let isFull = false; room < tasks && !isFull; ) {
      isFull = true;
      for (const [i, { maxSlots }] of hosts.entries()) {
        if (room === tasks || (counts[i] as number) >= (maxSlots ?? SLOTS_MAX)) continue;
        counts[i] = (counts[i] as number) + 1;
        room++;
        isFull = false;
      }
    }
  }
  if (room < tasks) {
    const each = ppn === undefined ? (oversubscribe ? "tasks at most" : "slots") : `tasks by --ppn ${ppn}`;
    throw new PamiError("PAMIR_HOSTS", `${tasks} tasks don't fit: ${hosts.length} hosts have ${room} ${each}`);
  }
  const placements: HostPlacement[] = [];
  let firstTask = 0;
  for (const [i, { host }] of hosts.entries()) {
    const count = Math.min(counts[i] as number, tasks - firstTask);
    if (count > 0) placements.push({ host, firstTask, count });
    firstTask += count;
  }
  return placements;
}

/** Hosts in the order in which the list first names them. */
class HostList {
  readonly #hosts = new Map<string, HostSlots>();

  add(where: string, added: HostSlots): void {
    const known = this.#hosts.get(added.host);
    const slots = (known?.slots ?? 0) + added.slots;
    if (slots > SLOTS_MAX)
      throw new PamiError("PAMIR_HOSTS", `${where}: ${added.host} gets ${slots} slots, more than ${SLOTS_MAX}`);
    const maxSlots = added.maxSlots ?? known?.maxSlots;
    if (maxSlots !== undefined && maxSlots < slots) {
      throw new PamiError("PAMIR_HOSTS", `${where}: ${added.host} has ${slots} slots, but max_slots=${maxSlots}`);
    }
    this.#hosts.set(added.host, { host: added.host, slots, maxSlots });
    if (this.#hosts.size > HOSTS_MAX) throw new PamiError("PAMIR_HOSTS", `${where}: more than ${HOSTS_MAX} hosts`);
  }

  all(source: string): HostSlots[] {
    if (this.#hosts.size === 0) throw new PamiError("PAMIR_HOSTS", `${source} names no host`);
    return [...this.#hosts.values()];
  }
}

/** An entry of a list; undefined if the number is missing. */
interface Entry {
  readonly host: string;
  readonly slots: number | undefined;
}

/** "host", "host:4", "user@host:4", "[address]:4". */
function parseHost(where: string, text: string): Entry {
  const [, user, six, name, digits] = /^(?:([^@]*)@)?(?:\[([^\]]*)\]|([^:[\]]*))(?::(.*))?$/.exec(text) ?? [];
  const isRight =
    (user === undefined || USER.test(user)) &&
    (six === undefined ? name !== undefined && NAME.test(name) : six.includes(":") && ADDRESS.test(six));
  if (!isRight) {
    // "::1" alone has no number: the last part of an address can't be told from slots.
    const hint = /:.*:/.test(text) && !text.includes("[") ? "; an IPv6 address needs brackets" : "";
    throw new PamiError("PAMIR_HOSTS", `${where}: ${quote(text)} is no host${hint}`);
  }
  const host = `${user === undefined ? "" : `${user}@`}${six ?? name}`;
  return { host, slots: digits === undefined ? undefined : slotsOf(where, "slots", digits) };
}

/** The fields behind a host, in Open MPI's spelling. */
function withFields(where: string, { host, slots }: Entry, fields: readonly string[]): HostSlots {
  const seen = new Map<string, number>(slots === undefined ? [] : [["slots", slots]]);
  for (const field of fields) {
    const [, given, digits] = /^(slots|max[_-]slots)=(.*)$/.exec(field) ?? [];
    if (given === undefined) {
      throw new PamiError("PAMIR_HOSTS", `${where}: the field ${quote(field)} is none of slots=, max_slots=`);
    }
    const name = given.replace("-", "_");
    if (seen.has(name)) throw new PamiError("PAMIR_HOSTS", `${where}: ${quote(field)} gives ${name} a second time`);
    seen.set(name, slotsOf(where, name, digits as string));
  }
  return { host, slots: seen.get("slots") ?? 1, maxSlots: seen.get("max_slots") };
}

function slotsOf(where: string, name: string, digits: string): number {
  const slots = /^[1-9]\d{0,5}$/.test(digits) ? Number(digits) : Number.NaN;
  if (slots <= SLOTS_MAX) return slots;
  throw new PamiError("PAMIR_HOSTS", `${where}: ${name} is ${quote(digits)}, not an integer from 1 to ${SLOTS_MAX}`);
}

function checkCount(name: string, value: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= SLOTS_MAX) return;
  throw new PamiError("PAMIR_INVAL", `${name} is ${value}, not an integer from 1 to ${SLOTS_MAX}`);
}
