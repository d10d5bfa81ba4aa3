// All scenarios, in the order in which they are run.
import type { Scenario } from "../scenario.js";
import { ATTACH_SCENARIOS } from "./attach.js";
import { BIND_SCENARIOS } from "./bind.js";
import { BUFFER_SCENARIOS } from "./buffer.js";
import { CHAIN_SCENARIOS } from "./chain.js";
import { CROWDED_SCENARIOS } from "./crowded.js";
import { DEATH_SCENARIOS } from "./death.js";
import { ENGINE_SCENARIOS } from "./engine.js";
import { ENGINE_DIES_SCENARIOS } from "./engine-dies.js";
import { ENGINE_DIES_CHAIN_SCENARIOS } from "./engine-dies-chain.js";
import { FAR_DEATH_SCENARIOS } from "./far-death.js";
import { GIVEN_UP_SCENARIOS } from "./given-up.js";
import { HEAP_SCENARIOS } from "./heap.js";
import { HEAP_DEATH_SCENARIOS } from "./heap-dies.js";
import { LANE_SCENARIOS } from "./lane.js";
import { MEMBER_SCENARIOS, STRANGER_SCENARIOS } from "./members.js";
import { MEMBER_DEATH_SCENARIOS } from "./members-die.js";
import { PARK_SCENARIOS, PIPE_SCENARIOS } from "./park.js";
import { PURGE_SCENARIOS } from "./purge.js";
import { PURGE_OFFER_SCENARIOS } from "./purge-offers.js";
import { READY_SCENARIOS } from "./ready.js";
import { REORDER_SCENARIOS } from "./reorder.js";
import { RMA_SCENARIOS } from "./rma.js";
import { RMA_ENDS_SCENARIOS } from "./rma-ends.js";

export const SCENARIOS: readonly Scenario[] = [
  ...LANE_SCENARIOS,
  ...READY_SCENARIOS,
  ...PARK_SCENARIOS,
  ...PIPE_SCENARIOS,
  ...HEAP_SCENARIOS,
  ...BUFFER_SCENARIOS,
  ...RMA_SCENARIOS,
  ...CHAIN_SCENARIOS,
  ...ATTACH_SCENARIOS,
  ...DEATH_SCENARIOS,
  ...HEAP_DEATH_SCENARIOS,
  ...RMA_ENDS_SCENARIOS,
  ...ENGINE_SCENARIOS,
  ...GIVEN_UP_SCENARIOS,
  ...ENGINE_DIES_SCENARIOS,
  ...ENGINE_DIES_CHAIN_SCENARIOS,
  ...REORDER_SCENARIOS,
  ...BIND_SCENARIOS,
  ...PURGE_SCENARIOS,
  ...PURGE_OFFER_SCENARIOS,
  ...CROWDED_SCENARIOS,
  ...FAR_DEATH_SCENARIOS,
  ...MEMBER_SCENARIOS,
  ...STRANGER_SCENARIOS,
  ...MEMBER_DEATH_SCENARIOS,
];
