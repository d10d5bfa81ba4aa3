// Parts of a value that stay where they are: a number goes instead of each.

/** A part of a value that a program knows by a name, such as "argument 2: value". */
export type Place = readonly [name: string, part: unknown];

/** Numbers for what is not copied, such as functions. */
export interface Handles {
  /**
   * The number that goes instead of a part of a value: a whole number from 0 to 2^53 - 1. Asked of functions, symbols and
   * instances of classes. undefined: the part is copied, or refused, as without handles.
   */
  numberOf(part: unknown): number | undefined;
  /** What the receiver's value has in place of a number. The number may be one that this side never gave. */
  partOf(number: number): unknown;
  /**
   * Names for parts of a value that can't be copied, for the error's text; of several, the last is the whole value. undefined:
   * the whole value is "value".
   */
  placesOf?(value: unknown): readonly Place[] | undefined;
}
