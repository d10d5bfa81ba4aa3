// What the conformance suites use of Node, in a Web Worker. Imported before them.
import { Buffer } from "buffer";

Object.assign(globalThis, { Buffer, process: { env: {} } });
