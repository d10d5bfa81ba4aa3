// Self-pacing transfers: requests to send, rget FIFOs, chains. Shared: compiled by asc and imported by TypeScript.

// ╒═════════════ RTS, 40 bytes: the origin offers a payload (P1); in the body of a KIND_RTS record ═════════════════╕
//     0  bytes            of the payload
//     4  index            the origin's region that holds it: entry's index, generation, offset in it
//     8  generation
//    12  offset
//    16  blockIndex       the origin's rget FIFO for it: the region of its block, generation, offset of the rget FIFO in it,
//    20  blockGeneration  and at 32 its own generation
//    24  place
//    28  fragment         0: the region holds the whole payload. Else the payload goes through a ring there, of
//                         STAGED_COUNT fragments of this many bytes
//    32  fifo             generation of the rget FIFO
//    36  (free)
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const RTS_BYTES_OFFSET: u32 = 0;
export const RTS_INDEX_OFFSET: u32 = 4;
export const RTS_GENERATION_OFFSET: u32 = 8;
export const RTS_OFFSET_OFFSET: u32 = 12;
export const RTS_BLOCK_INDEX_OFFSET: u32 = 16;
export const RTS_BLOCK_GENERATION_OFFSET: u32 = 20;
export const RTS_PLACE_OFFSET: u32 = 24;
export const RTS_FRAGMENT_OFFSET: u32 = 28;
export const RTS_FIFO_OFFSET: u32 = 32;
export const RTS_SIZE: u32 = 40;
/** Fragments in the ring of a staged payload. */
export const STAGED_COUNT: u32 = 4;

// ╒═════════════ RGET FIFO BLOCK: a region of its owner, one of a list for each context ════════════════════════════╕
//     0  next     owner    engine  pointer to the next block, or 0                               SYNC rget-list
//     4  turn     engine   engine  in the first block of the list: number of the rget FIFO that the next turn begins with
//     8  first    engine   engine  in the first block of the list: pointer to that rget FIFO's block; 0: this block
//   128  status   engines  owner   bit i: rget FIFO i is over: a target's counter reached 0, or an    SYNC transfer-over
//                                  origin's NOTICE came. The counter status register (P7)
//   256  rgetFifo[RGET_FIFO_COUNT]
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const BLOCK_NEXT_OFFSET: u32 = 0;
export const BLOCK_TURN_OFFSET: u32 = 4;
export const BLOCK_FIRST_OFFSET: u32 = 8;
export const BLOCK_STATUS_OFFSET: u32 = 128;
export const BLOCK_RGET_FIFOS_OFFSET: u32 = 256;
/** Rget FIFOs of a block: 4 pages. */
export const RGET_FIFO_COUNT: u32 = 9;
export const BLOCK_SIZE: u32 = 16384;

