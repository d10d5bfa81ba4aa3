// Communicators and groups. Source: MPI 5.0, chapter 7.

import type { Endpoint } from "../../index.js";
import {
  ANY_SOURCE,
  COMM_NULL,
  COMM_TYPE_SHARED,
  CONGRUENT,
  ERR,
  FIRST_OWN,
  GROUP_EMPTY,
  GROUP_NULL,
  IDENT,
  SIMILAR,
  SUCCESS,
  UNDEFINED,
  UNEQUAL,
} from "./constants.js";
import { MpiFailure } from "./failure.js";
import type { ObjectAttributes } from "./objects/attributes.js";
import { duplicate } from "./objects/duplicate.js";
import { NO_MESSAGE } from "./requests/open-request.js";

import type { Call, MpiState } from "./state.js";

/** How two lists of members compare. */
function compared(one: readonly Endpoint[], other: readonly Endpoint[]): number {
  if (one.length !== other.length) return UNEQUAL;
  if (one.every((endpoint, rank) => endpoint === other[rank])) return IDENT;
  const all = new Set(other);
  return one.every((endpoint) => all.has(endpoint)) ? SIMILAR : UNEQUAL;
}

export function communicatorCalls(
  state: MpiState,
  attributes: ObjectAttributes,
): Record<string, readonly [number, Call]> {
  const { comms } = state;
  const store = (pointer: number, value: number): number => {
    state.setWord(pointer, value);
    return SUCCESS;
  };
  const free: Call = (pointer) => {
    const handle = state.word(pointer as number);
    const object = comms.get(handle);
    if (handle < FIRST_OWN) throw new MpiFailure(ERR.COMM, "a predefined communicator can't be freed");
    attributes.clear(object);
    object.comm.close();
    comms.remove(handle);
    return store(pointer as number, COMM_NULL);
  };
  return {
    MPI_Comm_rank: [0, (handle, pointer) => store(pointer as number, comms.get(handle as number).comm.rank)],
    MPI_Comm_size: [0, (handle, pointer) => store(pointer as number, comms.get(handle as number).comm.size)],
    MPI_Comm_dup: [
      0,
      (handle, pointer) => {
        const parent = comms.get(handle as number);
        return store(pointer as number, duplicate(state, attributes, parent));
      },
    ],
    MPI_Comm_split: [
      0,
      (handle, color, key, pointer) => {
        const parent = comms.get(handle as number);
        if ((color as number) < 0 && color !== UNDEFINED)
          throw new MpiFailure(ERR.ARG, `the color is ${color}, not a number from 0`);
        const comm = parent.comm.split(color === UNDEFINED ? undefined : color, key as number);
        return store(pointer as number, state.addComm(comm, parent));
      },
    ],
    MPI_Comm_split_type: [
      0,
      (handle, kind, key, _info, pointer) => {
        // Ranks that share a memory are those of the node.
        const parent = comms.get(handle as number);
        if (kind !== COMM_TYPE_SHARED && kind !== UNDEFINED)
          throw new MpiFailure(ERR.ARG, `${kind} is no kind of split`);
        const color = kind === UNDEFINED ? undefined : Math.min(...state.client.localTasks);
        const comm = parent.comm.split(color, key as number);
        return store(pointer as number, state.addComm(comm, parent));
      },
    ],
    MPI_Comm_create: [
      0,
      (handle, group, pointer) => {
        const parent = comms.get(handle as number);
        const members = state.groups.get(group as number);
        const isMember = members.includes(state.context.endpoint);
        return store(pointer as number, state.addComm(parent.comm.create(isMember ? members : undefined), parent));
      },
    ],
    MPI_Comm_create_group: [
      0,
      (handle, group, _tag, pointer) => {
        const parent = comms.get(handle as number);
        const members = state.groups.get(group as number);
        const isMember = members.includes(state.context.endpoint);
        const comm = isMember ? parent.comm.createGroup(members) : undefined;
        return store(pointer as number, state.addComm(comm, parent));
      },
    ],
    // The new communicator is there at once: the call waits for the other members.
    MPI_Comm_idup: [
      0,
      (handle, pointer, request) => {
        const parent = comms.get(handle as number);
        const { comm } = parent;
        state.setWord(pointer as number, duplicate(state, attributes, parent));
        const done = { comm, isReceive: false, peer: ANY_SOURCE, engine: 0, outcome: NO_MESSAGE };
        return store(request as number, state.requests.add(done));
      },
    ],
    MPI_Comm_free: [-1, free],
    MPI_Comm_disconnect: [-1, free],
    // No program of pamir was started by another one.
    MPI_Comm_get_parent: [-1, (pointer) => store(pointer as number, COMM_NULL)],
    MPI_Comm_compare: [
      0,
      (one, other, pointer) => {
        const [first, second] = [comms.get(one as number).comm, comms.get(other as number).comm];
        const how = compared(first.endpoints, second.endpoints);
        return store(pointer as number, one === other ? IDENT : how === IDENT ? CONGRUENT : how);
      },
    ],
    MPI_Comm_group: [
      0,
      (handle, pointer) => store(pointer as number, addGroup(state, comms.get(handle as number).comm.endpoints)),
    ],
    MPI_Comm_set_name: [
      0,
      (handle, text) => {
        comms.get(handle as number).name = state.text(text as number);
        return SUCCESS;
      },
    ],
    MPI_Comm_get_name: [
      0,
      (handle, text, length) =>
        store(length as number, state.setText(text as number, comms.get(handle as number).name)),
    ],
    MPI_Comm_test_inter: [
      0,
      (handle, flag) => {
        comms.get(handle as number);
        return store(flag as number, 0);
      },
    ],
    ...groupCalls(state, store),
  };
}

