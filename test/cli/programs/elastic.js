// A job with a task that comes later: the tasks with which it began are killed, and the later one goes on without them.
import { isMainThread } from "node:worker_threads";
import { attach, launch } from "pamir";

const PATIENCE = { timeout: 50_000 };
if (isMainThread) {
  const url = new URL(import.meta.url);
  const job = await launch(url, { tasks: 2, processes: 2, maxTasks: 3, onError: "ignore" });
  job.spawn();
  await job.exited;
} else {
  const client = await attach();
  const context = client.createContext();
  let made = 0;
  context.dispatch(1, () => void made++);
  await context.whenStarted(2, PATIENCE);
  const endpoints = [0, 1, 2].map((task) => client.endpoint(task));
  const geometry = await client.createGeometry(endpoints, { context, ...PATIENCE });
  if (client.task < 2) {
    while (made === 0) await context.progress(PATIENCE);
    process.kill(process.pid, "SIGKILL");
  }
  for (const task of [0, 1]) context.sendImmediate(task, 1);
  await geometry.barrier(PATIENCE).catch(() => {});
  const left = await geometry.shrink(PATIENCE);
  console.log(`goes on with ${left.size}`);
  client.close();
}
