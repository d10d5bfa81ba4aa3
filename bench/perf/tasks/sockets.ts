// The peers of `pamir perf --link`: bare sockets of Node on loopback, in two workers. Thread 0 leads.
import { createSocket, type Socket as Datagrams } from "node:dgram";
import { once } from "node:events";
import { createConnection, createServer, type Socket } from "node:net";
import { type MessagePort, workerData } from "node:worker_threads";
import type { WebSocket } from "ws";
import { RateMeter, Stopwatch } from "../measure.js";
import type { PeerData } from "../peers.js";
import { type Figures, meet, windowOf, writeResults } from "../work.js";

const { peer, thread, threads, work, module, port: channel } = workerData as PeerData & { port: MessagePort };
const { bytes, test } = work;
const window = windowOf(work);
const HOST = "127.0.0.1";
/** Milliseconds after which a window of datagrams is sent again: some of them are lost. */
const LOST_MS = 20;
/** Bytes of the largest datagram on loopback whose length is a multiple of 4, as links send them. */
const DATAGRAM_BYTES_MAX = 65_504;
/** Datagrams of a stream that may be on their way, after how many one answers, and a receive buffer that holds them. */
const STREAM_WINDOW = 16;
const STREAM_ANSWERED = 4;
const STREAM_BUFFER_BYTES = 4_194_304;

/** The number of a port, from the other thread. */
async function told(): Promise<number> {
  const [port] = (await once(channel, "message")) as [number];
  return port;
}

async function datagrams(): Promise<Figures> {
  const socket = createSocket("udp4");
  socket.bind(0, HOST);
  await once(socket, "listening");
  channel.postMessage(socket.address().port);
  const to = await told();
  const payload = new Uint8Array(bytes).fill(1);
  const send = (): void => socket.send(payload, to, HOST);
  meet(work.barrier, threads);
  try {
    if (test === "am_lat") return await datagramLatency(socket, send);
    if (test === "am_bw") return await datagramStream(socket, to);
    return await datagramRate(socket, send);
  } finally {
    socket.close();
    channel.close();
  }
}

function datagramLatency(socket: Datagrams, send: () => void): Promise<Figures> {
  return new Promise((resolve) => {
    const watch = new Stopwatch(work, 2);
    if (thread === 1) {
      socket.on("message", send);
      channel.once("message", () => resolve({}));
      return;
    }
    socket.on("message", () => {
      if (watch.lap()) return send();
      channel.postMessage(0);
      resolve(watch.figures());
    });
    send();
  });
}

/** Windows of datagrams, and an answer to each window. */
function datagramRate(socket: Datagrams, send: () => void): Promise<Figures> {
  return new Promise((resolve) => {
    if (thread === 1) {
      let count = 0;
      socket.on("message", () => {
        if (++count % window === 0) send();
      });
      channel.once("message", () => resolve({}));
      return;
    }
    const meter = new RateMeter(work);
    const sendWindow = (): void => {
      for (let i = 0; i < window; i++) send();
    };
    // What is lost is made up for by one more window, until an answer comes.
    const late = setInterval(sendWindow, LOST_MS);
    socket.on("message", () => {
      late.refresh();
      if (meter.window(window)) return sendWindow();
      clearInterval(late);
      channel.postMessage(0);
      resolve(meter.figures());
    });
    sendWindow();
  });
}

/** Messages in the longest datagrams. A lost one is not sent again: the stream goes on after LOST_MS. */
function datagramStream(socket: Datagrams, to: number): Promise<Figures> {
  socket.setRecvBufferSize(STREAM_BUFFER_BYTES);
  const datagrams = Math.ceil((window * bytes) / DATAGRAM_BYTES_MAX);
  const payload = new Uint8Array(Math.min(bytes, DATAGRAM_BYTES_MAX)).fill(1);
  const answer = payload.subarray(0, 1);
  return new Promise((resolve) => {
    if (thread === 1) {
      let count = 0;
      socket.on("message", () => {
        if (++count % STREAM_ANSWERED === 0) socket.send(answer, to, HOST);
      });
      channel.once("message", () => resolve({}));
      return;
    }
    const meter = new RateMeter(work);
    let sent = 0;
    let answered = 0;
    const sendMore = (): void => {
      for (; sent - answered < STREAM_WINDOW; sent++) socket.send(payload, to, HOST);
    };
    const late = setInterval(() => {
      answered = sent;
      sendMore();
    }, LOST_MS);
    let last = 0;
    socket.on("message", () => {
      late.refresh();
      answered = Math.min(sent, answered + STREAM_ANSWERED);
      for (; answered - last >= datagrams; last += datagrams) {
        if (meter.window(window)) continue;
        clearInterval(late);
        channel.postMessage(0);
        return resolve(meter.figures());
      }
      sendMore();
    });
    sendMore();
  });
}

