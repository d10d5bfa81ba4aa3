// Collective operations between neighbors: a message on each edge. Source: MPI 5.0, section 8.6.
import * as L from "../../../../assembly/layout.js";
import { formsOf } from "../collective/forms.js";
import { type DenseBlocks, type DenseBuffer, Sides } from "../collective/sides.js";
import { ANY_SOURCE, ERR, PROC_NULL, SUCCESS } from "../constants.js";
import { MpiFailure } from "../failure.js";
import { NO_MESSAGE, type OpenRequest, type Outcome, type RequestWork } from "../requests/open-request.js";
import { asFailure, failureOf, finish } from "../requests/requests.js";
import type { Call, CommObject, MpiState } from "../state.js";
import { type CommTopology, type Neighbor, neighborsOf } from "./topology.js";

/** What is sent on each edge. */
interface Outgoing extends DenseBuffer {
  /** Where the bytes of an edge begin in the view, and how many there are. */
  edge(index: number): { readonly at: number; readonly bytes: number };
}

const ofBlocks = (blocks: DenseBlocks): Outgoing => ({
  view: blocks.view,
  end: (hasCome) => blocks.end(hasCome),
  edge: (index) => ({ at: blocks.displacements[index] as number, bytes: blocks.counts[index] as number }),
});

const ofOne = (buffer: DenseBuffer): Outgoing => ({
  view: buffer.view,
  end: (hasCome) => buffer.end(hasCome),
  edge: () => ({ at: 0, bytes: buffer.view.length }),
});

/** Receive buffers' contents count: the place of a neighbor that is MPI_PROC_NULL keeps them, in a packed copy too. */
const KEPT = true;

/** A request of the engine, and the rank that has to do something for it. */
interface OpenMessage {
  readonly request: number;
  readonly peer: number;
  readonly isReceive: boolean;
}

/** The messages of one operation. */
class Exchange implements RequestWork {
  readonly #state: MpiState;
  readonly #topology: CommTopology;
  readonly #send: Outgoing;
  readonly #receive: Outgoing;
  readonly #open: OpenMessage[] = [];

  constructor(state: MpiState, topology: CommTopology, rank: number, send: Outgoing, receive: Outgoing) {
    this.#state = state;
    this.#topology = topology;
    this.#send = send;
    this.#receive = receive;
    const { engine } = state;
    const { sources, destinations } = neighborsOf(topology.shape, rank);
    const each = (
      neighbors: readonly Neighbor[],
      side: Outgoing,
      begin: (neighbor: Neighbor, at: number, bytes: number) => number,
      isReceive: boolean,
    ): void => {
      for (const [index, neighbor] of neighbors.entries()) {
        if (neighbor.rank === PROC_NULL) continue;
        const { at, bytes } = side.edge(index);
        const request = begin(neighbor, side.view.byteOffset + at, bytes);
        this.#open.push({ request, peer: neighbor.rank, isReceive });
      }
    };
    each(
      sources,
      receive,
      (from, at, bytes) => engine.receive(topology.messages, from.rank, from.tag, at, bytes),
      true,
    );
    each(destinations, send, (to, at, bytes) => engine.send(topology.messages, to.rank, to.tag, at, bytes), false);
  }

  isOver(): boolean {
    return this.#open.every((one) => this.#isDone(one.request) || this.#isLost(one));
  }

  take(): Outcome {
    const { engine } = this.#state;
    let outcome = NO_MESSAGE;
    let isWhole = true;
    for (const { request, peer, isReceive } of this.#open) {
      if (!this.#isDone(request)) {
        isWhole = false;
        outcome = { ...NO_MESSAGE, error: ERR.PROC_FAILED, why: `the neighbor of rank ${peer} has ended` };
        if (isReceive && engine.cancel(request)) engine.free(request);
        continue;
      }
      if (request === 0) continue;
      const error = engine.field(request, L.MPI_REQUEST_ERROR_OFFSET);
      if (error === ERR.TRUNCATE)
        outcome = { ...NO_MESSAGE, error, why: `the block of rank ${peer} is longer than its place` };
      else if (error !== SUCCESS) outcome = { ...NO_MESSAGE, error, why: `the neighbor of rank ${peer} has ended` };
      engine.free(request);
    }
    // A message that is not over may still be read or written by the other side.
    if (isWhole) {
      this.#send.end(false);
      this.#receive.end(outcome.error === SUCCESS);
    }
    return outcome;
  }

