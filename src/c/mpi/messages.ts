// Point-to-point messages: sends and receives of every mode, probes. Source: MPI 5.0, chapter 3.
import * as L from "../../../assembly/layout.js";
import type { Communicator } from "../../mpi/communicator.js";
import { ANY, PeerEnded, type Request } from "../../mpi/engine.js";
import { ANY_SOURCE, ANY_TAG, ERR, PROC_NULL, SUCCESS, TAG_UB, UNDEFINED } from "./constants.js";
import { MpiFailure } from "./failure.js";
import { NO_MESSAGE, type OpenRequest } from "./requests/open-request.js";
import { asFailure, FROM_NOBODY, finishCall, forget, writeStatus } from "./requests/requests.js";
import type { Call, MpiState } from "./state.js";
import { isDense, pack } from "./types.js";

/** Polls that find nothing, one behind the other, before a short sleep. */
const POLLS_BEFORE_SLEEP = 1000;

/** What a send or a receive is called with. */
interface Given {
  readonly buffer: number;
  readonly count: number;
  readonly type: number;
  readonly peer: number;
  readonly tag: number;
  readonly comm: number;
}

export class Messages {
  readonly #state: MpiState;
  #polls = 0;

  constructor(state: MpiState) {
    this.#state = state;
  }

  /** Begins a send. @param isBuffered whether the buffer may be changed at once */
  send(given: Given, synchronous = false, isBuffered = false): OpenRequest {
    const state = this.#state;
    const { comm, bytes, type } = this.#checked(given, false);
    const { buffer, count, peer, tag } = given;
    if (peer === PROC_NULL) return { comm, isReceive: false, peer, engine: 0, outcome: NO_MESSAGE };
    const { engine } = state;
    const scratch = state.isDirect(type) && !isBuffered && engine.holds(buffer, bytes) ? undefined : state.place(bytes);
    let from = buffer + type.lowerBound;
    if (scratch !== undefined) {
      from = scratch.bytes.byteOffset;
      pack(state.copyOut, type, buffer, count, from);
    }
    let request: Request;
    try {
      request = engine.send(comm, peer, tag, from, bytes, synchronous);
    } catch (error) {
      if (scratch !== undefined) state.freePlace(scratch);
      throw asFailure(error);
    }
    if (request === 0 && scratch !== undefined) state.freePlace(scratch);
    return {
      comm,
      isReceive: false,
      peer,
      engine: request,
      scratch: request === 0 ? undefined : scratch,
      ...(request === 0 ? { outcome: NO_MESSAGE } : {}),
    };
  }

  /** Begins a receive. */
  receive(given: Given): OpenRequest {
    const { engine } = this.#state;
    const { comm, bytes, type } = this.#checked(given, true);
    const { buffer, peer, tag } = given;
    if (peer === PROC_NULL) return { comm, isReceive: true, peer, engine: 0, outcome: FROM_NOBODY };
    const wanted = tag === ANY_TAG ? ANY : tag;
    const scratch = this.#state.isDirect(type) && engine.holds(buffer, bytes) ? undefined : this.#state.place(bytes);
    const to = scratch?.bytes.byteOffset ?? buffer;
    const request = engine.receive(comm, peer, wanted, to, bytes);
    return { comm, isReceive: true, peer, engine: request, scratch, type, buffer };
  }

  /** Whether a message waits that a receive would get. */
  probe(comm: Communicator, peer: number, tag: number): number {
    return this.#state.engine.probe(comm, peer, tag === ANY_TAG ? ANY : tag);
  }

  /** Writes what a stored message is into a status. */
  describe(stored: number, status: number): void {
    const header = stored + L.MPI_STORED_HEADER_OFFSET;
    const field = (offset: number): number => this.#state.engine.field(header, offset);
    writeStatus(this.#state, status, {
      source: field(L.MPI_HEADER_SOURCE_OFFSET),
      tag: field(L.MPI_HEADER_TAG_OFFSET),
      bytes: field(L.MPI_HEADER_BYTES_OFFSET),
      error: SUCCESS,
      isCanceled: false,
    });
  }

  /** A poll: one round, and a short sleep now and then, if nothing comes for long. */
  poll(): void {
    this.#state.engine.advance();
    if (++this.#polls < POLLS_BEFORE_SLEEP) return;
    this.#polls = 0;
    this.#state.engine.rest();
  }

  /** A poll has found something. */
  found(): void {
    this.#polls = 0;
  }

  /** @throws MpiFailure */
  #checked({ buffer, count, type: typeHandle, peer, tag, comm: handle }: Given, isReceive: boolean) {
    const { comm } = this.#state.comms.get(handle);
    if (count < 0) throw new MpiFailure(ERR.COUNT, `the count is ${count}, not a number from 0`);
    const type = this.#state.types.committed(typeHandle);
    const bytes = count * type.bytes;
    if (bytes > 0 && buffer === 0 && isDense(type))
      throw new MpiFailure(ERR.BUFFER, `the buffer of ${bytes} bytes is NULL`);
    const isAny = isReceive && peer === ANY_SOURCE;
    if (!isAny && peer !== PROC_NULL && !(peer >= 0 && peer < comm.size)) {
      throw new MpiFailure(ERR.RANK, `rank ${peer} is none of 0 to ${comm.size - 1}`);
    }
    if (!(tag >= 0 && tag <= TAG_UB) && !(isReceive && tag === ANY_TAG)) {
      throw new MpiFailure(ERR.TAG, `the tag is ${tag}, not one of 0 to ${TAG_UB}`);
    }
    return { comm, type, bytes };
  }
}

