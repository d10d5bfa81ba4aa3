// @ts-check
// What is chosen, in words: an arrow as send, lane and handler, with its times; the whole picture as text for screen readers.
import { durationText, timeText } from "./time-range.js";

/** @typedef {import("./model.js").StripModel} StripModel @typedef {import("./canvas-view.js").Arrow} Arrow */

/** To a nanosecond. */
const FINE = 0.001;

/**
 * The rows of an arrow: a name, a text, and the time in microseconds if it is one.
 * @param {StripModel} model @param {Arrow} arrow @param {number} step of the clock, in microseconds
 * @returns {{ key: string, name: string, text: string, time?: number }[]}
 */
export function rowsOf(model, { lane, place }, step) {
  const from = model.lanes[lane];
  const sends = from.tracks.send;
  const to = model.lanes[sends.peerLane(place)];
  const handlers = to.tracks.handler;
  const peer = sends.peer(place);
  const { label, count, bytes } = sends.details(place);
  const handled = handlers.details(peer);
  const [sent, begins, ends] = [sends.begin[place], handlers.begin[peer], handlers.end[peer]];
  const took = begins - sent;
  // Two threads read the clock at different steps of it.
  const shown = (/** @type {number} */ time) =>
    time > FINE * 1.5 ? durationText(time) : `less than the clock shows: it moves in steps of ${step} µs`;
  return [
    {
      key: "message",
      name: "Message",
      text: `${model.labels[label].replace("send ", "")}, number ${count.toLocaleString("en")}, ${bytes.toLocaleString("en")} bytes`,
    },
    { key: "send", name: `Sent by ${from.name}`, text: timeText(sent, FINE), time: sent },
    { key: "lane", name: "In the lane", text: shown(took), time: Math.max(0, took) },
    { key: "handler", name: `Handler in ${to.name} begins`, text: timeText(begins, FINE), time: begins },
    { key: "runs", name: "It runs for", text: shown(ends - begins), time: ends - begins },
    {
      key: "whom",
      name: "Endpoints",
      text: `${model.labels[handled.other]} → ${model.labels[sends.details(place).other]}`,
    },
  ];
}

/**
 * The picture as a text.
 * @param {StripModel} model @param {{ from: number, to: number, span: number }} range @param {number[]} lanes that are shown
 */
export function summaryOf(model, { from, to, span }, lanes) {
  const shown = lanes.map((place) => model.lanes[place]);
  const count = (/** @type {"send" | "handler" | "transfer"} */ kind) =>
    shown.reduce((sum, { tracks }) => sum + tracks[kind].from(to) - tracks[kind].lasting(from), 0).toLocaleString("en");
  const ended = shown.filter((lane) => Number.isFinite(lane.ended)).map(({ name }) => `${name} has ended.`);
  const tasks = shown.map(({ name }) => name).join(", ");
  const times = `${timeText(from, span / 1000)} to ${timeText(to, span / 1000)}`;
  const seen = `${count("send")} sends, ${count("handler")} handlers, ${count("transfer")} puts and gets`;
  return `${shown.length} lanes: ${tasks}. From ${times}: ${seen}. ${ended.join(" ")}`.trim();
}
