// @ts-check
import { expose } from "comlink";
import { api } from "./call-api.js";

expose(api);
