// What the conformance suites and their support import from Node's modules, by means of a Web Worker.

/** `readFileSync` of a URL. */
export function readFileSync(url: URL): Uint8Array {
  const request = new XMLHttpRequest();
  request.open("GET", url, false);
  request.responseType = "arraybuffer";
  request.send();
  if (request.status !== 200) throw new Error(`${url}: ${request.status}`);
  return new Uint8Array(request.response as ArrayBuffer);
}

/** A worker of `worker_threads` that runs a piece of source; it exits when the source is done. */
export class Worker {
  readonly #worker: globalThis.Worker;
  readonly #listeners = new Map<string, () => void>();

  constructor(source: string, { workerData }: { workerData: unknown }) {
    const text = `const require = () => globalThis;
      onmessage = ({ data }) => { globalThis.workerData = data; postMessage("online"); run(); postMessage("exit"); close(); };
      function run() { ${source} }`;
    this.#worker = new globalThis.Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    this.#worker.onmessage = ({ data }: MessageEvent<string>) => this.#listeners.get(data)?.();
    this.#worker.postMessage(workerData);
  }

  on(event: "online" | "exit", listener: () => void): void {
    this.#listeners.set(event, listener);
  }
}