  #isDone(request: number): boolean {
    return this.#state.engine.isOver(request);
  }

  #isLost({ request, peer }: OpenMessage): boolean {
    return this.#state.engine.isLost(this.#topology.messages, peer, request);
  }
}

export function neighborCalls(state: MpiState): Record<string, readonly [number, Call]> {
  const sides = new Sides(state);
  interface Place {
    readonly object: CommObject;
    readonly topology: CommTopology;
    readonly sources: number;
    readonly destinations: number;
  }
  const placeOf = (handle: number): Place => {
    const object = state.comms.get(handle);
    const { topology } = object;
    if (topology === undefined) throw new MpiFailure(ERR.TOPOLOGY, "the communicator has no topology");
    const { sources, destinations } = neighborsOf(topology.shape, object.comm.rank);
    return { object, topology, sources: sources.length, destinations: destinations.length };
  };
  const open = ({ object, topology }: Place, send: Outgoing, receive: Outgoing): OpenRequest => {
    const { comm } = object;
    try {
      const work = new Exchange(state, topology, comm.rank, send, receive);
      return { comm, isReceive: false, peer: ANY_SOURCE, engine: 0, work };
    } catch (error) {
      throw asFailure(error);
    }
  };
  /** `count` blocks of equal lengths. */
  const even = (buffer: number, length: number, typeHandle: number, count: number, isGiven: boolean): Outgoing => {
    const type = state.types.committed(typeHandle);
    const step = length * type.extent;
    const parts = Array.from({ length: count }, (_, index) => ({ at: buffer + index * step, count: length, type }));
    return ofBlocks(sides.ofParts(parts, isGiven));
  };
  type Begin = (...given: number[]) => OpenRequest;
  const row = (name: string, arity: number, begin: Begin): Record<string, readonly [number, Call]> => {
    const run: Call = (...given) => {
      const outcome = finish(state, begin(...given));
      if (outcome.error !== SUCCESS) throw failureOf(outcome);
      return SUCCESS;
    };
    return formsOf(state, { name, arity, run, begin: (_call, given) => begin(...given) });
  };
  type Numbers = [number, number, number, number, number, number, number, number, number];
  return {
    ...row("Neighbor_allgather", 7, (...given) => {
      const [from, sendCount, sendType, to, count, type, handle] = given as Numbers;
      const place = placeOf(handle);
      const send = ofOne(sides.side(from, sendCount, sendType, true));
      return open(place, send, even(to, count, type, place.sources, KEPT));
    }),
    ...row("Neighbor_allgatherv", 8, (...given) => {
      const [from, sendCount, sendType, to, counts, places, type, handle] = given as Numbers;
      const place = placeOf(handle);
      const send = ofOne(sides.side(from, sendCount, sendType, true));
      return open(place, send, ofBlocks(sides.blocks(to, counts, places, type, place.sources, KEPT)));
    }),
    ...row("Neighbor_alltoall", 7, (...given) => {
      const [from, sendCount, sendType, to, count, type, handle] = given as Numbers;
      const place = placeOf(handle);
      const send = even(from, sendCount, sendType, place.destinations, true);
      return open(place, send, even(to, count, type, place.sources, KEPT));
    }),
    ...row("Neighbor_alltoallv", 9, (...given) => {
      const [from, sendCounts, sendPlaces, sendType, to, counts, places, type, handle] = given as Numbers;
      const place = placeOf(handle);
      const send = ofBlocks(sides.blocks(from, sendCounts, sendPlaces, sendType, place.destinations, true));
      return open(place, send, ofBlocks(sides.blocks(to, counts, places, type, place.sources, KEPT)));
    }),
    ...row("Neighbor_alltoallw", 9, (...given) => {
      const [from, sendCounts, sendPlaces, sendTypes, to, counts, places, types, handle] = given as Numbers;
      const place = placeOf(handle);
      const send = ofBlocks(sides.typedBlocks(from, sendCounts, sendPlaces, sendTypes, place.destinations, true));
      return open(place, send, ofBlocks(sides.typedBlocks(to, counts, places, types, place.sources, KEPT)));
    }),
  };
}
