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

/** Of a worker of the suites, to its page: a worker is to be started from this text, with this data and this port. */
export interface Start {
  readonly start: string;
  readonly workerData: unknown;
  readonly port: MessagePort;
}

/**
 * A worker of `worker_threads` that runs a piece of source; it exits when the source is done. The page starts it: in
 * Firefox 153, a worker that starts workers itself stands still for ever now and then, one time in 20 to 800.
 */
export class Worker {
  readonly #listeners = new Map<string, () => void>();

  constructor(source: string, { workerData }: { workerData: unknown }) {
    const start = `const require = () => globalThis;
      onmessage = ({ data: { workerData, port } }) => {
        Object.assign(globalThis, { workerData });
        port.postMessage("online");
        run();
        port.postMessage("exit");
      };
      function run() { ${source} }`;
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }: MessageEvent<string>) => {
      this.#listeners.get(data)?.();
      if (data === "exit") port1.close();
    };
    postMessage({ start, workerData, port: port2 } satisfies Start, { transfer: [port2] });
  }

  on(event: "online" | "exit", listener: () => void): void {
    this.#listeners.set(event, listener);
  }
}

/** On the page: starts it. It lives as long as the page does. */
export function startWorker({ start, workerData, port }: Start): void {
  const url = URL.createObjectURL(new Blob([start], { type: "text/javascript" }));
  new globalThis.Worker(url).postMessage({ workerData, port }, [port]);
}
