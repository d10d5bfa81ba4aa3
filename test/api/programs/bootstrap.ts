// A process of a job: exchanges addresses with the others, and prints what it knows, as one line of JSON.
// Its options come as JSON in the first argument: those of openBootstrap(), and the bytes of a long value.
import { createHash } from "node:crypto";
import { openBootstrap } from "../../../src/bootstrap/open.js";

const { longValue = 0, ...options } = JSON.parse(process.argv[2] ?? "{}");
try {
  const { bootstrap, launcher, key } = await openBootstrap(process.env, options);
  const { rank, size, localRank, localSize } = bootstrap;
  const address = `192.0.2.${rank}:${7000 + rank}`;
  await bootstrap.put(`address-${rank}`, new TextEncoder().encode(address));
  await bootstrap.put(`long-${rank}`, new Uint8Array(longValue).fill(rank + 1));
  await bootstrap.barrier();
  const addresses: string[] = [];
  let longRight = 0;
  for (let other = 0; other < size; other++) {
    addresses.push(new TextDecoder().decode(await bootstrap.get(`address-${other}`)));
    const long = await bootstrap.get(`long-${other}`);
    if (long !== undefined && long.length === longValue && long.every((byte) => byte === other + 1)) longRight++;
  }
  const isMissing = (await bootstrap.get("never-stored")) === undefined;
  await bootstrap.barrier();
  await bootstrap.close();
  const fingerprint = key === undefined ? null : createHash("sha256").update(key).digest("hex").slice(0, 16);
  const inherited = Object.keys(process.env).filter((name) => name.startsWith("PAMIR_KEY") || name === "PMI_FD");
  const said = {
    rank,
    size,
    localRank,
    localSize,
    launcher: launcher.launcher,
    addresses,
    longRight,
    isMissing,
    fingerprint,
  };
  console.log(JSON.stringify({ ...said, inherited }));
} catch (error) {
  const { code, message } = error as Error & { code?: string };
  console.log(JSON.stringify({ code, message }));
  process.exitCode = 1;
}
