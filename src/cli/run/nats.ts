// `pamir run --nats`: started on each machine, in any order. The launchers meet at a NATS server, and number their nodes; then
// each starts the processes of its node, which find each other there. A launcher tells the others of the ends that it sees.

import type { Running } from "./job.js";
import { NatsNode } from "./nats/nats-node.js";
import { natsPlanOf } from "./nats/nats-plan.js";
import { asUsageError, type Values } from "./options.js";

export async function runNats(app: string, args: string[], values: Values): Promise<Running> {
  const plan = await natsPlanOf(app, args, values);
  let giveUp: () => void = () => {};
  const givenUp = new Promise<"ended">((settle) => {
    giveUp = () => settle("ended");
  });
  const node = new NatsNode(plan);
  const ended = (async () => {
    try {
      if ((await Promise.race([node.meet(givenUp), givenUp])) === "ended") return 0;
      return await node.run();
    } catch (error) {
      throw asUsageError(error);
    } finally {
      await node.close();
    }
  })();
  return {
    ended,
    end(signal) {
      giveUp();
      node.job.end(undefined, signal);
    },
    pass: (signal) => node.job.pass(signal),
    endNow: () => node.job.endNow(),
  };
}
