// Frees memory that Node allocates for each packet, without waiting for the garbage collector.

/**
 * Bytes from which that pays. Left to the garbage collector, packets of 64 KiB made V8 mark its whole heap for each 64 MiB of
 * them: a third of the processor time of a node that receives.
 */
const FREED_BYTES = 4096;

/** A port that is closed, made when it is first needed. What is transferred to it is freed at once. */
let closedPort: MessagePort | undefined;

/**
 * Frees an array that nothing uses any more, if it is long and has an ArrayBuffer for itself. It is detached then. That takes
 * 1 µs, a third of what the garbage collector takes for 64 KiB.
 */
export function free({ buffer, length }: Uint8Array): void {
  if (length < FREED_BYTES || buffer.byteLength !== length || !(buffer instanceof ArrayBuffer)) return;
  if (closedPort === undefined) {
    const { port1, port2 } = new MessageChannel();
    port1.close();
    port2.close();
    closedPort = port1;
  }
  closedPort.postMessage(undefined, [buffer]);
}
