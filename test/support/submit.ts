import type { Sessions } from "../../src/session/sessions.js";

const NO_BYTES = new Uint8Array(0);

/** Queues a copy of a segment, as Sessions.claim() does. @returns false: the node's queue is full, or there are no sessions */
export function submit(
  sessions: Pick<Sessions, "claim"> | undefined,
  node: number,
  origin: number,
  target: number,
  kind: number,
  content: Uint8Array,
): boolean {
  const packet = sessions?.claim(node, origin, target, kind, content.length);
  packet?.put(content, NO_BYTES);
  return packet !== undefined;
}
