// What a program says of a job at a NATS server, and the connection to that server.
import { checkKey } from "../../bootstrap/key.js";
import { checkKeys, type Keys } from "../../core/check.js";
import { PamiError, show } from "../../core/error.js";
import { connectNats, type NatsConnection } from "../../nats/connection.js";
import { natsPlace } from "../../nats/place.js";
import { natsVariables } from "../../nats/variables.js";
import { isNode } from "../../support/host.js";
import { checkSecure } from "../secure.js";
import { connectByWeb, type NatsConnect, webPlace } from "./web-connection.js";

/** A job at a NATS server, for `join`. */
export interface JobAtNats {
  /**
   * The WebSocket port of the server: `wss://HOST:PORT`, or those of several servers of one cluster with commas. `USER:PASSWORD@` or
   * `TOKEN@` may stand before the host. In Node, without `connect`: `nats://HOST:PORT` or `tls://HOST:PORT`, with the credentials and
   * authorities of PAMIR_NATS_CREDS and PAMIR_NATS_CA.
   */
  readonly nats: string;
  /** The job's name: 1 to 64 letters, digits, "_" and "-". */
  readonly job: string;
  /**
   * The job key, 32 bytes: a program that has it can do all that a node can. `undefined`: the job has none (PAMIR_INSECURE), which takes
   * `insecure`.
   */
  readonly key: Uint8Array | undefined;
}

const KEYS: Keys<JobAtNats> = { nats: true, job: true, key: true };

/** @returns a copy @throws PAMIR_INVAL, PAMIR_KEY, PAMIR_INSECURE */
export function checkJobAtNats(call: string, place: unknown, insecure: boolean | undefined): JobAtNats {
  checkKeys(`the job of ${call}`, place, KEYS);
  const { nats, job, key } = place as JobAtNats;
  for (const [name, value] of Object.entries({ nats, job }))
    if (typeof value !== "string")
      throw new PamiError("PAMIR_INVAL", `${name} of ${call} is ${show(value)}, not a text`);
  checkServers(call, nats, insecure);
  if (key !== undefined || insecure === true)
    return { nats, job, key: key === undefined ? key : checkKey(`key of ${call}`, key) };
  const ways = "or insecure: true for a job that has none, where every program that reaches the server is trusted";
  throw new PamiError("PAMIR_KEY", `${call} at a NATS server needs the key of the job, in key; ${ways}`);
}

/** Servers at ws: see all that a page is told. @throws PAMIR_INSECURE */
export function checkServers(call: string, nats: string, insecure: boolean | undefined): void {
  for (const server of nats.split(","))
    if (/^\s*ws:/i.test(server)) checkSecure(call, server.trim().replace(/^ws:.*@/is, "ws://…@"), insecure);
}

/** Connects. @throws PAMIR_INVAL, PAMIR_NATS */
export function connectTo(
  call: string,
  { nats, job }: Pick<JobAtNats, "nats" | "job">,
  connect: NatsConnect | undefined,
  opening: { readonly name: string; readonly timeout: number },
): Promise<NatsConnection> {
  if (connect !== undefined) return connectByWeb(webPlace(nats, job, `nats of ${call}`), connect, opening);
  const isWeb = typeof nats === "string" && /^\s*wss?:/i.test(nats);
  if (isNode() && !isWeb) return connectNats(natsPlace({ ...natsVariables(), nats, job }), opening);
  const text = `${call} at the WebSocket port of a NATS server needs connect: wsconnect of @nats-io/nats-core`;
  throw new PamiError("PAMIR_INVAL", `${text}; it is ${show(connect)}`);
}
