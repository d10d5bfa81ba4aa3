// @ts-check
// A job at a NATS server to which tasks come later. First argument: tasks with which it begins. Second: numbers of the later ones,
// with commas, one after the other. Third: a task that ends before. All that are there then add up ones, as one geometry.
import { attach } from "pamir";

const [start = 0, laters = "", lost = "", ...place] = process.argv.slice(2);
const PATIENCE = { timeout: 90_000 };
const [nats, job] = place;
const client = await attach(nats === undefined ? undefined : { nats, job: String(job), later: true });
const context = client.createContext();
const begun = Number(start);
let members = Array.from({ length: begun }, (_, task) => task);
const told = client.rank === client.task ? "" : ` as rank ${client.rank}`;
console.log(`task ${client.task} is there${told}`);
if (client.task < begun) {
  let world = await client.world(PATIENCE);
  await world.barrier(PATIENCE);
  console.log("begins");
  if (lost !== "") {
    await context.whenEnded(Number(lost), PATIENCE);
    world = await world.shrink(PATIENCE);
    console.log(`goes on with ${world.size}`);
  }
}
if (lost !== "") members = members.filter((task) => task !== Number(lost));
for (const later of laters.split(",").map(Number)) {
  members.push(later);
  if (client.task > later) continue;
  await context.whenStarted(later, PATIENCE);
  const geometry = await client.createGeometry(members, { ...PATIENCE, context });
  const sum = await geometry.allreduce({ send: Int32Array.of(1), operation: "sum" }, PATIENCE);
  console.log(`${sum} with ${later}`);
}
client.close();
