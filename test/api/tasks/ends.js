// @ts-check
// Joins, and leaves at once.
import { attach } from "pamir";

(await attach()).close();
