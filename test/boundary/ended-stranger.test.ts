// A task of another node has ended before this one had anything to do with it: the first operation to it is told so.
import { expect, it } from "vitest";
import type { KernelName } from "../../src/core/kernel-name.js";
import type { MemRegion } from "../../src/core/region.js";
import { SHUTDOWN, SUCCESS } from "../../src/core/result.js";
import type { Context } from "../../src/pami/context.js";
import { NetworkedJob } from "../support/networked.js";
import { type PrivateJob, portsJob } from "../support/ports-job.js";
import { SEED } from "../support/seed.js";

const LIMITS = { tasks: 3, contexts: 1, laneBytes: 4096, heapBytes: 2 ** 22, regions: 16, fifos: 2, slots: 8 };
const KERNELS: readonly KernelName[] = ["wasm", "ts"];
const STRANGER = 1;
/** Turns in which the end is heard; and those, of a virtual millisecond, after which a node that is silent is given up. */
const TURNS = 50;
const TURNS_MAX = 10_000;
const SILENCE = 1_000_000;

const JOBS: readonly (readonly [string, () => PrivateJob])[] = [
  ["ports", () => portsJob(LIMITS, KERNELS)],
  [
    "nodes",
    () => new NetworkedJob({ seed: SEED, limits: LIMITS, kernels: KERNELS, isFaithful: true, silence: SILENCE }),
  ],
];
type Told = (_: unknown, result: number) => void;
type Operate = (context: Context, local: MemRegion, remote: number, told: Told) => number;
const OPERATIONS: readonly (readonly [string, Operate])[] = [
  ["put", (context, local, remote, onRemote) => context.put({ to: STRANGER, local, remote, bytes: 8, onRemote })],
  ["get", (context, local, remote, onLocal) => context.get({ to: STRANGER, local, remote, bytes: 8, onLocal })],
  ["rmw", (context, _, remote, onDone) => context.rmw({ to: STRANGER, remote, operation: "add", value: 1, onDone })],
];

it.each(JOBS.flatMap(([name, job]) => OPERATIONS.map(([call, operate]) => [name, call, job, operate] as const)))(
  "%s: %s() is told that its target has ended",
  async (_, __, job, operate) => {
    const given = job();
    const [own, stranger, other] = given.tasks as [
      PrivateJob["tasks"][0],
      PrivateJob["tasks"][0],
      PrivateJob["tasks"][0],
    ];
    const contexts = [own, other].map(({ client }) => client.createContext());
    const [context] = contexts as [Context];
    const region = own.client.createRegion(4096);
    const { handle } = stranger.client.createRegion(4096);
    const turn = async (): Promise<void> => {
      for (const one of contexts) one.advance();
      await given.turn();
    };
    try {
      await turn();
      given.end(STRANGER);
      for (let i = 0; i < TURNS; i++) await turn();
      const told: number[] = [];
      const result = operate(context, region, handle, (_, came) => told.push(came));
      for (let i = 0; i < TURNS_MAX && told.length === 0 && result === SUCCESS; i++) await turn();
      expect([result, ...told].filter((one) => one !== SUCCESS)).toEqual([SHUTDOWN]);
    } finally {
      for (const { client } of [own, other]) client.close();
    }
  },
);
