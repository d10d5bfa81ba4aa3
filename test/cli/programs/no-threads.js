// @ts-check
// Imported before a program: the system starts no threads for processes that launch() has started.
import threads from "node:worker_threads";

if (process.send !== undefined) {
  threads.Worker = /** @type {typeof threads.Worker} */ (
    /** @type {unknown} */ (
      function none() {
        throw new Error("EAGAIN");
      }
    )
  );
}
