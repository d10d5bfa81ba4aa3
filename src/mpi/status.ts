// What a receive or a probe tells of its message.
import { ANY_SOURCE, ANY_TAG, PROC_NULL } from "./constants.js";

/** What a receive or a probe tells of its message. */
export class CommStatus {
  /** Rank that sent the message, in the communicator. */
  readonly source: number;
  /** Tag of the message. */
  readonly tag: number;
  /** Bytes that were received; of a probe: bytes of the message. */
  readonly bytes: number;
  /** Whether the request was canceled before a message came. */
  readonly isCanceled: boolean;

  /** @internal */
  constructor(source: number, tag: number, bytes: number, isCanceled = false) {
    this.source = source;
    this.tag = tag;
    this.bytes = bytes;
    this.isCanceled = isCanceled;
  }

  /**
   * Returns the elements of a message: `status.getCount(Float64Array)`.
   * @returns undefined if the message is no whole number of them
   */
  getCount(type: { readonly BYTES_PER_ELEMENT: number }): number | undefined {
    const count = this.bytes / type.BYTES_PER_ELEMENT;
    return Number.isInteger(count) ? count : undefined;
  }
}

/** Of what has no message: sends, and receives that were canceled. */
export const NO_MESSAGE: CommStatus = new CommStatus(ANY_SOURCE, ANY_TAG, 0);
export const CANCELED: CommStatus = new CommStatus(ANY_SOURCE, ANY_TAG, 0, true);
export const FROM_NOBODY: CommStatus = new CommStatus(PROC_NULL, ANY_TAG, 0);
