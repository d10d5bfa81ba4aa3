// launch({ ports: true }): a message port between the launching thread and each task, for what can't be copied.
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { type Job, launch } from "pamir";
import { describe, expect, it } from "vitest";
import { PATIENCE } from "./support.js";

const ENTRY = new URL("./tasks/port-task.js", import.meta.url);

const portOf = (job: Job, task: number): MessagePort => job.port(task) as unknown as MessagePort;
const heard = (port: MessagePort): Promise<unknown> => new Promise((resolve) => port.once("message", resolve));
const ports = (): number => process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length;

describe("job.port() and client.port", () => {
  it("carry ports and buffers between the launching thread and tasks: the first, spawned and adopted ones", async () => {
    const job = await launch(ENTRY, { tasks: 2, maxTasks: 4, join: true, ports: true });
    job.client.createContext();
    const worker = new Worker(ENTRY, { workerData: { isAdopted: true } });
    const tasks = [1, job.spawn(), job.adopt(worker)];
    expect([job.port(0), job.client.port]).toEqual([undefined, undefined]);
    for (const task of tasks) {
      const port = portOf(job, task);
      const buffer = new ArrayBuffer(1000);
      const { port1, port2 } = new MessageChannel();
      const answers = [heard(port1), heard(port)];
      port.postMessage({ buffer, port: port2 }, [buffer, port2]);
      expect(await Promise.all(answers)).toEqual([`${task}: 1000`, "heard"]);
      expect(buffer.byteLength).toBe(0);
      port1.close();
    }
    // The task has closed its client: its end is closed, and so is this one.
    const [, port] = [portOf(job, 3).postMessage("close"), portOf(job, 3)];
    await new Promise((resolve) => port.once("close", resolve));
    await job.terminate();
    await worker.terminate();
    expect(() => portOf(job, 4)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
  });

  it("give what a task has posted before its end, also behind that", async () => {
    let ended = (): void => {};
    const end = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const job = await launch(ENTRY, { tasks: 2, maxTasks: 3, join: true, ports: true, onExit: () => ended() });
    const port = portOf(job, 1);
    port.postMessage("end");
    await end;
    expect(await heard(port)).toBe("last");
    await job.terminate();
  });

  it("are not there unless they are asked for, nor for processes", async () => {
    const job = await launch(ENTRY, { tasks: 2, join: true });
    expect(job.port(1)).toBe(undefined);
    await job.terminate();
    await expect(launch(ENTRY, { ports: 1 as never })).rejects.toMatchObject({ code: "PAMIR_INVAL" });
    if (process.platform !== "linux") return;
    const other = await launch(ENTRY, { tasks: 2, join: true, processes: 1, ports: true });
    expect(other.port(1)).toBe(undefined);
    await other.terminate();
  });

  it("leave no handles behind", async () => {
    const before = ports();
    const job = await launch(ENTRY, { tasks: 3, maxTasks: 40, join: true, ports: true });
    for (let i = 0; i < 10; i++) {
      const task = job.spawn();
      portOf(job, task).postMessage("unread");
      await job.terminate(task);
    }
    await job.terminate();
    // Their other ends close on other threads.
    await expect.poll(ports, { timeout: PATIENCE }).toBeLessThanOrEqual(before);
  });
});
