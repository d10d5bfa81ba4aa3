// Self-pacing transfers: requests to send, windows, chains. Shared: compiled by asc and imported by TypeScript.

// ╒═════════════ RTS, 40 bytes: the origin offers a payload (P1); in the body of a KIND_RTS record ════════════════════╕
//     0  bytes            of the payload
//     4  index            the origin's region that holds it: entry's index, generation, offset in it
//     8  generation
//    12  offset
//    16  blockIndex       the origin's window for it: the region of its block, generation, offset of the window in it,
//    20  blockGeneration  and at 32 its own generation
//    24  place
//    28  portion          0: the region holds the whole payload. Else the payload goes through a ring there, of STAGED_COUNT
//                         portions of this many bytes
//    32  window           generation of the window
//    36  (free)
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const RTS_BYTES_OFFSET: u32 = 0;
export const RTS_INDEX_OFFSET: u32 = 4;
export const RTS_GENERATION_OFFSET: u32 = 8;
export const RTS_OFFSET_OFFSET: u32 = 12;
export const RTS_BLOCK_INDEX_OFFSET: u32 = 16;
export const RTS_BLOCK_GENERATION_OFFSET: u32 = 20;
export const RTS_PLACE_OFFSET: u32 = 24;
export const RTS_PORTION_OFFSET: u32 = 28;
export const RTS_WINDOW_OFFSET: u32 = 32;
export const RTS_SIZE: u32 = 40;
/** Portions in the ring of a staged payload. */
export const STAGED_COUNT: u32 = 4;

// ╒═════════════ WINDOW BLOCK: a region of its owner, one of a list for each context ═══════════════════════════════╕
//     0  next     owner    engine  pointer to the next block, or 0                               SYNC window-list
//     4  turn     engine   engine  in the first block of the list: number of the window that the next turn begins with
//     8  first    engine   engine  in the first block of the list: pointer to that window's block; 0: this block
//   128  status   engines  owner   bit i: window i is over: a target's counter reached 0, or an       SYNC window-over
//                                  origin's NOTICE came. The counter status register (P7)
//   256  window[WINDOW_COUNT]
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const BLOCK_NEXT_OFFSET: u32 = 0;
export const BLOCK_TURN_OFFSET: u32 = 4;
export const BLOCK_FIRST_OFFSET: u32 = 8;
export const BLOCK_STATUS_OFFSET: u32 = 128;
export const BLOCK_WINDOWS_OFFSET: u32 = 256;
/** Windows of a block: 4 pages. */
export const WINDOW_COUNT: u32 = 9;
export const BLOCK_SIZE: u32 = 16384;

