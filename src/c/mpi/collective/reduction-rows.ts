// Reductions, scans, and what scatters a result.
import type { ReduceParameters, ReduceScatterParameters, ReductionParameters, ScanParameters } from "../../../index.js";
import { IN_PLACE } from "../constants.js";
import type { MpiState } from "../state.js";
import type { Collectives } from "./collectives.js";
import type { CollectiveRow, PreparedCollective } from "./prepared.js";
import { Reductions } from "./reduction.js";
import { endOf, viewOf } from "./sides.js";

export function reductionRows(state: MpiState, all: Collectives): CollectiveRow[] {
  const reductions = new Reductions(state);
  type Numbers = [number, number, number, number, number];
  /** The sides of a reduction of equal vectors. @param isReceiver whether this member gets the result */
  const sides = (given: readonly number[], isReceiver: boolean) => {
    const [from, to, count, typeHandle, op] = given as Numbers;
    const isInPlace = from === IN_PLACE;
    const { operation, type } = reductions.of(typeHandle, op);
    const send = isInPlace ? undefined : all.side(from, count, typeHandle, true, true);
    const receive = isReceiver ? all.side(to, count, typeHandle, isInPlace, true) : undefined;
    return { send: viewOf(send), receive: viewOf(receive), operation, type, end: endOf(send, receive) };
  };
  const scan = (name: string, exclusive: boolean): CollectiveRow => ({
    name,
    arity: 6,
    run: (geometry, what) => geometry.scanSync(what as ScanParameters),
    prepare: (...given) => {
      const comm = all.comm(given[5] as number);
      const { send, receive, operation, type, end } = sides(given, true);
      const parameters = { send, receive, operation, type, exclusive };
      // The first member of an exclusive scan gets nothing: its buffer stays.
      const isFirst = exclusive && comm.rank === 0;
      return { comm, type: "scan", parameters, end: (hasCome) => end(hasCome && !isFirst) };
    },
  });
  const scattered = (given: readonly number[], counts: readonly number[]): PreparedCollective => {
    const [from, to, , typeHandle, op, handle] = given as [...Numbers, number];
    const comm = all.comm(handle);
    const isInPlace = from === IN_PLACE;
    const total = counts.reduce((sum, count) => sum + count, 0);
    const what = { counts, ...reductions.of(typeHandle, op) };
    const whole = all.side(isInPlace ? to : from, total, typeHandle, true, true);
    const own = isInPlace ? undefined : all.side(to, counts[comm.rank] as number, typeHandle, false, true);
    const [send, receive] = own === undefined ? [undefined, whole] : [whole, own];
    const parameters = { send: viewOf(send), receive: receive.view, ...what };
    return { comm, type: "reduceScatter", parameters, end: endOf(send, receive) };
  };
  return [
    {
      name: "Allreduce",
      arity: 6,
      run: (geometry, what) => geometry.allreduceSync(what as ReductionParameters),
      prepare: (...given) => {
        const comm = all.comm(given[5] as number);
        const { send, receive, operation, type, end } = sides(given, true);
        return { comm, type: "allreduce", parameters: { send, receive, operation, type }, end };
      },
    },
    {
      name: "Reduce",
      arity: 7,
      run: (geometry, what) => geometry.reduceSync(what as ReduceParameters),
      prepare: (...given) => {
        const root = given[5] as number;
        const comm = all.commOf(given[6] as number, root);
        const { send, receive, operation, type, end } = sides(given, comm.rank === root);
        return { comm, type: "reduce", parameters: { send, receive, operation, type, root }, end };
      },
    },
    scan("Scan", false),
    scan("Exscan", true),
    {
      name: "Reduce_scatter_block",
      arity: 6,
      run: (geometry, what) => geometry.reduceScatterSync(what as ReduceScatterParameters),
      prepare: (...given) => {
        const { size } = all.comm(given[5] as number);
        return scattered(given, new Array<number>(size).fill(given[2] as number));
      },
    },
    {
      name: "Reduce_scatter",
      arity: 6,
      run: (geometry, what) => geometry.reduceScatterSync(what as ReduceScatterParameters),
      prepare: (...given) => {
        const { size } = all.comm(given[5] as number);
        return scattered(given, state.array(given[2] as number, size));
      },
    },
  ];
}
