// @ts-check
// The figures of the documents: figures.json has them, as `npm run bench -- figures` measured them. The documents show tables
// between <!-- figures NAME --> and <!-- /figures -->, and single figures between <!-- figure ID --> and <!-- / -->.
// A test compares.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * A value, or a range from `value` to `to`. Times are in ns, sizes in bytes, rates and bandwidths in these per second.
 * @typedef {object} Figure
 * @property {number} value
 * @property {number} [to]
 * @property {string} unit
 * @property {string} date of its measurement
 * @property {string} command that measures it
 * @property {string} machine
 * @property {string} node version
 */
/** @typedef {Record<string, Figure>} Figures by id */

const root = fileURLToPath(new URL("..", import.meta.url));
const file = join(root, "bench/figures.json");
const FOLDERS = ["bench", "demo", "docs", "examples", "src", "test"];

/** All documents of the project, without copies that were made for sites: paths from its root. */
export const documents = () => [
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
  ...FOLDERS.filter((folder) => existsSync(join(root, folder))).flatMap((folder) => documentsIn(folder).sort()),
];

/**
 * Folders that builds make are not entered: one that is made anew meanwhile would be gone.
 * @param {string} folder from the root @returns {string[]}
 */
function documentsIn(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return ["node_modules", "dist"].includes(entry.name) ? [] : documentsIn(path);
    return path.endsWith(".md") ? [path] : [];
  });
}

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
  size: [
    [1e6, "MB"],
    [1e3, "KB"],
  ],
  ratio: [[1, ""]],
});

/** "16.3 µs", or "17 to 20 µs" @param {Figure | undefined} figure */
export function shown(figure) {
  if (figure === undefined) return "–";
  const { value, to = value, unit } = figure;
  const units = UNITS[/** @type {keyof typeof UNITS} */ (unit)];
  const [scale, name] = units.find(([least]) => to >= least) ?? /** @type {[number, string]} */ (units.at(-1));
  const [from, end] = [value, to].map((one) => {
    const scaled = one / scale;
    if (unit === "ratio") return `${Number(scaled.toFixed(2))}`;
    return `${scaled >= 100 ? Math.round(scaled) : Number(scaled.toPrecision(3))}`;
  });
  return `${from === end ? from : `${from} to ${end}`} ${name}`.trimEnd();
}

/** The tables, by name: a title for each row, and for each column the system's part of a figure's name. */
export const TABLES = /** @type {const} */ ({
  first: {
    head: ["between two threads", "pamir", "without it"],
    rows: [
      ["a message of 8 bytes, one way", "message pamir", "message postMessage"],
      ["a call by name, and its result", "call pamir", "call Comlink"],
      ["the same, `postMessage()` written by hand", "call pamir", "call postMessage"],
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
export function tableOf(name, figures) {
  const { head, rows } = TABLES[name];
  const lines = [head, head.map(() => "---")].map((cells) => `| ${cells.join(" | ")} |`);
  /** @type {Figure[]} */
  const used = [];
  for (const [title, ours, ...others] of rows) {
    // A row that compares with nothing measured says nothing.
    if (others.every((id) => figures[id] === undefined)) continue;
    const cells = [ours, ...others].map((id) => {
      const figure = figures[id];
      if (figure !== undefined) used.push(figure);
      // In a column of several systems, each cell says whose figure it is.
      const system = head.length === 3 && !id.endsWith(" pamir") ? `${id.split(" ").slice(1).join(" ")} ` : "";
      return `${system}${shown(figure)}`;
    });
    lines.push(`| ${[title, ...cells].join(" | ")} |`);
  }
  const dates = used.map(({ date }) => date).sort();
  const when = dates[0] === dates.at(-1) ? dates[0] : `${dates[0]} to ${dates.at(-1)}`;
  const where = [...new Set(used.map(({ machine, node }) => `${machine}, Node ${node}`))].join("; ");
  return `${lines.join("\n")}\n\nMedians on ${where}, ${when}.`;
}

/** The ids of the single figures of a document. @param {string} text */
export const idsOf = (text) => [...text.matchAll(FIGURE)].map(([, , id]) => /** @type {string} */ (id));

const FIGURE = /(<!-- figure ([^>]+) -->)(.*?)(<!-- \/ -->)/g;
const TABLE = /(<!-- figures (\w+) -->\n)([\s\S]*?)(<!-- \/figures -->)/g;

/** A document with these figures. @param {string} text @param {Figures} figures */
export const withFigures = (text, figures) =>
  text
    .replace(TABLE, (_, begin, name, __, end) => `${begin}${tableOf(name, figures)}\n${end}`)
    .replace(FIGURE, (_, begin, id, __, end) => `${begin}${shown(figures[id])}${end}`);

/** What a document says beside its figures. @param {string} text */
export const withoutFigures = (text) => text.replace(TABLE, "").replace(FIGURE, "");

/** Writes the figures into the documents. @param {Figures} figures */
export function updateDocuments(figures) {
  for (const document of documents()) {
    const path = join(root, document);
    const text = readFileSync(path, "utf8");
    const updated = withFigures(text, figures);
    if (updated !== text) writeFileSync(path, updated);
  }
}