// ╒═════════════ WINDOW: one side of one self-pacing transfer; its remote-get FIFO (P3) ═════════════════════════════╕
//  The owner's engine processes the slots. Only the engine at the transfer's other end injects, and never more than there
//  is room for (see chain.ts). So no engine looks for room, and there is no bit mask.
//  byte  field        writer        readers       meaning
//     0  tail         peer engine   engine        slots ever injected, modulo 2^32               SYNC ship
//   128  head         engine        dump          slots ever processed, modulo 2^32
//   132  moved        engine        engine        bytes moved of the portion at head
//   136  passed       engine        owner         number of moved portions                       SYNC passed
//   140  result       engine        owner         origin's: TRANSFER_… of the first refused portion, then of the whole
//   256  generation   owner         peer engine   odd: open; counts openings and closings        SYNC window
//   260  status       owner         peer engine   pointer to the block's status word
//   264  bit          owner         peer engine   this window's bit in it
//   268  allowed      owner         engine        portions that may be moved; NONE: all          SYNC staged
//   272  stop         owner         both engines  TRANSFER_…: MOVEs count and move nothing from now on  SYNC stop
//                                                 0: the transfer goes on
//   276  peerIndex    owner; of an  engine        the other window: region of its block, generation, offset in it,
//   280  peerGeneration origin's                  and generation of that window
//   284  peerOffset     the peer
//   288  peerWindow     core                                                                     SYNC window-peer
//   292  peerEndpoint owner         engine        ordinal of the other window's endpoint
//        ── input of chainWrite(): in a target's window only; its owner writes it
//   296  ownIndex     this window: region of its block, generation, offset in it
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
//   344  portion      bytes of a portion
//   348  ring         number of portions after which the payload begins anew at `from`, where it is staged; or 0
//   352  depth        prefetched links; 0 in an origin's window
//   356  away         owner, agent  engine        0, or AWAY_…: the other side is in another node; the net transport is
//                                                 the engine of this window: the kernels leave its descriptors
//   384  left         peer engine   owner         the DMA counter: bytes that have not arrived (P7)  SYNC bytes-left
//   388  wrong        peer engine   owner         TRANSFER_… of the first refused portion
//                                                 the peer core writes both once the engine thread ended  SYNC bytes-left
//   512  rget[4]      peer core,    engine        origin RGETs (P1): DESCRIPTORs that target RGETs ship
//                     then engine
//   768  slot[16]     peer engine   engine        DESCRIPTORs
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
export const WINDOW_TAIL_OFFSET: u32 = 0;
export const WINDOW_HEAD_OFFSET: u32 = 128;
export const WINDOW_MOVED_OFFSET: u32 = 132;
export const WINDOW_PASSED_OFFSET: u32 = 136;
export const WINDOW_RESULT_OFFSET: u32 = 140;
export const WINDOW_GENERATION_OFFSET: u32 = 256;
export const WINDOW_STATUS_OFFSET: u32 = 260;
export const WINDOW_BIT_OFFSET: u32 = 264;
export const WINDOW_ALLOWED_OFFSET: u32 = 268;
export const WINDOW_STOP_OFFSET: u32 = 272;
export const WINDOW_PEER_INDEX_OFFSET: u32 = 276;
export const WINDOW_PEER_GENERATION_OFFSET: u32 = 280;
export const WINDOW_PEER_OFFSET_OFFSET: u32 = 284;
export const WINDOW_PEER_WINDOW_OFFSET: u32 = 288;
export const WINDOW_PEER_ENDPOINT_OFFSET: u32 = 292;
export const WINDOW_OWN_INDEX_OFFSET: u32 = 296;
export const WINDOW_OWN_GENERATION_OFFSET: u32 = 300;
export const WINDOW_OWN_OFFSET_OFFSET: u32 = 304;
export const WINDOW_FROM_INDEX_OFFSET: u32 = 308;
export const WINDOW_FROM_GENERATION_OFFSET: u32 = 312;
export const WINDOW_FROM_OFFSET_OFFSET: u32 = 316;
export const WINDOW_TO_INDEX_OFFSET: u32 = 320;
export const WINDOW_TO_GENERATION_OFFSET: u32 = 324;
export const WINDOW_TO_OFFSET_OFFSET: u32 = 328;
export const WINDOW_CHAIN_INDEX_OFFSET: u32 = 332;
export const WINDOW_CHAIN_GENERATION_OFFSET: u32 = 336;
export const WINDOW_BYTES_OFFSET: u32 = 340;
export const WINDOW_PORTION_OFFSET: u32 = 344;
export const WINDOW_RING_OFFSET: u32 = 348;
export const WINDOW_DEPTH_OFFSET: u32 = 352;
export const WINDOW_AWAY_OFFSET: u32 = 356;
export const WINDOW_LEFT_OFFSET: u32 = 384;
export const WINDOW_WRONG_OFFSET: u32 = 388;
export const WINDOW_RGETS_OFFSET: u32 = 512;
export const WINDOW_SLOTS_OFFSET: u32 = 768;
export const WINDOW_SIZE: u32 = 1792;
/**
 * Bits of a window's `away`. YES: the other side is in another memory. STOPPED: it has canceled the transfer. TOLD: it has been told
 * that this side canceled. OVER: it has said that all bytes have arrived. BEGUN: this side's core has written the chain.
 * SHIPPED: the other side has been told of the chain.
 */
export const AWAY_YES: u32 = 1;
export const AWAY_STOPPED: u32 = 2;
export const AWAY_TOLD: u32 = 4;
export const AWAY_OVER: u32 = 8;
export const AWAY_BEGUN: u32 = 16;
export const AWAY_SHIPPED: u32 = 32;
/** Slots of a window: those of DEPTH_MAX + 1 links, and the last descriptor (see chain.ts). */
export const WINDOW_SLOTS: u32 = 16;
/** Most prefetched links of a chain (P9): a window has this many origin RGETs. */
export const DEPTH_MAX: u32 = 4;

// ╒═════════════ CHAIN: consecutive links in a region of the target; written before the first is shipped ════════════╕
//  link i   RGET i mod depth   REFILL i mod depth   MOVE i           while there are links i + depth, and i + 2 depth
//  last     MOVE               NOTICE
// ╘═════════════════════════════════════════════════════════════════════════════════════════════════════════════════╛
/** Descriptors from one link to the next. */
export const LINK_SLOTS: u32 = 3;
export const LINK_SIZE: u32 = 192;
/** Most links of one chain: 192 KiB of them. Larger messages have larger portions. */
export const LINK_COUNT_MAX: u32 = 1024;
