// @ts-check
import { square } from "./square.js";

export default (/** @type {{ number: number }} */ { number }) => square(number);
