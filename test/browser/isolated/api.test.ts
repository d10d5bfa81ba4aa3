import { apiSuite } from "../../conformance/api.suite.js";

apiSuite({ name: "shared memory, wasm and twin", kernels: ["wasm", "ts"] });
apiSuite({ name: "shared memory, without Atomics.waitAsync", kernels: ["wasm"], noWaitAsync: true, many: 20 });
