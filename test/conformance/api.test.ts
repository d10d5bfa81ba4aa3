import { apiSuite } from "./api.suite.js";

apiSuite({ name: "shared memory, wasm", kernels: ["wasm"] });
apiSuite({ name: "shared memory, wasm and twin", kernels: ["wasm", "ts"] });
