// Geometries, and their algorithms.
import { type Context, type Endpoint, type Geometry, PamiError, type Result, SUCCESS } from "../../index.js";
import { COLLECTIVES } from "./collectives.js";
import { CONFIGURATION, CORRECT_BITS, GEOMETRY_ATTRIBUTES, METADATA, NULL } from "./layouts.js";
import { checkPointer } from "./pointers.js";
import { type ListedAlgorithm, type PamiCall, type PamiState, WORLD } from "./state.js";

export function geometryCalls(state: PamiState): Record<string, PamiCall> {
  /** Calls an event function at the next advance. */
  const later = (context: number, fn: number, cookie: number): Result => {
    if (fn !== NULL) state.context(context).context.post(() => state.event(fn, context, cookie, SUCCESS));
    return SUCCESS;
  };
  const make = (pointer: number, members: readonly Endpoint[], id: number, context: Context): void => {
    // The others would wait for this member.
    checkPointer(pointer, "geometry");
    const made = state.client.createGeometrySync(members, { id: id >>> 0, context });
    state.geometries.set(state.nextGeometry, made);
    state.setWord(pointer, state.nextGeometry++);
  };
  const create = (given: readonly number[], tasks: readonly number[]): Result => {
    const [client, offset, , , pointer, , id] = given as number[];
    const [context, fn, cookie] = given.slice(9) as [number, number, number];
    state.checkClient(client as number);
    const own = state.context(context);
    const members = tasks.map((task): Endpoint => state.client.endpoint(task, (offset as number) >>> 0));
    const mine = state.context((offset as number) + 1).context;
    // Tasks that are in the parent alone have nothing to make.
    if (members.includes(mine.endpoint)) make(pointer as number, members, id as number, mine);
    return later(own.handle, fn, cookie);
  };
  return {
    PAMI_Geometry_world: (client, pointer) => {
      state.checkClient(client as number);
      state.setWord(pointer as number, WORLD);
      return SUCCESS;
    },
    PAMI_Geometry_create_taskrange: (...given) => {
      const [ranges, count] = given.slice(7) as [number, number];
      const ends = state.array(ranges, 2 * count);
      const tasks: number[] = [];
      const { size } = state.client;
      for (let i = 0; i < ends.length; i += 2) {
        const [low, high] = [(ends[i] as number) >>> 0, (ends[i + 1] as number) >>> 0];
        if (low > high || high >= size)
          throw new PamiError("PAMIR_INVAL", `a range of tasks ${low} to ${high}: the job has ${size}`);
        for (let task = low; task <= high; task++) tasks.push(task);
      }
      return create(given, tasks);
    },
    PAMI_Geometry_create_tasklist: (...given) => {
      const [tasks, count] = given.slice(7) as [number, number];
      return create(
        given,
        state.array(tasks, count).map((task) => task >>> 0),
      );
    },
    PAMI_Geometry_create_endpointlist: (...given) => {
      const [client, , , pointer, id, list, count, context, fn, cookie] = given as number[];
      state.checkClient(client as number);
      const endpoints = state.array(list as number, count as number).map((endpoint) => endpoint >>> 0);
      const mine = state.contexts.find((own) => own !== undefined && endpoints.includes(own.context.endpoint));
      if (mine !== undefined) make(pointer as number, endpoints, id as number, mine.context);
      return later(context as number, fn as number, cookie as number);
    },
    PAMI_Geometry_destroy: (client, pointer, context, fn, cookie) => {
      state.checkClient(client as number);
      const handle = state.word(pointer as number);
      if (handle === WORLD) throw new PamiError("PAMIR_INVAL", "the geometry of all tasks can't be destroyed");
      state.geometry(handle).close();
      state.geometries.delete(handle);
      state.setWord(pointer as number, NULL);
      return later(context as number, fn as number, cookie as number);
    },
    ...queryCalls(state),
  };
}

function queryCalls(state: PamiState): Record<string, PamiCall> {
  return {
    PAMI_Geometry_query: (handle, configurations, count) => {
      state.geometry(handle as number);
      for (let i = 0; i < (count as number); i++) {
        const at = (configurations as number) + i * CONFIGURATION.BYTES;
        const name = state.word(at);
        if (!GEOMETRY_ATTRIBUTES.includes(name))
          throw new PamiError("PAMIR_INVAL", `the attribute ${name} of a geometry is not there`);
        state.setWord(at + CONFIGURATION.VALUE, 0);
      }
      return SUCCESS;
    },
    PAMI_Geometry_algorithms_num: (handle, type, lengths) => {
      state.setWord(lengths as number, namesOf(state.geometry(handle as number), type as number).length);
      // Algorithms that don't always work are left to pamir, which knows when they do.
      state.setWord((lengths as number) + 4, 0);
      return SUCCESS;
    },
    PAMI_Geometry_algorithms_query: (handle, type, algorithms, metadata, count) => {
      const names = namesOf(state.geometry(handle as number), type as number);
      if ((count as number) >>> 0 > names.length)
        throw new PamiError("PAMIR_INVAL", `${count} algorithms, and there are ${names.length}`);
      for (const [i, name] of names.slice(0, count as number).entries()) {
        const number = numberOf(state, { geometry: handle as number, type: type as number, name });
        state.setWord((algorithms as number) + 4 * i, number);
        if (metadata !== NULL) describe(state, (metadata as number) + i * METADATA.BYTES, name ?? "default");
      }
      return SUCCESS;
    },
  };
}

/** Algorithms that always work; the first one, without a name, leaves the choice to pamir. @throws PAMIR_INVAL */
function namesOf(geometry: Geometry, type: number): (string | undefined)[] {
  const row = COLLECTIVES[type];
  if (row === undefined) throw new PamiError("PAMIR_INVAL", `type ${type} of a collective operation is not there`);
  const always = geometry.algorithms(row.type).filter((algorithm) => algorithm.always);
  return [undefined, ...always.map(({ name }) => name)];
}

/** The program's number of an algorithm: the same one each time it asks. */
function numberOf(state: PamiState, { geometry, type, name }: ListedAlgorithm): number {
  const { algorithms } = state;
  const known = algorithms.findIndex((one) => one.geometry === geometry && one.type === type && one.name === name);
  return known >= 0 ? known + 1 : algorithms.push({ geometry, type, name });
}

function describe(state: PamiState, at: number, name: string): void {
  state.clear(at, METADATA.BYTES);
  state.setWord(at + METADATA.NAME, state.keepText(name));
  state.setWord(at + METADATA.VERSION, 1);
  state.setWord(at + METADATA.RANGE_HI, -1);
  state.setWord(at + METADATA.CORRECT, CORRECT_BITS);
}
