// Where the processes of a rendezvous meet: an address of rank 0's host, by TCP. src/bootstrap/nats/ has another one.
import type { Socket } from "node:net";
import { PamiError } from "../../core/error.js";
import { after } from "../../support/timers.js";
import { addressText, type HostPort } from "../address.js";
import type { Stream } from "../lines.js";
import { needModule } from "../node.js";
import { reasonText, secondsText } from "../text.js";

/** Milliseconds of silence on a connection until the system probes it. */
const KEEPALIVE_MS = 10_000;

/** Where rank 0 listens, and the other ranks connect. */
export interface RendezvousPlace {
  /** As texts name it. */
  readonly text: string;
  /**
   * Listens, on rank 0.
   * @param onStream takes each connection, and the name of its other side
   * @param onRefused called with the reasons of connections that were not taken
   * @returns a function that ends this @throws PAMIR_BOOTSTRAP
   */
  listen(onStream: (stream: Stream, from: string) => void, onRefused: (why: string) => void): Promise<() => void>;
  /** Connects, once. The stream does not keep the process running: waits do. @throws PAMIR_BOOTSTRAP */
  connect(timeout: number): Promise<Stream>;
}

/** An address. @param bind a local address at which rank 0 listens, if it is not the host */
export function tcpPlace(address: HostPort, bind?: string): RendezvousPlace {
  return {
    text: addressText(address),
    listen: (onStream, onRefused) => listen({ host: bind ?? address.host, port: address.port }, onStream, onRefused),
    connect: (timeout) => connectSocket(address, timeout),
  };
}

async function listen(
  local: HostPort,
  onStream: (stream: Stream, from: string) => void,
  onRefused: (why: string) => void,
): Promise<() => void> {
  const server = needModule("net").createServer((socket) => {
    prepare(socket);
    const { remoteAddress = "an unknown address", remotePort = 0 } = socket;
    onStream(socket, addressText({ host: remoteAddress, port: remotePort }));
  });
  await new Promise<void>((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException): void => {
      const text = `rank 0 can't listen at ${addressText(local)}: ${error.message}${hintOf(error.code)}`;
      reject(new PamiError("PAMIR_BOOTSTRAP", text, { cause: error }));
    };
    server.once("error", onError);
    server.listen({ ...local, backlog: 511 }, () => {
      server.off("error", onError);
      // A connection that broke before it was accepted, or too many descriptors: other connections go on.
      server.on("error", (error) => onRefused(error.message));
      resolve();
    });
  });
  return () => void server.close();
}

function hintOf(code: string | undefined): string {
  if (code === "EADDRINUSE") return "; another program listens there, or another job";
  if (code === "EADDRNOTAVAIL") return "; this host has no such address: PAMIR_BIND names another one to listen at";
  return "";
}

function prepare(socket: Socket): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEPALIVE_MS);
}

/** Connects, once. The socket does not keep the process running: waits do. @throws PAMIR_BOOTSTRAP */
export function connectSocket(address: HostPort, timeout: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = needModule("net").connect(address);
    const fail = (why: string, cause?: Error): void => {
      stop();
      socket.destroy();
      reject(new PamiError("PAMIR_BOOTSTRAP", `no connection to ${addressText(address)}: ${why}`, { cause }));
    };
    // Several addresses of a name are tried: the error of each is in an AggregateError without a text.
    const onError = (error: Error & { errors?: Error[] }): void => {
      fail(error.message || (error.errors ?? []).map(reasonText).join(", "), error);
    };
    const stop = after(timeout, () => fail(`no answer within ${secondsText(timeout)}`));
    socket.on("error", onError);
    socket.once("connect", () => {
      stop();
      socket.off("error", onError);
      // Until lines are made of the socket: then the lines see that it is destroyed.
      socket.on("error", () => {});
      prepare(socket);
      socket.unref();
      resolve(socket);
    });
  });
}
