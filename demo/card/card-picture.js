// @ts-check
// The card as a picture: what was measured, on what.
import { timeText } from "../times.js";

const [WIDTH, HEIGHT] = [1200, 630];

/** The browser's name and version, as far as it says them. @param {string} agent */
function browserOf(agent) {
  const found = /(Firefox|Edg|Chrome|Version)\/(\d+)/.exec(agent);
  if (found === null) return "a browser";
  const names = /** @type {Record<string, string>} */ ({ Edg: "Edge", Chrome: "Chromium", Version: "Safari" });
  return `${names[found[1] ?? ""] ?? found[1]} ${found[2]}`;
}

/**
 * @param {{ pamir: string, mode: string, userAgent: string, hardwareThreads: number,
 *   results: { by: string, failed?: string, p50_ns: number, p99_ns: number, messages_per_s: number }[],
 *   everyday: import("../everyday/everyday.js").Row[] }} result
 * @returns {Promise<Blob>} a PNG
 */
export function pictureOf({ pamir, mode, userAgent, hardwareThreads, results, everyday }) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [WIDTH, HEIGHT];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const write = (/** @type {string} */ text, /** @type {number[]} */ [x = 0, y = 0, size = 24], color = "#e9eaec") => {
    context.fillStyle = color;
    context.font = `${size >= 40 ? "600 " : ""}${size}px system-ui, sans-serif`;
    context.fillText(text, x, y);
  };
  context.fillStyle = "#0d1b24";
  context.fillRect(0, 0, WIDTH, HEIGHT);
  write("pamir", [64, 92, 56]);
  write("8 bytes from one worker of a page to another", [64, 140, 28], "#a3abb5");
  const colors = ["#3fc1b0", "#9a9df5", "#f0935a"];
  const most = Math.max(...results.map(({ failed, p50_ns }) => (failed === undefined ? p50_ns : 0)));
  for (const [i, { by, failed, p50_ns, p99_ns, messages_per_s }] of results.entries()) {
    const y = 206 + 84 * i;
    write(by, [64, y, 28]);
    const figures = `p50 ${timeText(p50_ns)}   p99 ${timeText(p99_ns)}   ${(messages_per_s / 1e6).toPrecision(3)} M messages/s`;
    context.textAlign = "right";
    write(failed === undefined ? figures : "not measured", [WIDTH - 64, y, 26]);
    context.textAlign = "left";
    if (failed !== undefined) continue;
    // From 0: a bar half as long is half the time.
    const part = Math.max(0.004, p50_ns / most);
    context.fillStyle = colors[i % colors.length] ?? "#e9eaec";
    context.fillRect(64, y + 20, part * (WIDTH - 128), 20);
  }
  for (const [i, { what, unit, pamir: own, usual, by }] of everyday.entries()) {
    const y = 462 + 34 * i;
    write(what, [64, y, 24]);
    write(`${own ?? "–"} ${unit}`, [560, y, 24], colors[0]);
    write(`${usual ?? "–"} ${unit} by ${by}`, [780, y, 24], colors[2]);
  }
  const where = `${browserOf(userAgent)}, ${hardwareThreads} hardware threads, ${mode === "shared" ? "shared memory" : "messages"}`;
  write(`${where}, pamir ${pamir}. Bars: the median time.`, [64, 592, 22], "#a3abb5");
  return new Promise((resolve, reject) => {
    canvas.toBlob(
      (blob) => (blob === null ? reject(new Error("no picture could be made")) : resolve(blob)),
      "image/png",
    );
  });
}