async function connected(): Promise<Socket> {
  if (thread === 1) {
    const server = createServer({ noDelay: true }).listen(0, HOST);
    await once(server, "listening");
    channel.postMessage((server.address() as { port: number }).port);
    const [socket] = (await once(server, "connection")) as [Socket];
    server.close();
    return socket;
  }
  const socket = createConnection({ port: await told(), host: HOST, noDelay: true });
  await once(socket, "connect");
  return socket;
}

/** Counts whole messages of a stream. */
function onMessages(socket: Socket, came: () => void): void {
  let open = 0;
  socket.on("data", (data: Uint8Array) => {
    open += data.length;
    for (; open >= bytes; open -= bytes) came();
  });
}

/** Messages of the same size in a stream. A rate has windows, and an answer to each, of the same size. */
async function stream(): Promise<Figures> {
  const socket = await connected();
  const payload = new Uint8Array(bytes).fill(1);
  const messages = test === "am_lat" ? 1 : window;
  meet(work.barrier, threads);
  return await new Promise((resolve) => {
    socket.on("close", () => {
      channel.close();
      resolve({});
    });
    let count = 0;
    if (thread === 1) {
      // One byte answers a window of a rate; a ping-pong sends as much back.
      const answer = test === "am_lat" ? payload : payload.subarray(0, 1);
      onMessages(socket, () => {
        if (++count % messages === 0) socket.write(answer);
      });
      return;
    }
    const watch = new Stopwatch(work, 2);
    const meter = new RateMeter(work);
    const sendWindow = (): void => {
      for (let i = 0; i < messages; i++) socket.write(payload);
    };
    const next = (): boolean => (test === "am_lat" ? watch.lap() : meter.window(window));
    socket.on("data", (data: Uint8Array) => {
      count += data.length;
      if (test === "am_lat" && count % bytes !== 0) return;
      if (next()) return sendWindow();
      resolve(test === "am_lat" ? watch.figures() : meter.figures());
      socket.end();
    });
    sendWindow();
  });
}

/** The connection of the package ws between the threads. */
async function webSocket(): Promise<WebSocket> {
  const { WebSocket, WebSocketServer } = (await import(module as string)) as typeof import("ws");
  const options = { perMessageDeflate: false, maxPayload: bytes };
  if (thread === 1) {
    const server = new WebSocketServer({ ...options, port: 0, host: HOST });
    await once(server, "listening");
    channel.postMessage((server.address() as { port: number }).port);
    const [socket] = (await once(server, "connection")) as [WebSocket];
    server.close();
    return socket;
  }
  const socket = new WebSocket(`ws://${HOST}:${await told()}/`, options);
  await once(socket, "open");
  return socket;
}

/** A WebSocket message for each message. A rate has windows, and a message of one byte as the answer to each. */
async function webSocketMessages(): Promise<Figures> {
  const socket = await webSocket();
  const payload = new Uint8Array(bytes).fill(1);
  const isLatency = test === "am_lat";
  const messages = isLatency ? 1 : window;
  meet(work.barrier, threads);
  return await new Promise((resolve) => {
    socket.on("close", () => {
      channel.close();
      resolve({});
    });
    if (thread === 1) {
      const answer = isLatency ? payload : payload.subarray(0, 1);
      let count = 0;
      socket.on("message", () => {
        if (++count % messages === 0) socket.send(answer);
      });
      return;
    }
    const watch = new Stopwatch(work, 2);
    const meter = new RateMeter(work);
    const sendWindow = (): void => {
      for (let i = 0; i < messages; i++) socket.send(payload);
    };
    socket.on("message", () => {
      if (isLatency ? watch.lap() : meter.window(window)) return sendWindow();
      resolve(isLatency ? watch.figures() : meter.figures());
      socket.close();
    });
    sendWindow();
  });
}

const figures = await (peer === "dgram" ? datagrams() : peer === "ws" ? webSocketMessages() : stream());
writeResults(work.results, thread, figures);
