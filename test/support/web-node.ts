// A node of one task whose link is a WebSocket, on a page or in Node: node 0 has the server, and the page is mobile.

import { memoryOf } from "../../src/kernel/kernel.js";
import { selectKernel, selectPacketKernel } from "../../src/kernel/select.js";
import type { Address, Link } from "../../src/link/link.js";
import { nodeLimits } from "../../src/node/limits.js";
import { makeJobMemory } from "../../src/node/memory.js";
import type { Client } from "../../src/pami/client.js";
import { selectKeySchedule } from "../../src/seal/select.js";
import type { Loss } from "../../src/session/sessions.js";
import { BuddyArena } from "../../src/session/store/buddy-arena.js";
import { LinkHost } from "../../src/start/node/link-host.js";
import { LinkNode } from "../../src/start/node/link-node.js";
import { makeNodeTask } from "../../src/start/node/private-node.js";

const JOB = 0x9a9e;
const ARENA_BYTES = 2 ** 22;
const WASM_PAGE = 65536;
const LIMITS = { tasks: 2, contexts: 1, laneBytes: 16_384, heapBytes: 2 ** 25, regions: 16, fifos: 2, slots: 16 };

export interface WebNode {
  readonly client: Client;
  readonly node: LinkNode;
  /** Nodes that were lost, and why. */
  readonly lost: [number, Loss][];
  close(): void;
}

/** @param server address of node 0 @param silence milliseconds */
export async function startWebNode(
  number: 0 | 1,
  link: Link,
  server: Address,
  key: Uint8Array,
  silence: number,
): Promise<WebNode> {
  const limits = nodeLimits(LIMITS, 1, 1);
  const { map, shared, memory } = makeJobMemory({ limits, isFixed: true, base: 0, first: number }, true);
  const kernel = selectKernel("wasm", shared, memory);
  const pages = ARENA_BYTES / WASM_PAGE + 1;
  const own = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const ownMemory = memoryOf(own.buffer as unknown as SharedArrayBuffer);
  const packets = {
    kernel: selectPacketKernel("wasm", own, ownMemory),
    memory: ownMemory,
    arena: new BuddyArena(WASM_PAGE, ARENA_BYTES),
  };
  const lost: [number, Loss][] = [];
  const host = new LinkHost((other, why) => void lost.push([other, why]));
  const node = new LinkNode(
    {
      kernel,
      memory,
      map,
      packets,
      link,
      node: number,
      nodes: 2,
      tasksPerNode: 1,
      epoch: 1,
      job: JOB,
      keySchedule: await selectKeySchedule(key, JOB),
      addressOf: (other) => (other === 0 ? server : undefined),
      silence: 1000 * silence,
    },
    host,
  );
  const whyPrivate = "the tasks of a page and of a process share no memory";
  const { client } = makeNodeTask({ kernel, memory, map, task: 0, whyPrivate }, node.agent);
  const close = (): void => {
    node.close();
    host.close();
  };
  return { client, node, lost, close };
}
