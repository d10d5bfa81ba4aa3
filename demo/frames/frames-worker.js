// @ts-check
// The worker to which the page posts.
import { isFilled } from "./frames-common.js";

/** @param {{ data: Uint8Array }} event */
self.onmessage = ({ data }) => {
  postMessage("there");
  postMessage(isFilled(data));
};
postMessage("ready");
