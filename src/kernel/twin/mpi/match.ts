// Twin of assembly/mpi/match.ts; see the comments there.
import * as L from "../../../../assembly/layout.js";
import type { Memory } from "../../kernel.js";
import type { MpiBlocks } from "./blocks.js";
import { twinCopy } from "./copy.js";

/** Where the parts of a message lie: apart as it comes, in one block if it is stored. */
const [HEADER, PAYLOAD] = [L.MPI_STORED_HEADER_OFFSET, L.MPI_STORED_PAYLOAD_OFFSET];

export function twinMatch(whole: Memory, { takeBlock, giveBlock, divideRest }: MpiBlocks) {
  const { words, bytes: memory } = whole;
  const { copyPayload } = twinCopy(whole);

  /** A word, signed. */
  function get(pointer: number, offset: number): number {
    return words[(pointer + offset) >>> 2] as number;
  }

  /** A pointer, or a number of bytes. */
  function size(pointer: number, offset: number): number {
    return get(pointer, offset) >>> 0;
  }

  function set(pointer: number, offset: number, value: number): void {
    words[(pointer + offset) >>> 2] = value;
  }

  function add(pointer: number, offset: number, value: number): void {
    set(pointer, offset, get(pointer, offset) + value);
  }

  function mpiInit(engine: number, bytes: number, comms: number): void {
    const used = L.MPI_ENGINE_SIZE + Math.ceil((comms * L.MPI_COMM_SIZE) / 64) * 64;
    memory.fill(0, engine >>> 0, (engine >>> 0) + used);
    set(engine, L.MPI_ENGINE_COMM_COUNT_OFFSET, comms);
    set(engine, L.MPI_ENGINE_NEXT_OFFSET, engine + used);
    set(engine, L.MPI_ENGINE_END_OFFSET, engine + bytes);
  }

  function mpiExtend(engine: number, from: number, bytes: number): void {
    divideRest(engine);
    set(engine, L.MPI_ENGINE_NEXT_OFFSET, from);
    set(engine, L.MPI_ENGINE_END_OFFSET, from + bytes);
  }

  function commOf(engine: number, number: number): number {
    return engine + L.MPI_ENGINE_SIZE + number * L.MPI_COMM_SIZE;
  }

  function postedOf(engine: number, number: number): number {
    return commOf(engine, number) + L.MPI_COMM_POSTED_FIRST_OFFSET;
  }

  function storedOf(engine: number, number: number): number {
    return commOf(engine, number) + L.MPI_COMM_STORED_FIRST_OFFSET;
  }

  function isWanted(wanted: number, value: number): boolean {
    return wanted === L.MPI_ANY || wanted === value;
  }

  function push(queue: number, entry: number): void {
    set(entry, 0, 0);
    set(size(queue, 0) === 0 ? queue : size(queue, 4), 0, entry);
    set(queue, 4, entry);
  }

  /** Takes the entry behind `before` out of a queue. @param before 0: there is none */
  function pull(queue: number, before: number): number {
    if (before === 0) return 0;
    const entry = size(before, 0);
    set(before, 0, get(entry, 0));
    if (size(queue, 4) === entry) set(queue, 4, before);
    return entry;
  }

  /** What is before an entry of a queue: another entry, or the queue. 0: it is not there. */
  function beforeEntry(queue: number, entry: number): number {
    let before = queue >>> 0;
    while (size(before, 0) !== entry >>> 0) {
      before = size(before, 0);
      if (before === 0) return 0;
    }
    return before;
  }

  /** What is before the first posted receive that asks for this. */
  function beforePosted(queue: number, source: number, tag: number): number {
    let before = queue >>> 0;
    for (let posted = size(before, 0); posted !== 0; before = posted, posted = size(posted, 0)) {
      const isSource = isWanted(get(posted, L.MPI_REQUEST_SOURCE_OFFSET), source);
      if (isSource && isWanted(get(posted, L.MPI_REQUEST_TAG_OFFSET), tag)) return before;
    }
    return 0;
  }

  /** What is before the first stored message that a receive asks for. */
  function beforeStored(queue: number, source: number, tag: number): number {
    let before = queue >>> 0;
    for (let stored = size(before, 0); stored !== 0; before = stored, stored = size(stored, 0)) {
      const isSource = isWanted(source | 0, get(stored, HEADER + L.MPI_HEADER_SOURCE_OFFSET));
      if (isSource && isWanted(tag | 0, get(stored, HEADER + L.MPI_HEADER_TAG_OFFSET))) return before;
    }
    return 0;
  }

  function kindOf(header: number): number {
    return size(header, L.MPI_HEADER_COMM_OFFSET) >>> L.MPI_HEADER_KIND_SHIFT;
  }

  function numberOf(header: number): number {
    return get(header, L.MPI_HEADER_COMM_OFFSET) & L.MPI_HEADER_COMM_MASK;
  }

  /** Bytes behind a header. */
  function lengthOf(header: number): number {
    const isRts = kindOf(header) === L.MPI_RTS;
    return isRts ? L.MPI_RTS_SIZE : size(header, L.MPI_HEADER_BYTES_OFFSET);
  }

  function deliver(request: number, header: number, payload: number, origin: number): void {
    const bytes = size(header, L.MPI_HEADER_BYTES_OFFSET);
    const capacity = size(request, L.MPI_REQUEST_CAPACITY_OFFSET);
    const isRts = kindOf(header) === L.MPI_RTS;
    set(request, L.MPI_REQUEST_STATE_OFFSET, isRts ? L.MPI_REQUEST_MATCHED : L.MPI_REQUEST_DONE);
    set(request, L.MPI_REQUEST_SOURCE_OFFSET, get(header, L.MPI_HEADER_SOURCE_OFFSET));
    set(request, L.MPI_REQUEST_TAG_OFFSET, get(header, L.MPI_HEADER_TAG_OFFSET));
    set(request, L.MPI_REQUEST_BYTES_OFFSET, bytes);
    set(request, L.MPI_REQUEST_ERROR_OFFSET, bytes > capacity ? L.MPI_TRUNCATED : 0);
    set(request, L.MPI_REQUEST_ORIGIN_OFFSET, origin);
    if (isRts) {
      set(request, L.MPI_REQUEST_ANSWER_OFFSET, get(payload, L.MPI_RTS_REQUEST_OFFSET));
      set(request, L.MPI_REQUEST_INDEX_OFFSET, get(payload, L.MPI_RTS_INDEX_OFFSET));
      set(request, L.MPI_REQUEST_GENERATION_OFFSET, get(payload, L.MPI_RTS_GENERATION_OFFSET));
      set(request, L.MPI_REQUEST_OFFSET_OFFSET, get(payload, L.MPI_RTS_OFFSET_OFFSET));
    } else {
      copyPayload(size(request, L.MPI_REQUEST_BUFFER_OFFSET), payload, Math.min(bytes, capacity));
    }
  }

  function deliverStored(engine: number, stored: number, request: number): void {
    const bytes = lengthOf(stored + HEADER);
    deliver(request, stored + HEADER, stored + PAYLOAD, get(stored, L.MPI_STORED_ORIGIN_OFFSET));
    add(engine, L.MPI_ENGINE_STORED_OFFSET, -1);
    add(engine, L.MPI_ENGINE_STORED_BYTES_OFFSET, -bytes);
    giveBlock(engine, stored, PAYLOAD + bytes);
  }

  function makeRequest(engine: number, number: number, buffer: number, capacity: number): number {
    const request = takeBlock(engine, L.MPI_REQUEST_SIZE);
    if (request === 0) return 0;
    set(request, L.MPI_REQUEST_COMM_OFFSET, number);
    set(request, L.MPI_REQUEST_BUFFER_OFFSET, buffer);
    set(request, L.MPI_REQUEST_CAPACITY_OFFSET, capacity);
    set(request, L.MPI_REQUEST_ERROR_OFFSET, 0);
    set(request, L.MPI_REQUEST_KIND_OFFSET, L.MPI_RECEIVE);
    return request;
  }

  function mpiPost(
    engine: number,
    number: number,
    source: number,
    tag: number,
    buffer: number,
    capacity: number,
  ): number {
    const request = makeRequest(engine, number, buffer, capacity);
    if (request === 0) return L.MPI_NO_MEMORY;
    const stored = mpiTake(engine, number, source, tag);
    if (stored !== 0) deliverStored(engine, stored, request);
    else {
      set(request, L.MPI_REQUEST_STATE_OFFSET, L.MPI_REQUEST_POSTED);
      set(request, L.MPI_REQUEST_SOURCE_OFFSET, source);
      set(request, L.MPI_REQUEST_TAG_OFFSET, tag);
      push(postedOf(engine, number), request);
      add(engine, L.MPI_ENGINE_POSTED_OFFSET, 1);
    }
    return request;
  }

  function mpiSent(engine: number, target: number): number {
    const request = takeBlock(engine, L.MPI_REQUEST_SIZE);
    if (request === 0) return L.MPI_NO_MEMORY;
    memory.fill(0, request, request + L.MPI_REQUEST_SIZE);
    set(request, L.MPI_REQUEST_STATE_OFFSET, L.MPI_REQUEST_SENT);
    set(request, L.MPI_REQUEST_ORIGIN_OFFSET, target);
    set(request, L.MPI_REQUEST_KIND_OFFSET, L.MPI_SEND);
    push(engine + L.MPI_ENGINE_SENT_FIRST_OFFSET, request);
    return request;
  }

  /** Takes a request that waits for anything out of its queue. */
  function withdraw(engine: number, request: number): void {
    const state = get(request, L.MPI_REQUEST_STATE_OFFSET);
    if (state === L.MPI_REQUEST_POSTED) {
      const queue = postedOf(engine, get(request, L.MPI_REQUEST_COMM_OFFSET));
      pull(queue, beforeEntry(queue, request));
      add(engine, L.MPI_ENGINE_POSTED_OFFSET, -1);
    } else if (state === L.MPI_REQUEST_SENT) {
      const queue = engine + L.MPI_ENGINE_SENT_FIRST_OFFSET;
      pull(queue, beforeEntry(queue, request));
    }
  }

  function mpiFree(engine: number, request: number): void {
    withdraw(engine, request);
    set(request, L.MPI_REQUEST_STATE_OFFSET, L.MPI_REQUEST_FREE);
    set(request, L.MPI_REQUEST_KIND_OFFSET, 0);
    giveBlock(engine, request, L.MPI_REQUEST_SIZE);
  }

  function mpiArrive(engine: number, header: number, payload: number, origin: number): number {
    const kind = kindOf(header);
    if (kind === L.MPI_ANSWER) return answered(engine, size(header, L.MPI_HEADER_BYTES_OFFSET));
    if (kind !== L.MPI_EAGER && kind !== L.MPI_RTS) return L.MPI_NO_REQUEST;
    const number = numberOf(header);
    if (number >= size(engine, L.MPI_ENGINE_COMM_COUNT_OFFSET)) return L.MPI_NO_REQUEST;
    const bytes = lengthOf(header);
    if (bytes > L.MPI_EAGER_BYTES_MAX) return L.MPI_NO_REQUEST;
    const [source, tag] = [get(header, L.MPI_HEADER_SOURCE_OFFSET), get(header, L.MPI_HEADER_TAG_OFFSET)];
    const queue = postedOf(engine, number);
    const request = pull(queue, beforePosted(queue, source, tag));
    if (request !== 0) {
      add(engine, L.MPI_ENGINE_POSTED_OFFSET, -1);
      deliver(request, header, payload, origin);
      return request;
    }
    const stored = takeBlock(engine, PAYLOAD + bytes);
    if (stored === 0) return L.MPI_NO_MEMORY;
    set(stored, L.MPI_STORED_ORIGIN_OFFSET, origin);
    memory.copyWithin(stored + HEADER, header >>> 0, (header >>> 0) + L.MPI_HEADER_SIZE);
    memory.copyWithin(stored + PAYLOAD, payload >>> 0, (payload >>> 0) + bytes);
    push(storedOf(engine, number), stored);
    add(engine, L.MPI_ENGINE_STORED_OFFSET, 1);
    add(engine, L.MPI_ENGINE_STORED_BYTES_OFFSET, bytes);
    return L.MPI_ARRIVED_STORED;
  }

  function answered(engine: number, number: number): number {
    const queue = engine + L.MPI_ENGINE_SENT_FIRST_OFFSET;
    // The word of the last entry is 0: no answer may name that.
    const request = number === 0 ? 0 : pull(queue, beforeEntry(queue, number));
    if (request === 0) return L.MPI_NO_REQUEST;
    set(request, L.MPI_REQUEST_STATE_OFFSET, L.MPI_REQUEST_DONE);
    return request;
  }

  function mpiProbe(engine: number, number: number, source: number, tag: number): number {
    const before = beforeStored(storedOf(engine, number), source, tag);
    return before === 0 ? 0 : size(before, 0);
  }

  function mpiTake(engine: number, number: number, source: number, tag: number): number {
    const queue = storedOf(engine, number);
    return pull(queue, beforeStored(queue, source, tag));
  }

  function mpiMatched(engine: number, stored: number, buffer: number, capacity: number): number {
    const number = numberOf(stored + HEADER);
    const request = makeRequest(engine, number, buffer, capacity);
    if (request === 0) return L.MPI_NO_MEMORY;
    deliverStored(engine, stored, request);
    return request;
  }

  function mpiCancel(engine: number, request: number): number {
    if (get(request, L.MPI_REQUEST_STATE_OFFSET) !== L.MPI_REQUEST_POSTED) return 0;
    withdraw(engine, request);
    set(request, L.MPI_REQUEST_STATE_OFFSET, L.MPI_REQUEST_CANCELED);
    return 1;
  }

  function mpiFail(engine: number, request: number, error: number): number {
    const state = get(request, L.MPI_REQUEST_STATE_OFFSET);
    if (state !== L.MPI_REQUEST_POSTED && state !== L.MPI_REQUEST_SENT) return 0;
    withdraw(engine, request);
    set(request, L.MPI_REQUEST_ERROR_OFFSET, error);
    set(request, L.MPI_REQUEST_STATE_OFFSET, L.MPI_REQUEST_DONE);
    return 1;
  }

  return {
    mpiInit,
    mpiExtend,
    mpiPost,
    mpiSent,
    mpiFree,
    mpiArrive,
    mpiProbe,
    mpiTake,
    mpiMatched,
    mpiCancel,
    mpiFail,
  };
}
