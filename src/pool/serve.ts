// The worker's side of a pool: serve().
import { type AttachPort, attach, PamiError } from "../index.js";
import { checkKeys, shown } from "./check.js";
import { exchangeOf } from "./exchange/exchange.js";
import { type Functions, namesOf } from "./names.js";

/** Options of `serve`. */
export interface ServeOptions {
  /** Where the caller's `connect()` reaches this worker, if the program has started it: `self` in a Web Worker, `parentPort`. */
  readonly port?: AttachPort | undefined;
}

const SERVE_KEYS = new Set(["port"] satisfies (keyof ServeOptions)[]);

function checkPort(port: AttachPort | undefined): void {
  if (port === undefined || typeof (Object(port) as Partial<AttachPort>).postMessage === "function") return;
  throw new PamiError("PAMIR_INVAL", `port of serve() is ${shown(port)}, not a port of messages`);
}

/** Whether this worker serves the pool that has started it. */
let isServing = false;

/** What `pool<Api>()` and `connect<Api>()` take as the type of a worker's functions. */
export type Api<F extends object> = F;

/**
 * Lets callers of this worker call functions by name: those of an object, or the methods of an instance of a class. They
 * take and return whatever structured clone copies, or promises; what they throw rejects at the caller. A function that
 * returns an iterable can be read as a stream. Runs until the caller closes its pool: a worker module ends with this call.
 * @returns the functions, whose type the caller imports
 * @throws PAMIR_INVAL at once for a name that the pool has itself, for options that there are not, and for a second call; what
 *   attach() throws ends the worker
 */
export function serve<F extends object>(functions: F & Functions<F>, options: ServeOptions = {}): Api<F> {
  checkKeys("options of serve()", options, SERVE_KEYS);
  checkPort(options.port);
  const names = namesOf("serve()", functions);
  if (options.port === undefined) {
    if (isServing)
      throw new PamiError("PAMIR_INVAL", "serve() was called before: a worker serves one object of functions");
    isServing = true;
  }
  void run(names, functions, options);
  return functions;
}

async function run(names: readonly string[], functions: object, { port }: ServeOptions): Promise<void> {
  const client = await attach(port);
  const context = client.createContext({ mayBlock: true });
  let isOver = false;
  exchangeOf(context).serve({ names, functions }, () => {
    isOver = true;
  });
  context.ready();
  while (!isOver) {
    try {
      await context.progress();
    } catch (error) {
      const { code } = error as PamiError;
      if (code === "PAMIR_CLOSED") return;
      if (code !== "PAMIR_INTERRUPTED") throw error;
    }
  }
  client.close();
}
