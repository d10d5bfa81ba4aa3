// A page with a strip alone: four tasks that exchange halos, or a trace that the test has made.
import { type Job, launch, type Trace } from "pamir";
import { StripModel } from "../../../demo/strip/model.js";
import { mountStrip } from "../../../demo/strip/strip.js";

let job: Job | undefined;

/** Tasks that send, beside the page. */
const WORKERS = 4;

async function start(rounds: number): Promise<void> {
  await job?.terminate();
  const options = {
    tasks: WORKERS + 1,
    maxTasks: WORKERS + 2,
    join: true,
    trace: true,
    args: { rounds },
    heapBytes: 2 ** 23,
  } as const;
  job = await launch(new URL("./strip-task.js", import.meta.url), { ...options, onError: "ignore" });
  job.client?.createContext();
  // What a test waits for is of this job.
  strip.model = new StripModel({ traceEvents: [], origin: 0 });
}

const strip = mountStrip(document.querySelector("#strip") as HTMLElement, () => job);

/** A trace of so many messages between some tasks, a microsecond apart. */
function synthetic(tasks: number, messages: number): Trace {
  const traceEvents: Trace["traceEvents"][number][] = [];
  for (let tid = 0; tid < tasks; tid++) {
    traceEvents.push({ ph: "M", name: "thread_name", ts: 0, pid: 1, tid, args: { name: `task ${tid}` } });
  }
  for (let id = 1; id <= messages; id++) {
    const [from, to, ts] = [id % tasks, (id + 1 + (id % 3)) % tasks, id];
    const args = { from: `${from}.0`, to: `${to}.0`, count: id, bytes: 8 };
    traceEvents.push({ ph: "X", cat: "send", name: "send id 1", ts, dur: 0.1, pid: 1, tid: from, args });
    traceEvents.push({ ph: "s", cat: "message", name: "message", ts, pid: 1, tid: from, id });
    traceEvents.push({ ph: "X", cat: "handler", name: "id 1", ts: ts + 2.5, dur: 0.4, pid: 1, tid: to, args });
    traceEvents.push({ ph: "f", bp: "e", cat: "message", name: "message", ts: ts + 2.5, pid: 1, tid: to, id });
  }
  return { traceEvents, displayTimeUnit: "ns", origin: 1 };
}

Object.assign(globalThis, {
  strip,
  start,
  showSynthetic: (tasks: number, messages: number) => strip.show(synthetic(tasks, messages)),
  inSlices: async (tasks: number, messages: number) => {
    const trace = synthetic(tasks, messages);
    return [new StripModel(trace), await StripModel.inSlices(trace)];
  },
  spawn: () => job?.spawn(),
  kill: (task: number) => job?.terminate(task),
  text: () => String(job?.trace()),
});