function addGroup(state: MpiState, members: readonly Endpoint[]): number {
  return members.length === 0 ? GROUP_EMPTY : state.groups.add(members);
}

function groupCalls(
  state: MpiState,
  store: (pointer: number, value: number) => number,
): Record<string, readonly [number, Call]> {
  const { groups } = state;
  /** The members with these ranks. */
  const ofRanks = (members: readonly Endpoint[], ranks: readonly number[]): Endpoint[] =>
    ranks.map((rank) => {
      const member = members[rank];
      if (member === undefined)
        throw new MpiFailure(ERR.RANK, `rank ${rank} is none of 0 to ${members.length - 1} of the group`);
      return member;
    });
  /** Ranks of triplets: first, last, step. */
  const ofRanges = (members: readonly Endpoint[], count: number, pointer: number): Endpoint[] => {
    const values = state.array(pointer, 3 * count);
    const ranks: number[] = [];
    for (let i = 0; i < count; i++) {
      const [first, last, step] = values.slice(3 * i, 3 * i + 3) as [number, number, number];
      if (step === 0) throw new MpiFailure(ERR.ARG, "the step of a range of ranks is 0");
      for (let rank = first; step > 0 ? rank <= last : rank >= last; rank += step) ranks.push(rank);
    }
    return ofRanks(members, ranks);
  };
  const pair = (one: number, other: number): [readonly Endpoint[], readonly Endpoint[]] => [
    groups.get(one),
    groups.get(other),
  ];
  return {
    MPI_Group_size: [-1, (group, pointer) => store(pointer as number, groups.get(group as number).length)],
    MPI_Group_rank: [
      -1,
      (group, pointer) => {
        const rank = groups.get(group as number).indexOf(state.context.endpoint);
        return store(pointer as number, rank < 0 ? UNDEFINED : rank);
      },
    ],
    MPI_Group_incl: [
      -1,
      (group, count, ranks, pointer) => {
        const members = ofRanks(groups.get(group as number), state.array(ranks as number, count as number));
        return store(pointer as number, addGroup(state, members));
      },
    ],
    MPI_Group_excl: [
      -1,
      (group, count, ranks, pointer) => {
        const members = groups.get(group as number);
        const left = new Set(ofRanks(members, state.array(ranks as number, count as number)));
        return store(
          pointer as number,
          addGroup(
            state,
            members.filter((member) => !left.has(member)),
          ),
        );
      },
    ],
    MPI_Group_range_incl: [
      -1,
      (group, count, ranges, pointer) =>
        store(
          pointer as number,
          addGroup(state, ofRanges(groups.get(group as number), count as number, ranges as number)),
        ),
    ],
    MPI_Group_range_excl: [
      -1,
      (group, count, ranges, pointer) => {
        const members = groups.get(group as number);
        const left = new Set(ofRanges(members, count as number, ranges as number));
        return store(
          pointer as number,
          addGroup(
            state,
            members.filter((member) => !left.has(member)),
          ),
        );
      },
    ],
    MPI_Group_union: [
      -1,
      (one, other, pointer) => {
        const [first, second] = pair(one as number, other as number);
        return store(pointer as number, addGroup(state, [...new Set([...first, ...second])]));
      },
    ],
    MPI_Group_intersection: [
      -1,
      (one, other, pointer) => {
        const [first, second] = pair(one as number, other as number);
        return store(
          pointer as number,
          addGroup(
            state,
            first.filter((member) => second.includes(member)),
          ),
        );
      },
    ],
    MPI_Group_difference: [
      -1,
      (one, other, pointer) => {
        const [first, second] = pair(one as number, other as number);
        return store(
          pointer as number,
          addGroup(
            state,
            first.filter((member) => !second.includes(member)),
          ),
        );
      },
    ],
    MPI_Group_compare: [
      -1,
      (one, other, pointer) => store(pointer as number, compared(...pair(one as number, other as number))),
    ],
    MPI_Group_translate_ranks: [
      -1,
      (one, count, ranks, other, out) => {
        const [first, second] = pair(one as number, other as number);
        state.array(ranks as number, count as number).forEach((rank, index) => {
          const found = rank < 0 ? rank : second.indexOf(ofRanks(first, [rank])[0] as Endpoint);
          state.setWord((out as number) + 4 * index, found === -1 ? UNDEFINED : found);
        });
        return SUCCESS;
      },
    ],
    MPI_Group_free: [
      -1,
      (pointer) => {
        const handle = state.word(pointer as number);
        groups.get(handle);
        if (handle !== GROUP_EMPTY) groups.remove(handle);
        return store(pointer as number, GROUP_NULL);
      },
    ],
  };
}
