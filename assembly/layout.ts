// Every offset, size, flag and limit of the shared linear memory, by area, and the format of packets. asc compiles all files
// of layout/, and TypeScript imports them. So they must stay portable: only `export const` and plain integers, no
// decorators, no casts, and no imports.
//
// Naming: AREA_FIELD_OFFSET is in bytes from the start of the area. Every word is a u32, little-endian. A word that
// several threads touch names its sync point (the table in docs/internals/memory.md); in the code, both ends of it name each other.
export * from "./layout/collective";
export * from "./layout/job";
export * from "./layout/lane";
export * from "./layout/mpi";
export * from "./layout/mpi-calls";
export * from "./layout/packet";
export * from "./layout/queue";
export * from "./layout/reduction";
export * from "./layout/rma";
export * from "./layout/trace";
export * from "./layout/transfer";
export * from "./layout/tuning";
export * from "./layout/type";
