// Connect packets that a member of the job has made up: sealed by the job's key, and stating what it likes.
import {
  CONNECT_EPOCH_OFFSET,
  CONNECT_INITIATOR_OFFSET,
  CONNECT_NODE_OFFSET,
  CONNECT_NONCE_OFFSET,
  CONNECT_SERIAL_OFFSET,
  CONNECT_SIZE,
  CONNECT_TARGET_OFFSET,
  PACKET_CONNECT,
  TAG_BYTES,
} from "../../assembly/layout.js";
import { type KeySchedule, sealInto } from "../../src/session/wire/key-schedule.js";
import { Packet } from "../../src/session/wire/packet.js";

export interface StatedConnect {
  readonly node: number;
  /** The upper half counts the starts of the node, from 1 on. */
  readonly epoch: number;
  readonly serial: number;
  readonly target: number;
  /** A repeated connect packet has the initiator and the nonce of the first one. */
  readonly initiator: number;
  readonly nonce: readonly [number, number];
}

/** Words of the instance that all forged packets of a node state: a target admits no other one of that start. */
export const instanceOf = (node: number): [number, number] => [1000 + node, 2000 + node];

export function forgedConnect(stated: StatedConnect, schedule: KeySchedule, job: number): Uint8Array {
  const body = new DataView(new ArrayBuffer(CONNECT_SIZE));
  const set = (offset: number, word: number): void => body.setUint32(offset, word, true);
  set(CONNECT_INITIATOR_OFFSET, stated.initiator);
  set(CONNECT_NODE_OFFSET, stated.node);
  set(CONNECT_EPOCH_OFFSET, stated.epoch);
  set(CONNECT_SERIAL_OFFSET, stated.serial);
  set(CONNECT_TARGET_OFFSET, stated.target);
  [...stated.nonce, ...instanceOf(stated.node)].forEach((word, i) => {
    set(CONNECT_NONCE_OFFSET + 4 * i, word);
  });
  const packet = new Packet(1452).begin(PACKET_CONNECT, job);
  for (let at = 0; at < CONNECT_SIZE; at += 4) packet.word(body.getUint32(at, true));
  packet.address(0, 1, 0);
  const sealed = new Uint8Array(packet.length + TAG_BYTES);
  sealInto(sealed, packet, schedule.handshake);
  return sealed;
}
