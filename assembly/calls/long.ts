// What TypeScript does for the calls: src/c/mpi/short-calls.ts supplies these functions.

/** Handles the rest of a round: the events of the batch from `place` on, then what advance() has `found` besides. */
export declare function endRound(place: u32, found: u32): void;

/** Gets the payload of a matched request, and answers. */
export declare function pull(request: usize): void;

/** A request whose receive has failed, or is not over yet: waits, writes the status, gives the request back. */
export declare function finish(request: usize, status: usize, comm: u32, isReceive: u32): i32;

/** Sleeps until anything comes, a tenth of a millisecond at most. */
export declare function rest(): void;

/** As reduce() of assembly/collective/, whose export it is: so both ways have the same digits. */
export declare function reduce(operation: u32, type: u32, out: usize, left: usize, right: usize, count: u32): void;

// The long ways of the calls.
export declare function MPI_Send(buffer: usize, count: i32, type: u32, to: i32, tag: i32, comm: u32): i32;
export declare function MPI_Recv(
  buffer: usize,
  count: i32,
  type: u32,
  from: i32,
  tag: i32,
  comm: u32,
  status: usize,
): i32;
export declare function MPI_Isend(
  buffer: usize,
  count: i32,
  type: u32,
  to: i32,
  tag: i32,
  comm: u32,
  request: usize,
): i32;
export declare function MPI_Irecv(
  buffer: usize,
  count: i32,
  type: u32,
  from: i32,
  tag: i32,
  comm: u32,
  request: usize,
): i32;
export declare function MPI_Sendrecv(
  buffer: usize,
  count: i32,
  type: u32,
  to: i32,
  tag: i32,
  into: usize,
  intoCount: i32,
  intoType: u32,
  from: i32,
  fromTag: i32,
  comm: u32,
  status: usize,
): i32;
export declare function MPI_Wait(request: usize, status: usize): i32;
export declare function MPI_Waitall(count: i32, requests: usize, statuses: usize): i32;
export declare function MPI_Test(request: usize, flag: usize, status: usize): i32;
export declare function MPI_Iprobe(from: i32, tag: i32, comm: u32, flag: usize, status: usize): i32;
export declare function MPI_Comm_rank(comm: u32, rank: usize): i32;
export declare function MPI_Comm_size(comm: u32, size: usize): i32;
export declare function MPI_Barrier(comm: u32): i32;
export declare function MPI_Allreduce(from: usize, to: usize, count: i32, type: u32, op: u32, comm: u32): i32;
export declare function MPI_Get_count(status: usize, type: u32, count: usize): i32;
