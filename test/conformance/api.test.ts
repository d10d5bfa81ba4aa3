import { apiSuite } from "./api.suite.js";

apiSuite({ name: "shared memory, wasm", kernels: ["wasm"], many: 60 });
apiSuite({ name: "shared memory, wasm and twin", kernels: ["wasm", "ts"], many: 60 });
apiSuite({ name: "shared memory, wasm, engine thread", kernels: ["wasm"], engine: "thread", many: 60 });
apiSuite({ name: "shared memory, twin, engine thread", kernels: ["ts"], engine: "thread", many: 60 });
