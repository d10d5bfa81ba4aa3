// @ts-check
// What bench/nats.bench.mjs compares with: the client of NATS itself, one process that asks and sends, one that answers.
import { connect } from "@nats-io/transport-node";

const [role, rounds = 0, small = 0, large = 0] = process.argv
  .slice(2)
  .map((text, i) => (i === 0 ? text : Number(text)));
const connection = await connect({ servers: process.env.PAMIR_NATS ?? "" });
const [WARM, MIB] = [200, 2 ** 20];

/** @param {number} count @param {Uint8Array} payload @returns {Promise<number>} seconds */
async function stream(count, payload) {
  /** @type {Promise<void>} */
  const done = new Promise((resolve) => {
    connection.subscribe("bare.done", { max: 1, callback: () => resolve() });
  });
  await connection.flush();
  const start = performance.now();
  for (let sent = 0; sent < count; sent++) {
    connection.publish("bare.data", payload);
    // Without this, all of it would wait in this process.
    if (sent % 4096 === 4095 || payload.length >= MIB) await connection.flush();
  }
  await done;
  return (performance.now() - start) / 1000;
}

if (role === "ask") {
  const short = new Uint8Array(64);
  const times = [];
  for (let round = 0; round < WARM + Number(rounds); round++) {
    const start = performance.now();
    await connection.request("bare.ask", short, { timeout: 60_000 });
    if (round >= WARM) times.push(((performance.now() - start) * 1000) / 2);
  }
  times.sort((a, b) => a - b);
  const rate = Number(small) / (await stream(Number(small), short));
  const bytes = (Number(large) * MIB) / (await stream(Number(large), new Uint8Array(MIB)));
  console.log(JSON.stringify({ oneWay: times[times.length >> 1], rate, bytes }));
} else {
  let data = 0;
  connection.subscribe("bare.ask", { callback: (_, message) => void message.respond(message.data) });
  connection.subscribe("bare.data", {
    callback: () => {
      data++;
      if (data === Number(small) || data === Number(small) + Number(large)) connection.publish("bare.done");
      if (data === Number(small) + Number(large)) void connection.flush().then(() => connection.close());
    },
  });
  await connection.flush();
  console.log("ready");
}
if (role === "ask") await connection.close();
