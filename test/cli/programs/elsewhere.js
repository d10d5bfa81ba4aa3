// @ts-check
// Imported before a program: it then runs as on a system where processes share no memory.
Object.defineProperty(process, "platform", { value: "freebsd" });
