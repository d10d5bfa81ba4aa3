// @ts-check
// Rank 1 ends the job by the code that is given; rank 0 waits for a message of it.
import { attach } from "pamir";
import { init } from "pamir/mpi";

const client = await attach();
const mpi = await init(client);
const { world } = mpi;
if (world.rank === 0) await world.recv(new Uint8Array(0), 1);
else {
  try {
    world.abort(Number(process.argv[2]));
  } catch (error) {
    const { code, message } = /** @type {import("pamir").PamiError} */ (error);
    console.log(`${code}: ${message}`);
    await world.send(new Uint8Array(0), 0);
  }
}
await mpi.finalize();
client.close();