/** The calls of this file, without their guards: the number is that of the argument with the communicator. */
export function messageCalls(state: MpiState, messages: Messages): Record<string, readonly [number, Call]> {
  const given = (args: readonly number[]): Given => {
    const [buffer, count, type, peer, tag, comm] = args as [number, number, number, number, number, number];
    return { buffer: buffer >>> 0, count, type, peer, tag, comm };
  };
  const done = (request: OpenRequest, status = 0): number => finishCall(state, request, status);
  const opened = (request: OpenRequest, pointer: number): number => {
    state.setWord(pointer, state.requests.add(request));
    return SUCCESS;
  };
  const blocking = (synchronous: boolean, isBuffered = false): readonly [number, Call] => [
    5,
    (...args) => {
      const request = messages.send(given(args), synchronous, isBuffered);
      // A buffered send is over for the program; the engine keeps its copy until the target has it.
      return isBuffered ? forget(state, request) : done(request);
    },
  ];
  const starting = (synchronous: boolean, isBuffered = false): readonly [number, Call] => [
    5,
    (...args) => opened(messages.send(given(args), synchronous, isBuffered), args[6] as number),
  ];
  const persistent = (begin: (values: Given) => OpenRequest, isReceive: boolean): readonly [number, Call] => [
    5,
    (...args) => {
      const values = given(args);
      const { comm } = state.comms.get(values.comm);
      const start = (): OpenRequest => begin(values);
      return opened({ comm, isReceive, peer: values.peer, engine: 0, start }, args[6] as number);
    },
  ];
  return {
    MPI_Send: blocking(false),
    MPI_Rsend: blocking(false),
    MPI_Ssend: blocking(true),
    MPI_Bsend: blocking(false, true),
    MPI_Isend: starting(false),
    MPI_Irsend: starting(false),
    MPI_Issend: starting(true),
    MPI_Ibsend: starting(false, true),
    MPI_Recv: [5, (...args) => done(messages.receive(given(args)), args[6])],
    MPI_Irecv: [5, (...args) => opened(messages.receive(given(args)), args[6] as number)],
    MPI_Send_init: persistent((values) => messages.send(values), false),
    MPI_Rsend_init: persistent((values) => messages.send(values), false),
    MPI_Ssend_init: persistent((values) => messages.send(values, true), false),
    MPI_Bsend_init: persistent((values) => messages.send(values, false, true), false),
    MPI_Recv_init: persistent((values) => messages.receive(values), true),
    MPI_Sendrecv: [
      10,
      (...args) => {
        const [sendBuffer, sendCount, sendType, to, sendTag] = args as [number, number, number, number, number];
        const receive = messages.receive({ ...given(args.slice(5, 10)), comm: args[10] as number });
        const send = messages.send({
          buffer: sendBuffer >>> 0,
          count: sendCount,
          type: sendType,
          peer: to,
          tag: sendTag,
          comm: args[10] as number,
        });
        done(send);
        return done(receive, args[11]);
      },
    ],
    MPI_Sendrecv_replace: [
      7,
      (...args) => {
        const [buffer, count, type, to, sendTag, from, tag, comm, status] = args as number[];
        const values = {
          buffer: (buffer as number) >>> 0,
          count: count as number,
          type: type as number,
          comm: comm as number,
        };
        // The copy is sent; so the buffer is free for what comes.
        const send = messages.send({ ...values, peer: to as number, tag: sendTag as number }, false, true);
        const receive = messages.receive({ ...values, peer: from as number, tag: tag as number });
        done(receive, status);
        return done(send);
      },
    ],
    MPI_Probe: [
      2,
      (peer, tag, handle, status) => {
        const { comm } = state.comms.get(handle as number);
        if (peer === PROC_NULL) {
          writeStatus(state, status as number, FROM_NOBODY);
          return SUCCESS;
        }
        let stored = messages.probe(comm, peer as number, tag as number);
        if (stored === 0) {
          state.engine.waitUntil(() => {
            stored = messages.probe(comm, peer as number, tag as number);
            return stored !== 0 || state.engine.isHopeless(comm, peer as number, 0);
          });
        }
        if (stored === 0) throw asFailure(new PeerEnded(peer as number, comm.isRevoked));
        messages.describe(stored, status as number);
        return SUCCESS;
      },
    ],
    MPI_Iprobe: [
      2,
      (peer, tag, handle, flag, status) => {
        const { comm } = state.comms.get(handle as number);
        if (peer === PROC_NULL) {
          state.setWord(flag as number, 1);
          writeStatus(state, status as number, FROM_NOBODY);
          return SUCCESS;
        }
        messages.poll();
        const stored = messages.probe(comm, peer as number, tag as number);
        state.setWord(flag as number, +(stored !== 0));
        if (stored !== 0) {
          messages.found();
          messages.describe(stored, status as number);
        }
        return SUCCESS;
      },
    ],
    MPI_Get_count: [
      -1,
      (status, handle, count) => {
        const type = state.types.get(handle as number);
        const bytes = state.word((status as number) + 12);
        const elements = type.bytes === 0 ? 0 : bytes / type.bytes;
        state.setWord(count as number, Number.isInteger(elements) ? elements : UNDEFINED);
        return SUCCESS;
      },
    ],
  };
}
