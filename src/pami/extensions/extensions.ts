// What is built upon geometries: loaded when the first of it is made.
export { createAggregator } from "./aggregator.js";
export { createCounter } from "./counter.js";
export { createGrid } from "./grid.js";
export { shareRegion } from "./shared-region.js";
