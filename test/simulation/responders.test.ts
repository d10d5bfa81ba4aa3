// Which responder a connect packet takes, while a member of the job that has the key states the numbers of other nodes: it holds up
// the sessions of a node until its responders are idle, and no longer. Each row is a node's turn after what the liar has sent.
import { describe, expect, it } from "vitest";
import {
  PACKET_ACCEPT,
  PACKET_DISCONNECT,
  PACKET_REFUSE,
  PACKET_SIZE,
  REFUSED_BUSY,
  REFUSED_NAME,
} from "../../assembly/layout.js";
import { nodeKeyScheduleOf } from "../../src/seal/node.js";
import { forgedConnect } from "../support/forged-connect.js";
import { JOB, keyOf, type SimulatedNode, Simulation } from "./nodes.js";

const schedule = nodeKeyScheduleOf(keyOf(1), JOB);
const [VICTIM, STATED, OTHER, THIRD, OPEN] = [0, 1, 2, 3, 4] as const;
const NODES = 5;
/** The epoch of a node's first start. */
const FIRST = 65_536;
const SECOND = 1_000_000;

/** A connect packet, at a time in microseconds. */
interface Turn {
  readonly at: number;
  readonly serial: number;
  readonly node?: number;
  readonly epoch?: number;
  /** Packets of the same number have the same initiator and nonce: the second repeats the first. */
  readonly same?: number;
}

/** How the victim answers: the index of the responder that it has taken, or why it refuses; undefined: it does not answer. */
type Answer = number | "busy" | "name" | undefined;

/** The answer to each turn. @param responders of the victim @param isOpen another node has a session with it from the start */
function answersOf(turns: readonly Turn[], responders: number, isOpen: boolean): Answer[] {
  const sessions = { responders };
  const simulation = new Simulation({ seed: 1, nodes: NODES, sessions, sessionsOf: () => ({ keySchedule: schedule }) });
  const { network } = simulation;
  const victim = simulation.nodes[VICTIM] as SimulatedNode;
  let answer: Answer;
  network.isLost = (from, to, packet) => {
    // The session of that node stays open: the packet that ends it is lost.
    if (from === OPEN) return packet[2] === PACKET_DISCONNECT;
    if (from !== VICTIM || to === OPEN) return false;
    const word = new DataView(packet.buffer, packet.byteOffset).getUint32(PACKET_SIZE, true);
    if (packet[2] === PACKET_ACCEPT) answer = (word & 0xfff) - 1;
    if (packet[2] === PACKET_REFUSE) answer = word === REFUSED_BUSY ? "busy" : word === REFUSED_NAME ? "name" : word;
    return true;
  };
  if (isOpen) simulation.submit(OPEN, VICTIM, Uint8Array.of(1));
  return turns.map(({ at, serial, node = STATED, epoch = FIRST, same = serial }) => {
    // Its event loop turns meanwhile: time in which a node is stopped does not count.
    for (let time = network.now; time <= at; time += SECOND / 10) network.at(time, () => simulation.wake(victim));
    network.at(at, () => simulation.wake(victim));
    simulation.run(at);
    answer = undefined;
    const nonce = [2 * same + 1, epoch] as const;
    const packet = forgedConnect({ node, epoch, serial, target: VICTIM, initiator: same, nonce }, schedule, JOB);
    network.carry(node, VICTIM, packet);
    simulation.run(at + 1000);
    return answer;
  });
}

/** Two responders, as a liar takes them for a node whose own next serial number is 40. */
const LIES: readonly Turn[] = [
  { at: 1 * SECOND, serial: 100 },
  { at: 2 * SECOND, serial: 90 },
];

