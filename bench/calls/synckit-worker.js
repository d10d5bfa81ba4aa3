// @ts-check
import { runAsWorker } from "synckit";
import { square } from "./functions.js";

runAsWorker(square);
