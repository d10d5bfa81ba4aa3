// A message port for each task, to the thread that has launched the job: for what can't be copied. See launch({ ports: true }).
import type { StartMessage } from "../start-message.js";

/** The launching thread's ends of the channels, by task. */
export class TaskPorts {
  readonly #ports = new Map<number, MessagePort>();

  /** Makes a task's channel. @returns the task's end */
  open(task: number): MessagePort {
    // A task of this number could not be started before.
    this.#ports.get(task)?.close();
    const { port1, port2 } = new MessageChannel();
    this.#ports.set(task, port1);
    return port2;
  }

  of(task: number): MessagePort | undefined {
    return this.#ports.get(task);
  }

  close(): void {
    for (const port of this.#ports.values()) port.close();
    this.#ports.clear();
  }
}

/** The ports to transfer with bootstraps to another thread: the tasks' ends of the channels. */
export function portsOf(bootstraps: readonly StartMessage[]): MessagePort[] {
  return bootstraps.flatMap(({ port }) => (port === undefined ? [] : [port]));
}
