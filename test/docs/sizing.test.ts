// docs/sizing.md: its tables are computed here, by the code that lays out a job's memory and by jobs that run.
import { readFileSync } from "node:fs";
import { launch, SUCCESS } from "pamir";
import { expect, it } from "vitest";
import { BUFFER_PAYLOAD_MIN } from "../../assembly/layout.js";
import { memoryMap } from "../../src/memory/map.js";
import { until } from "../api/support.js";

const page = readFileSync("docs/sizing.md", "utf8");
const MIB = 1024 ** 2;

/** The rows of the table that begins with these columns, as numbers. */
function table(columns: string): number[][] {
  const lines = page.split("\n");
  const head = lines.findIndex((line) => line.replace(/ +/g, " ").startsWith(`| ${columns} |`));
  expect(head).toBeGreaterThan(0);
  const rows = lines.slice(head + 2);
  return rows
    .slice(
      0,
      rows.findIndex((line) => !line.startsWith("|")),
    )
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => Number(cell.replaceAll(",", ""))),
    );
}

/** Bytes of a lane from one context to another, as it is made and as it is replaced, and the new one's largest message. */
async function laneOf(laneBytes: number): Promise<{ fresh: number; room: number; grown: number }> {
  const job = await launch(null, { tasks: 1, join: true, contexts: 2, laneBytes });
  try {
    const [origin, target] = [job.client.createContext(), job.client.createContext()];
    const bytes = () => job.dump().heap.owners[0]?.lanes as number;
    expect(origin.resume([target.endpoint])).toBe(SUCCESS);
    const [fresh, room] = [bytes(), origin.room(target.endpoint)];
    let heard = 0;
    const most = BUFFER_PAYLOAD_MIN - 1;
    target.dispatch(1, (message) => {
      heard = message.payloadBytes;
    });
    origin.send({ to: target.endpoint, dispatch: 1, payload: new Uint8Array(most) });
    until(target, () => heard === most);
    return { fresh, room, grown: bytes() };
  } finally {
    await job.terminate();
  }
}

it("the fixed part", () => {
  const rows = table("tasks | contexts | regions");
  const computed = rows.map(([tasks, contexts, regions, fifos, slots, heapBytes]) => {
    const limits = { tasks, contexts, regions, fifos, slots, heapBytes, laneBytes: 16384 } as Required<
      Parameters<typeof memoryMap>[0]
    >;
    return [tasks, contexts, regions, fifos, slots, heapBytes, memoryMap(limits).heapBase];
  });
  expect(rows.length).toBeGreaterThan(5);
  expect(rows).toEqual(computed);
});

it("lanes, as jobs have them", async () => {
  const rows = table("laneBytes");
  const computed: number[][] = [];
  for (const [laneBytes] of rows) {
    const { fresh, room, grown } = await laneOf(laneBytes as number);
    computed.push([laneBytes as number, fresh, room, grown]);
  }
  expect(rows.length).toBeGreaterThan(3);
  expect(rows).toEqual(computed);
});

it("tasks that all talk to each other", async () => {
  const { fresh, grown } = await laneOf(16384);
  const rows = table("tasks | lanes");
  const computed = rows.map(([tasks = 0]) => {
    const lanes = tasks * (tasks - 1);
    return [tasks, lanes, Number(((lanes * fresh) / MIB).toFixed(1)), Number(((lanes * grown) / MIB).toFixed(1))];
  });
  expect(rows.length).toBeGreaterThan(3);
  expect(rows).toEqual(computed);
});
