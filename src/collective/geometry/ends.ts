// Which members of a geometry have ended or closed it, as this member knows.

export class Ends {
  /** Members that have ended or closed the geometry, and whose messages are all delivered. */
  readonly gone = new Set<number>();
  /** Gone members that have ended, or closed the geometry, for certain. The rest is only silent. */
  readonly certain = new Set<number>();
  /** Members that share the memory and have ended. Their blocks are copies by now. */
  readonly ended = new Set<number>();

  get hasAny(): boolean {
    return this.gone.size > 0 || this.ended.size > 0;
  }

  /** Whether nothing is awaited from a member any more, but perhaps messages under way. */
  has(rank: number): boolean {
    return this.gone.has(rank) || this.ended.has(rank);
  }

  /** The first one of which this member has heard. */
  get first(): number | undefined {
    const [first] = [...this.gone, ...this.ended];
    return first;
  }
}
