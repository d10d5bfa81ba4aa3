// The end of a page, or of a process. A browser may close the connections of a page that it closes without a word, as a process that
// exits does.
import { isNode } from "../support/host.js";

/** Calls back when this page is closed, and not kept for later, or this process exits. @returns a function that forgets it */
export function hearHide(call: () => void): () => void {
  const onHide = (event: unknown): void => {
    if ((event as { readonly persisted?: boolean }).persisted !== true) call();
  };
  if (typeof document !== "undefined") {
    addEventListener("pagehide", onHide);
    return () => removeEventListener("pagehide", onHide);
  }
  if (!isNode()) return () => {};
  process.once("exit", onHide);
  return () => process.off("exit", onHide);
}
