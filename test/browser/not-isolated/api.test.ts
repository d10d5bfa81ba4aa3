import { apiSuite } from "../../conformance/api.suite.js";

apiSuite({ name: "messages, wasm and twin", kernels: ["wasm", "ts"] });
