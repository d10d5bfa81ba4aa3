import { apiSuite } from "./api.suite.js";

apiSuite({ name: "shared memory, wasm", kernels: ["wasm"], many: 60 });
apiSuite({ name: "shared memory, wasm and twin", kernels: ["wasm", "ts"], many: 60 });
