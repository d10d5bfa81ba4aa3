// The integer types of the files that asc compiles as well (assembly/layout/, assembly/seq.ts).
type i32 = number;
type u32 = number;
