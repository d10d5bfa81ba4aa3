// The options of a job whose processes another launcher has started: PAMIR_OPTIONS, as JSON.
import { PACKET_BYTES_MAX } from "../../../assembly/layout.js";
import { checkKeys, checkObject, type Keys } from "../../core/check.js";
import { checkInteger, PamiError, show } from "../../core/error.js";
import type { KernelName } from "../../core/kernel-name.js";
import { checkedKernel } from "../../kernel/open.js";
import { PACKET_BYTES_MIN } from "../../link/link.js";
import type { Impairments } from "../../link/lossy-link.js";
import { type LinkKinds, linkKindOf } from "../../link/registry.js";
import { SILENCE_DEFAULT } from "../../session/sessions-options.js";
import { environment } from "../../support/host.js";
import type { LimitOptions } from "../limits.js";

/** Options of `launch`, and of the link between nodes. */
export type ProcessJoinOptions = Pick<
  LimitOptions,
  "contexts" | "laneBytes" | "heapBytes" | "regions" | "fifos" | "slots"
> & {
  readonly kernel?: KernelName | undefined;
  /** Milliseconds without an answer after which a node is given up (default 60,000). */
  readonly silence?: number | undefined;
  /** Name of the kind of link that carries packets between nodes (default: the first kind of the registry). */
  readonly link?: string | undefined;
  /**
   * Where a node's agent works: on a thread of its own (default), or on the thread of the node's one task, which awaits and
   * never blocks.
   */
  readonly agent?: "thread" | "inline" | undefined;
  /** Bytes of the link's largest packet (default: the link's). */
  readonly packetBytes?: number | undefined;
  /** The port of node 0's link; node n has this port plus n (default: the system chooses). */
  readonly port?: number | undefined;
  /** Faults that each node's link gets, to try a program on a bad network. */
  readonly impairments?: SeededImpairments | undefined;
};

/** The kernels of a job. @throws PAMIR_NO_WASM */
export const kernelOf = ({ kernel }: ProcessJoinOptions): KernelName => checkedKernel(kernel);

/** The same seed gives the same faults to the same packets. */
export interface SeededImpairments extends Impairments {
  /** Milliseconds that each packet takes more. */
  readonly delay?: number | undefined;
  readonly seed?: number | undefined;
}

const KEYS: Keys<ProcessJoinOptions> = {
  contexts: true,
  laneBytes: true,
  heapBytes: true,
  regions: true,
  fifos: true,
  slots: true,
  kernel: true,
  silence: true,
  link: true,
  agent: true,
  packetBytes: true,
  port: true,
  impairments: true,
};
const IMPAIRMENTS: Keys<SeededImpairments> = {
  loss: true,
  duplicate: true,
  reorder: true,
  reorderPackets: true,
  delay: true,
  seed: true,
};
const IMPAIRMENTS_NAME = "impairments of PAMIR_OPTIONS";

/** Milliseconds. A node that runs may still not answer for some tens of milliseconds. */
const SILENCE_MIN = 100;
const SILENCE_MAX = 86_400_000;
/** Milliseconds: a way to the moon. */
const DELAY_MAX = 1300;
const PORT_MAX = 65_535;
export const SILENCE_DEFAULT_MS: number = SILENCE_DEFAULT / 1000;

/**
 * The options in PAMIR_OPTIONS.
 * @param kinds of links that the text may name @param text its value (default: that of the environment) @throws PAMIR_INVAL
 */
