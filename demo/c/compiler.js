// @ts-check
// The compiler of the page: a worker, which loads clang when it is first needed.

/**
 * @typedef {object} Compiled
 * @property {Uint8Array<ArrayBuffer>} [program] undefined: there were errors
 * @property {string} text what clang says
 */

export class Compiler {
  isLoaded = false;
  /** @type {Worker | undefined} */
  #worker;

  /** @param {(bytes: number) => void} onLoad called with the bytes that are there, while clang is loaded */
  constructor(onLoad) {
    this.onLoad = onLoad;
  }

  /**
   * @param {string} file @param {string} source
   * @param {AbortSignal} signal ends it; the next call loads clang again
   * @returns {Promise<Compiled>}
   */
  async compile(file, source, signal) {
    this.#worker ??= new Worker(new URL("./compile-worker.js", import.meta.url), { type: "module" });
    const worker = this.#worker;
    try {
      return await new Promise((resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        worker.onerror = (event) => {
          event.preventDefault();
          reject(new Error(event.message || "its worker could not be started"));
        };
        worker.onmessage = ({ data }) => {
          if (data.loaded !== undefined) this.onLoad(data.loaded);
          else if (data.isReady) this.isLoaded = true;
          else if (data.failed !== undefined) reject(new Error(data.failed));
          else resolve(data);
        };
        worker.postMessage({ file, source });
      });
    } catch (error) {
      // What failed may have left the compiler in any state.
      worker.terminate();
      this.#worker = undefined;
      this.isLoaded = false;
      throw error;
    }
  }
}

/**
 * The errors and warnings of what clang says, by their places in the source.
 * @param {string} file @param {string} text
 */
export function diagnosticsOf(file, text) {
  return text.split("\n").flatMap((line) => {
    const found = /^(.+?):(\d+):(\d+): ((?:fatal )?error|warning): (.*)$/.exec(line);
    return found === null || found[1] !== file
      ? []
      : [{ line: Number(found[2]), column: Number(found[3]), kind: found[4], message: found[5] }];
  });
}
