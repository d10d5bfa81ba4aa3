/** Memory of a node's sessions, for stream queues and buffered segments. Pointers are offsets into its linear memory. */
export interface Arena {
  /** @returns a pointer; 0: there is no free block now */
  allocate(bytes: number): number;
  /** @param bytes as given to allocate() */
  free(pointer: number, bytes: number): void;
}
