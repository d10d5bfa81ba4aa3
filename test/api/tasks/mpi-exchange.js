// @ts-check
// What each rank of a job does, in whichever thread: messages of many lengths to all others, which any rank receives as they come.

const LENGTHS = [0, 1, 8, 1000, 16_384, 16_385, 65_536, 65_537, 200_000];

/** @param {number} length @param {number} seed */
export function pattern(length, seed) {
  return Uint8Array.from({ length }, (_, i) => (i * 31 + seed * 7 + (i >>> 8)) & 255);
}

/**
 * @param {import("pamir/mpi").Comm} world
 * @param {boolean} blocks whether the thread blocks
 */
export async function exchange(world, blocks) {
  const { rank, size } = world;
  for (const [tag, length] of LENGTHS.entries()) {
    const sent = pattern(length, rank);
    const requests = Array.from({ length: size }, (_, to) => world[to % 2 === 0 ? "isend" : "issend"](sent, to, tag));
    const left = new Set(requests.keys());
    while (left.size > 0) {
      const { source, bytes } = blocks ? world.probeSync(undefined, tag) : await world.probe(undefined, tag);
      const view = new Uint8Array(bytes);
      const status = blocks ? world.recvSync(view, source, tag) : await world.recv(view, source, tag);
      if (status.source !== source || status.bytes !== length) throw new Error(`${rank}: ${JSON.stringify(status)}`);
      if (!left.delete(source)) throw new Error(`${rank}: two messages of rank ${source} with tag ${tag}`);
      const expected = pattern(length, source);
      const wrong = view.findIndex((byte, i) => byte !== expected[i]);
      if (wrong >= 0) throw new Error(`${rank}: byte ${wrong} of ${length} from rank ${source} is ${view[wrong]}`);
    }
    for (const request of requests) {
      if (blocks) request.waitSync();
      else await request.wait();
    }
    const sum = Int32Array.of(rank);
    const total = new Int32Array(1);
    if (blocks) world.allreduceSync(sum, total);
    else await world.allreduce(sum, total);
    if (total[0] !== (size * (size - 1)) / 2) throw new Error(`${rank}: the sum is ${total[0]}`);
  }
}
