// @ts-check
import workerpool from "workerpool";
import { square } from "./square.js";

workerpool.worker({ square: (/** @type {{ number: number }} */ { number }) => square(number) });
