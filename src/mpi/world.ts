// What all ranks of a job have in common, in whatever language their programs are: context 0, and the geometry of all.
import { type Client, type Context, type Geometry, PamiError } from "../index.js";

/**
 * Makes a rank's part of the world. All ranks call it.
 * @param context the task's context 0; default: it is made
 * @throws PAMIR_INVAL for another context; as `client.world()`
 */
export async function makeWorld(
  client: Client,
  context?: Context,
): Promise<{ readonly context: Context; readonly world: Geometry }> {
  const own = context ?? client.createContext();
  if (own.index !== 0) {
    if (context === undefined) own.close();
    const text = `MPI goes by context 0 of each task, and this is context ${own.index}: give it the context that exists`;
    throw new PamiError("PAMIR_INVAL", text);
  }
  return { context: own, world: await client.world() };
}