// ╒═════════════ RGET FIFO, a remote-get FIFO (P3): one side of one self-pacing transfer ═══════════════════════════╕
//  The owner's engine processes the slots. Only the engine at the transfer's other end injects, and never more than there
//  is room for (see chain.ts). So no engine looks for room, and there is no bit mask.
//  byte  field        writer        readers       meaning
//     0  tail         peer engine   engine        slots ever injected, modulo 2^32               SYNC ship
//   128  head         engine        dump          slots ever processed, modulo 2^32
//   132  moved        engine        engine        bytes moved of the fragment at head
//   136  passed       engine        owner         number of moved fragments                       SYNC passed
//   140  result       engine        owner         origin's: TRANSFER_… of the first refused fragment, then of the whole
//   256  generation   owner         peer engine   odd: open; counts openings and closings        SYNC rget-fifo
//   260  status       owner         peer engine   pointer to the block's status word
//   264  bit          owner         peer engine   this rget FIFO's bit in it
//   268  allowed      owner         engine        fragments that may be moved; NONE: all          SYNC staged
//   272  stop         owner         both engines  TRANSFER_…: MOVEs count and move nothing from now on  SYNC stop
//                                                 0: the transfer goes on
//   276  peerIndex    owner; of an  engine        the other rget FIFO: region of its block, generation, offset in it,
//   280  peerGeneration origin's                  and generation of that rget FIFO
//   284  peerOffset     the peer
//   288  peerFifo       core                                                                     SYNC rget-peer
//   292  peerEndpoint owner         engine        ordinal of the other rget FIFO's endpoint
//        ── input of chainWrite(): in a target's rget FIFO only; its owner writes it
//   296  ownIndex     this rget FIFO: region of its block, generation, offset in it
//   300  ownGeneration
//   304  ownOffset
//   308  fromIndex    the payload: region, generation, offset in it
//   312  fromGeneration
//   316  fromOffset
//   320  toIndex      the destination
//   324  toGeneration
//   328  toOffset
//   332  chainIndex   the region that the links go to
//   336  chainGeneration
//   340  bytes        of the payload; an origin's too, for the dump
//   344  fragment      bytes of a fragment
//   348  ring         number of fragments after which the payload begins anew at `from`, where it is staged; or 0
//   352  depth        prefetched links; 0 in an origin's rget FIFO
//   356  away         owner, agent  engine        0, or AWAY_…: the other side is in another node; the net transport is
//                                                 the engine of this rget FIFO: the kernels leave its
//                                                 descriptors                                     SYNC rget-away
//   384  left         peer engine   owner         the DMA counter: bytes that have not arrived (P7)  SYNC bytes-left
//   388  wrong        peer engine   owner         TRANSFER_… of the first refused fragment
//                                                 the peer core writes both once the engine thread ended  SYNC bytes-left
//   512  rget[4]      peer core,    engine        origin RGETs (P1): DESCRIPTORs that target RGETs ship
//                     then engine
//   768  slot[16]     peer engine   engine        DESCRIPTORs
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const RGET_FIFO_TAIL_OFFSET: u32 = 0;
export const RGET_FIFO_HEAD_OFFSET: u32 = 128;
export const RGET_FIFO_MOVED_OFFSET: u32 = 132;
export const RGET_FIFO_PASSED_OFFSET: u32 = 136;
export const RGET_FIFO_RESULT_OFFSET: u32 = 140;
export const RGET_FIFO_GENERATION_OFFSET: u32 = 256;
export const RGET_FIFO_STATUS_OFFSET: u32 = 260;
export const RGET_FIFO_BIT_OFFSET: u32 = 264;
export const RGET_FIFO_ALLOWED_OFFSET: u32 = 268;
export const RGET_FIFO_STOP_OFFSET: u32 = 272;
export const RGET_FIFO_PEER_INDEX_OFFSET: u32 = 276;
export const RGET_FIFO_PEER_GENERATION_OFFSET: u32 = 280;
export const RGET_FIFO_PEER_OFFSET_OFFSET: u32 = 284;
export const RGET_FIFO_PEER_FIFO_OFFSET: u32 = 288;
export const RGET_FIFO_PEER_ENDPOINT_OFFSET: u32 = 292;
export const RGET_FIFO_OWN_INDEX_OFFSET: u32 = 296;
export const RGET_FIFO_OWN_GENERATION_OFFSET: u32 = 300;
export const RGET_FIFO_OWN_OFFSET_OFFSET: u32 = 304;
export const RGET_FIFO_FROM_INDEX_OFFSET: u32 = 308;
export const RGET_FIFO_FROM_GENERATION_OFFSET: u32 = 312;
export const RGET_FIFO_FROM_OFFSET_OFFSET: u32 = 316;
export const RGET_FIFO_TO_INDEX_OFFSET: u32 = 320;
export const RGET_FIFO_TO_GENERATION_OFFSET: u32 = 324;
export const RGET_FIFO_TO_OFFSET_OFFSET: u32 = 328;
export const RGET_FIFO_CHAIN_INDEX_OFFSET: u32 = 332;
export const RGET_FIFO_CHAIN_GENERATION_OFFSET: u32 = 336;
export const RGET_FIFO_BYTES_OFFSET: u32 = 340;
export const RGET_FIFO_FRAGMENT_OFFSET: u32 = 344;
export const RGET_FIFO_RING_OFFSET: u32 = 348;
export const RGET_FIFO_DEPTH_OFFSET: u32 = 352;
export const RGET_FIFO_AWAY_OFFSET: u32 = 356;
export const RGET_FIFO_LEFT_OFFSET: u32 = 384;
export const RGET_FIFO_WRONG_OFFSET: u32 = 388;
export const RGET_FIFO_RGETS_OFFSET: u32 = 512;
export const RGET_FIFO_SLOTS_OFFSET: u32 = 768;
export const RGET_FIFO_SIZE: u32 = 1792;
/**
 * Bits of an rget FIFO's `away`. YES: the other side is in another node. STOPPED: it has canceled the transfer. TOLD: it has
 * been told that this side canceled. OVER: it has sent CHAIN_OVER. BEGUN: this side's core has written the chain. SHIPPED:
 * the other side has been told of the chain.
 */
export const AWAY_YES: u32 = 1;
export const AWAY_STOPPED: u32 = 2;
export const AWAY_TOLD: u32 = 4;
export const AWAY_OVER: u32 = 8;
export const AWAY_BEGUN: u32 = 16;
export const AWAY_SHIPPED: u32 = 32;
/** Slots of an rget FIFO: those of DEPTH_MAX + 1 links, and the last descriptor (see chain.ts). */
export const RGET_FIFO_SLOTS: u32 = 16;
/** Most prefetched links of a chain (P9): an rget FIFO has this many origin RGETs. */
export const DEPTH_MAX: u32 = 4;

// ╒═════════════ CHAIN: consecutive links in a region of the target; written before the first is shipped ═══════════╕
//  link i   RGET i mod depth   REFILL i mod depth   MOVE i           while there are links i + depth, and i + 2 depth
//  last     MOVE               NOTICE
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
/** Descriptors from one link to the next. */
export const LINK_SLOTS: u32 = 3;
export const LINK_SIZE: u32 = 192;
/** Most links of one chain: 192 KiB of them. Larger messages have larger fragments. */
export const LINK_COUNT_MAX: u32 = 1024;