export function joinOptions(kinds: LinkKinds, text = environment("PAMIR_OPTIONS")): ProcessJoinOptions {
  if (text === undefined) return {};
  let options: ProcessJoinOptions;
  try {
    options = JSON.parse(text) as ProcessJoinOptions;
  } catch (cause) {
    const reason = (cause as Error).message;
    throw new PamiError("PAMIR_INVAL", `PAMIR_OPTIONS is ${show(text)}, not JSON: ${reason}`, { cause });
  }
  checkObject("PAMIR_OPTIONS", options);
  checkKeys("PAMIR_OPTIONS", options, KEYS);
  const { kernel, agent, packetBytes = PACKET_BYTES_MIN, port = 1 } = options;
  const { silence = SILENCE_DEFAULT_MS, impairments } = options;
  checkInteger("silence of PAMIR_OPTIONS", silence, SILENCE_MIN, SILENCE_MAX);
  checkOneOf("kernel", kernel, ["wasm", "ts"]);
  checkOneOf("agent", agent, ["thread", "inline"]);
  checkInteger("packetBytes of PAMIR_OPTIONS", packetBytes, PACKET_BYTES_MIN, PACKET_BYTES_MAX);
  if (packetBytes % 4 !== 0) {
    throw new PamiError("PAMIR_INVAL", `packetBytes of PAMIR_OPTIONS is ${packetBytes}, not a multiple of 4`);
  }
  checkLink(options, kinds);
  checkInteger("port of PAMIR_OPTIONS", port, 1, PORT_MAX);
  if (impairments !== undefined) checkImpairments(impairments);
  return options;
}

/** Checks that a link can do what the other options ask of it. @throws PAMIR_INVAL */
export function checkLink({ link, agent, packetBytes }: ProcessJoinOptions, kinds: LinkKinds): void {
  const { name, mayRest, packetBytesMax = PACKET_BYTES_MAX } = linkKindOf(kinds, link);
  if (agent === "inline" && mayRest !== true) {
    const others = kinds.filter((kind) => kind.mayRest).map((kind) => show(kind.name));
    const why = `its connections would keep the process running. Take link ${others.join(" or ")}`;
    throw new PamiError("PAMIR_INVAL", `agent of PAMIR_OPTIONS is "inline", but link is ${show(name)}: ${why}`);
  }
  if (packetBytes === undefined || packetBytes <= packetBytesMax) return;
  const limit = `link ${show(name)} carries at most ${packetBytesMax}`;
  throw new PamiError("PAMIR_INVAL", `packetBytes of PAMIR_OPTIONS is ${packetBytes}, and ${limit}`);
}

/** The port of a node's link; 0: the system chooses one. @throws PAMIR_INVAL there is no such port */
export function portOf({ port: first }: ProcessJoinOptions, node: number): number {
  if (first === undefined) return 0;
  if (first + node <= PORT_MAX) return first + node;
  const text = `port of PAMIR_OPTIONS is ${first}, so node ${node} would have port ${first + node}: the last is ${PORT_MAX}`;
  throw new PamiError("PAMIR_INVAL", text);
}

function checkOneOf(name: string, value: unknown, choices: readonly [string, string]): void {
  if (value === undefined || choices.includes(value as string)) return;
  throw new PamiError(
    "PAMIR_INVAL",
    `${name} of PAMIR_OPTIONS is ${show(value)}, not ${choices.map((choice) => show(choice)).join(" or ")}`,
  );
}

function checkImpairments(impairments: SeededImpairments): void {
  checkObject(IMPAIRMENTS_NAME, impairments);
  checkKeys(IMPAIRMENTS_NAME, impairments, IMPAIRMENTS);
  const { loss = 0, duplicate = 0, reorder = 0, reorderPackets = 1, delay = 0, seed = 0 } = impairments;
  for (const [name, value] of Object.entries({ loss, duplicate, reorder })) {
    if (typeof value === "number" && value >= 0 && value <= 1) continue;
    const text = `${name} in ${IMPAIRMENTS_NAME} is ${show(value)}, not a probability from 0 to 1`;
    throw new PamiError("PAMIR_INVAL", text);
  }
  checkInteger(`reorderPackets in ${IMPAIRMENTS_NAME}`, reorderPackets, 1, 1000);
  checkInteger(`delay in ${IMPAIRMENTS_NAME}`, delay, 0, DELAY_MAX);
  checkInteger(`seed in ${IMPAIRMENTS_NAME}`, seed, 0, 2 ** 32 - 1);
}
