// A UDP socket of which Node and foreign calls make use: Linux, IPv4. One call takes all datagrams that have come, into one
// buffer. Node makes a call, a buffer of 64 KiB and two objects for each.
import type { CLibrary } from "../../support/node/foreign.js";
import type { DatagramCalls } from "./udp-link.js";

/** Datagrams of a call at the most, and bytes of the longest: those of IPv4 have 65,507. */
const BATCH = 8;
/** No multiple of 4,096, so that the first bytes of all have lines of the cache of their own. */
const DATAGRAM_BYTES = 65_536 + 64;
const MSG_DONTWAIT = 0x40;
const [SOL_SOCKET, SO_REUSEADDR] = [1, 2];
const [AF_INET, SOCK_DGRAM, SOCK_CLOEXEC] = [2, 2, 0o2000000];
/** Bytes of struct sockaddr_in: the family, then the port and the address in network order, then 8 unused bytes. */
const ADDRESS_BYTES = 16;
/** Words of struct iovec: a pointer and a length. */
const VECTOR_WORDS = 2;
/**
 * Words of struct mmsghdr. Of its struct msghdr, they are: a pointer to the address, its length, a pointer to the vectors, how
 * many, a pointer to control data, their length, flags. Then how many bytes have come.
 */
const HEADER_WORDS = 8;
const [NAME, NAME_LENGTH, VECTORS, VECTOR_COUNT, RECEIVED] = [0, 1, 2, 3, 7];

/**
 * Opens a socket of IPv4. undefined: the system refuses it, and Node will say why, or has other structures.
 * @param host four numbers @param port 0: the system chooses one
 */
export function openDatagrams(library: CLibrary, host: string, port: number): DatagramCalls | undefined {
  if (process.platform !== "linux" || !["x64", "arm64"].includes(process.arch)) return undefined;
  const socket = library.func("socket", "int", ["int", "int", "int"]);
  const bind = library.func("bind", "int", ["int", "void *", "uint"]);
  const close = library.func("close", "int", ["int"]);
  const setsockopt = library.func("setsockopt", "int", ["int", "int", "int", "void *", "uint"]);
  const sendto = library.func("sendto", "int64_t", ["int", "void *", "size_t", "int", "uintptr_t", "uint"]);
  const recvmmsg = library.func("recvmmsg", "int", ["int", "uintptr_t", "uint", "int", "uintptr_t"]);
  const schedYield = library.func("sched_yield", "int", []);
  /** That of a target, then those of the origins of a batch. */
  const addresses = new DataView(new ArrayBuffer((1 + BATCH) * ADDRESS_BYTES));
  // The headers, and behind them the vectors to which they point: one buffer, so that all of it lives as long as the calls.
  const headers = new BigInt64Array(BATCH * (HEADER_WORDS + VECTOR_WORDS));
  const lengths = new Int32Array(headers.buffer);
  const [addressesAt, headersAt] = [addresses, headers].map(({ buffer }) => library.addressOf(buffer)) as [
    number,
    number,
  ];
  const firstVector = BATCH * HEADER_WORDS;
  for (let i = 0; i < BATCH; i++) {
    const vector = firstVector + VECTOR_WORDS * i;
    headers[vector + 1] = BigInt(DATAGRAM_BYTES);
    headers[HEADER_WORDS * i + NAME] = BigInt(addressesAt + ADDRESS_BYTES * (1 + i));
    // The kernel writes the same length.
    headers[HEADER_WORDS * i + NAME_LENGTH] = BigInt(ADDRESS_BYTES);
    headers[HEADER_WORDS * i + VECTORS] = BigInt(headersAt + 8 * vector);
    headers[HEADER_WORDS * i + VECTOR_COUNT] = 1n;
  }
  let packets: Uint8Array[] = [];
  const receiveInto = (bytes: Uint8Array): void => {
    const at = library.addressOf(bytes.buffer) + bytes.byteOffset;
    packets = Array.from({ length: BATCH }, (_, i) => {
      headers[firstVector + VECTOR_WORDS * i] = BigInt(at + DATAGRAM_BYTES * i);
      return bytes.subarray(DATAGRAM_BYTES * i, DATAGRAM_BYTES * (i + 1));
    });
  };
  receiveInto(new Uint8Array(BATCH * DATAGRAM_BYTES));
  addresses.setUint16(0, AF_INET, true);
  const setTarget = (host: string, port: number): void => {
    addresses.setUint16(2, port);
    for (const [i, octet] of host.split(".").entries()) addresses.setUint8(4 + i, Number(octet));
  };
  const descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  setTarget(host, port);
  if (descriptor < 0 || bind(descriptor, addresses, ADDRESS_BYTES) < 0) {
    close(descriptor);
    return undefined;
  }
  /** The target of the last packet, and the origin of the last datagram. */
  let [toHost, toPort] = ["", -1];
  let [fromHost, fromAddress] = ["", Number.NaN];
  return {
    descriptor,
    ownPort() {
      const no = new Int32Array(1);
      setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, no, no.byteLength);
    },
    send(host, port, packet) {
      if (port !== toPort || host !== toHost) {
        [toHost, toPort] = [host, port];
        setTarget(host, port);
      }
      return sendto(descriptor, packet, packet.length, MSG_DONTWAIT, addressesAt, ADDRESS_BYTES) === packet.length;
    },
    yieldProcessor: () => void schedYield(),
    receiveInto(allocate) {
      const bytes = allocate(BATCH * DATAGRAM_BYTES);
      if (bytes !== undefined) receiveInto(bytes);
    },
    receive(take) {
      const count = recvmmsg(descriptor, headersAt, BATCH, MSG_DONTWAIT, 0);
      for (let i = 0; i < count; i++) {
        const at = ADDRESS_BYTES * (1 + i);
        const address = addresses.getInt32(at + 4);
        if (address !== fromAddress) {
          fromAddress = address;
          fromHost = [0, 1, 2, 3].map((octet) => addresses.getUint8(at + 4 + octet)).join(".");
        }
        const length = lengths[2 * (HEADER_WORDS * i + RECEIVED)] as number;
        take((packets[i] as Uint8Array).subarray(0, length), fromHost, addresses.getUint16(at + 2));
      }
      return count === BATCH;
    },
  };
}
