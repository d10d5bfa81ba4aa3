// Runs the task module of api.suite.ts on a page, in a worker of a page, or in a process of Node. It says what came of it.
import { give } from "./joined.js";

/** How a task has ended. Without an error: its module was run to its end. */
export interface Ended {
  readonly error?: string;
  readonly errorCode?: string | undefined;
  readonly stack?: string | undefined;
}

function begin(ticket: string, args: unknown): Promise<Ended> {
  give(ticket, args);
  return new Promise((resolve) => {
    const fail = (thrown: unknown): void => {
      const { name = "Error", message = String(thrown), code, stack } = (thrown ?? {}) as Error & { code?: string };
      resolve({ error: `${name}: ${message}`, errorCode: code, stack });
    };
    if (typeof addEventListener === "undefined") process.on("unhandledRejection", fail).on("uncaughtException", fail);
    else {
      addEventListener("unhandledrejection", ({ reason }) => fail(reason));
      addEventListener("error", ({ error }) => fail(error));
    }
    import("../../conformance/tasks/peer.js").then(() => resolve({}), fail);
  });
}

type Given = Parameters<typeof begin>;

if (typeof document !== "undefined") Object.assign(globalThis, { begin });
else if (typeof process !== "undefined") {
  process.once("SIGTERM", () => process.exit(1));
  process.once("message", async (given: Given) => {
    const ended = await begin(...given);
    process.send?.(ended, () => process.exit());
  });
} else {
  const channel = globalThis as unknown as MessagePort;
  channel.onmessage = async ({ data }: MessageEvent<Given>) => channel.postMessage(await begin(...data));
}
