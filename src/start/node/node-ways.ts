// How a node's packets go to other nodes: `pamir top` asks the node's agent by a port. So it costs nothing while it does not ask.
import type { LinkKind, LinkWays, NodeLink } from "../../link/kind.js";
import type { VisibleWay, VisibleWays } from "../../observe/visible.js";
import type { Sessions } from "../../session/sessions.js";
import { systemClock } from "../../support/clock.js";
import type { NodePort } from "../../support/host.js";
import { after } from "../../support/timers.js";

/** Nodes that an answer lists: some 70 bytes for each. */
const WAYS_MAX = 1024;
/** Milliseconds for the agent to answer: one that works within a task's waits may block. */
const ANSWER_MS = 1000;

/** The nodes of a job, as one of them sees them. */
interface Others {
  readonly own: number;
  /** Nodes with which the job has begun, and the most that it may have. */
  readonly begun: number;
  readonly most: number;
  readonly lost: ReadonlySet<number>;
}

/** The answer of an agent. */
export function waysOf(
  { link, kind }: { readonly link: NodeLink & Partial<LinkWays>; readonly kind: LinkKind },
  sessions: Pick<Sessions, "addressOf" | "counts">,
  { own, begun, most, lost }: Others,
): VisibleWays {
  const now = systemClock.now();
  const ways: VisibleWay[] = [];
  for (let node = 0; node < most && ways.length < WAYS_MAX; node++) {
    const to = sessions.addressOf(node);
    const hasEnded = lost.has(node);
    if (node === own || (to === "" && node >= begun && !hasEnded)) continue;
    const way = link.wayTo === undefined ? { by: kind.name, at: to.replace(`${kind.name}:`, "") } : link.wayTo(to);
    const age = way !== undefined && "since" in way ? Math.round(now - way.since) : undefined;
    ways.push({ node, by: way?.by, at: way?.at, age, hasEnded });
  }
  return { link: kind.name, isKnown: true, ways, traffic: link.traffic ?? [trafficOf(kind, sessions)] };
}

/** Packets of a link with one way. */
function trafficOf({ name }: LinkKind, { counts }: Pick<Sessions, "counts">): VisibleWays["traffic"][number] {
  const { data, retransmitted, acknowledgments, connects, taken } = counts;
  return { by: name, sent: data + retransmitted + acknowledgments + connects, received: taken, breaks: 0 };
}

/** In the agent: answers each question that comes by a port. It keeps no thread running. */
export function answerBy(port: NodePort, answer: () => VisibleWays): void {
  port.on("message", (question: number) => port.postMessage({ question, answer: answer() }));
  port.unref();
}

/** In the thread that answers `pamir top`: a function that asks the agent. @param link its kind */
export function asker(agent: NodePort, link: string): () => Promise<VisibleWays> {
  const waiting = new Map<number, (answer: VisibleWays) => void>();
  let questions = 0;
  agent.on("message", ({ question, answer }: { question: number; answer: VisibleWays }) => {
    waiting.get(question)?.(answer);
  });
  agent.unref();
  return () =>
    new Promise((resolve) => {
      const question = ++questions;
      const settle = (answer: VisibleWays): void => {
        cancel();
        waiting.delete(question);
        resolve(answer);
      };
      const cancel = after(ANSWER_MS, () => settle({ link, isKnown: false, ways: [], traffic: [] }));
      waiting.set(question, settle);
      agent.postMessage(question);
    });
}
