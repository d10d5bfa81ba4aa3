// @ts-check
// The figures of the documents: figures.json has them, as `npm run bench -- figures` measured them, and the documents show
// them between <!-- figures NAME --> and <!-- /figures -->. A test compares.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/**
 * @typedef {{ value: number, unit: string, date: string, command: string }} Figure
 * @typedef {{ machine: string, node: string, figures: Record<string, Figure> }} Figures
 */

const file = fileURLToPath(new URL("figures.json", import.meta.url));
/** Documents that show figures. */
export const DOCUMENTS = ["README.md", "bench/README.md"];

/** @returns {Figures} */
export const readFigures = () => JSON.parse(readFileSync(file, "utf8"));

/** @param {Figures} figures */
export const writeFigures = (figures) => writeFileSync(file, `${JSON.stringify(figures, null, 2)}\n`);

const UNITS = /** @type {const} */ ({
  time: [
    [1e6, "ms"],
    [1e3, "µs"],
    [1, "ns"],
  ],
  rate: [
    [1e6, "M/s"],
    [1e3, "k/s"],
    [1, "/s"],
  ],
  bandwidth: [
    [1e9, "GB/s"],
    [1e6, "MB/s"],
  ],
});

/** "16.3 µs" @param {Figure | undefined} figure */
export function shown(figure) {
  if (figure === undefined) return "–";
  const { value, unit } = figure;
  const units = UNITS[/** @type {keyof typeof UNITS} */ (unit)];
  const [scale, name] = units.find(([least]) => value >= least) ?? /** @type {[number, string]} */ (units.at(-1));
  const scaled = value / scale;
  return `${scaled >= 100 ? Math.round(scaled) : Number(scaled.toPrecision(3))} ${name}`;
}

/** The tables, by name: a title for each row, and for each column the system's part of a figure's name. */
export const TABLES = /** @type {const} */ ({
  first: {
    head: ["between two threads", "pamir", "without it"],
    rows: [
      ["a message of 8 bytes, one way", "message pamir", "message postMessage"],
      ["a call by name, and its result", "call pamir", "call Comlink"],
      ["a stream of messages of 64 KiB", "stream pamir", "stream postMessage"],
    ],
  },
  threads: {
    head: ["between two threads", "pamir", "Open MPI", "postMessage"],
    rows: [
      ["`--test am_lat`: 8 bytes, one way", "message pamir", "message Open MPI", "message postMessage"],
      ["`--test am_rate`: messages a second", "rate pamir", "rate Open MPI", "rate postMessage"],
      ["`--test am_bw --bytes 65536`", "stream pamir", "stream Open MPI", "stream postMessage"],
      ["`--test rndv_bw --bytes 1048576`", "regions pamir", "regions Open MPI", "regions postMessage"],
      ["`--test barrier`: two tasks", "barrier pamir", "barrier Open MPI", "barrier postMessage"],
    ],
  },
});

/** A table as Markdown. @param {keyof typeof TABLES} name @param {Figures} figures */
export function tableOf(name, { figures, machine, node }) {
  const { head, rows } = TABLES[name];
  const lines = [head, head.map(() => "---")].map((cells) => `| ${cells.join(" | ")} |`);
  /** @type {string[]} */
  const dates = [];
  for (const [title, ...ids] of rows) {
    const cells = ids.map((id) => {
      const figure = figures[id];
      if (figure !== undefined) dates.push(figure.date);
      // In a column of several systems, each cell says whose figure it is.
      const system = head.length === 3 && !id.endsWith(" pamir") ? `${id.split(" ").slice(1).join(" ")} ` : "";
      return `${system}${shown(figure)}`;
    });
    lines.push(`| ${[title, ...cells].join(" | ")} |`);
  }
  const [from, to] = [dates.toSorted()[0], dates.toSorted().at(-1)];
  const when = from === to ? from : `${from} to ${to}`;
  return `${lines.join("\n")}\n\nMedians on ${machine}, Node ${node}, ${when}.`;
}

/** A document with the tables of these figures. @param {string} text @param {Figures} figures */
export const withFigures = (text, figures) =>
  text.replace(
    /(<!-- figures (\w+) -->\n)[\s\S]*?(<!-- \/figures -->)/g,
    (_, begin, name, end) => `${begin}${tableOf(name, figures)}\n${end}`,
  );

/** Writes the figures into the documents. @param {Figures} figures */
export function updateDocuments(figures) {
  for (const document of DOCUMENTS) {
    const path = fileURLToPath(new URL(`../${document}`, import.meta.url));
    writeFileSync(path, withFigures(readFileSync(path, "utf8"), figures));
  }
}