describe("a node whose two responders a liar has taken", () => {
  it.each<[string, readonly Turn[], readonly Answer[]]>([
    ["waits while both are fresh", [{ at: 3 * SECOND, serial: 40 }], ["busy"]],
    ["waits at the end of their time", [{ at: 3.49 * SECOND, serial: 40 }], ["busy"]],
    ["takes the idle one, though the other is fresh", [{ at: 3.6 * SECOND, serial: 40 }], [0]],
    [
      "takes the other one once that is idle, too",
      [
        { at: 3.6 * SECOND, serial: 40 },
        { at: 4.6 * SECOND, serial: 39 },
      ],
      [0, 1],
    ],
    [
      "waits again while its own one and the liar's are fresh",
      [
        { at: 3.6 * SECOND, serial: 40 },
        { at: 4 * SECOND, serial: 39 },
      ],
      [0, "busy"],
    ],
    ["takes the earlier one at once with a later serial number", [{ at: 2.1 * SECOND, serial: 101 }], [1]],
    [
      "takes the later one at once with a number between both, and nothing is older",
      [{ at: 2.1 * SECOND, serial: 95 }],
      [1],
    ],
    ["takes the earlier one at once as its next start", [{ at: 2.1 * SECOND, serial: 1, epoch: 2 * FIRST }], [1]],
    ["is refused as an earlier start", [{ at: 9 * SECOND, serial: 200, epoch: FIRST - 1 }], ["name"]],
    ["is not answered with a serial number that has come", [{ at: 9 * SECOND, serial: 90 }], [undefined]],
    ["is not answered with one below the window", [{ at: 9 * SECOND, serial: 100 - 128 + 2 ** 32 }], [undefined]],
    [
      "waits while the liar repeats its packets",
      [
        { at: 3 * SECOND, serial: 101, same: 100 },
        { at: 4 * SECOND, serial: 91, same: 90 },
        { at: 5 * SECOND, serial: 40 },
      ],
      [0, 1, "busy"],
    ],
  ])("%s", (_, turns, answers) => {
    expect(answersOf([...LIES, ...turns], 8, false)).toEqual([0, 1, ...answers]);
  });

  it.each([
    [12.4, "busy"],
    [13.6, 0],
  ] as const)(
    "gets one, %d s in, from a liar that repeats its packets of second 1 each second until second 20: %s",
    (after, answer) => {
      const repeated: Turn[] = [];
      for (let i = 1; i < 20; i++) {
        repeated.push({ at: (1 + i) * SECOND, serial: 100 + 2 * i, same: 100 });
        repeated.push({ at: (1 + i) * SECOND + 2000, serial: 101 + 2 * i, same: 90 });
      }
      const own = { at: after * SECOND, serial: 60 };
      const turns = [{ at: SECOND, serial: 100 }, { at: SECOND + 2000, serial: 90 }, ...repeated, own];
      const ordered = turns.sort((one, other) => one.at - other.at);
      const found = answersOf(ordered, 8, false);
      expect(found[ordered.indexOf(own)]).toBe(answer);
    },
  );
});

describe("a node without a free responder", () => {
  const full: readonly Turn[] = [
    { at: 1 * SECOND, serial: 1, node: STATED },
    { at: 2 * SECOND, serial: 1, node: OTHER },
  ];

  it.each<[string, number, Answer]>([
    ["refuses another one while all are fresh", 3, "busy"],
    ["gives it the one that has proven nothing, and is idle", 3.6, 1],
  ])("%s", (_, at, answer) => {
    // The first responder is that of an open session: it has received data.
    expect(answersOf([...full, { at: at * SECOND, serial: 1, node: THIRD }], 3, true)).toEqual([1, 2, answer]);
  });

  it("takes that of an open session, which is silent for longer, only if none is idle that has proven nothing", () => {
    const turns: readonly Turn[] = [
      { at: 6 * SECOND, serial: 1, node: STATED },
      // Silent for 5 s.
      { at: 7 * SECOND, serial: 1, node: OTHER },
      { at: 7.5 * SECOND, serial: 1, node: THIRD },
      { at: 9 * SECOND, serial: 2, node: THIRD },
    ];
    expect(answersOf(turns, 2, true)).toEqual([1, 0, "busy", 1]);
  });
});
