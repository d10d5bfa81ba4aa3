// The page of benchmarks: each group of figures as a chart, with the machine, the date and the command beside it.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { init } from "echarts";
import { readFigures, shown } from "../bench/figures.mjs";

/** @typedef {import("../bench/figures.mjs").Figure} Figure */

const WIDTH = 720;
const ROW = 34;
/** Groups with a chart: figures of one unit, of several systems. */
const TITLES = /** @type {Record<string, [title: string, isLess: boolean]>} */ ({
  message: ["A message of 8 bytes between two threads, one way", true],
  rate: ["Messages a second, one way", false],
  stream: ["Messages of 64 KiB, bytes a second", false],
  regions: ["1 MiB from region to region, bytes a second", false],
  barrier: ["A barrier of two tasks", true],
  call: ["A call by name, and its result", true],
  "piscina-call": ["A task of a pool, with piscina's API", true],
  wake: ["A message to a task that sleeps", true],
  start: ["From the start to a first message", true],
  "udp-message": ["Two nodes by UDP: 64 bytes, one way", true],
  "udp-rate": ["Two nodes by UDP: messages a second", false],
  "udp-stream": ["Two nodes by UDP: messages of 1 MiB, bytes a second", false],
  "udp-put": ["Two nodes by UDP: puts of 1 MiB, bytes a second", false],
});

/**
 * The page as Markdown.
 * @param {string} folder gets the charts
 */
export async function benchmarksPage(folder) {
  /** @type {Map<string, [name: string, figure: Figure][]>} */
  const groups = new Map();
  for (const [id, figure] of Object.entries(readFigures())) {
    const [group = "", ...name] = id.split(" ");
    groups.set(group, [...(groups.get(group) ?? []), [name.join(" "), figure]]);
  }
  mkdirSync(join(folder, "charts"), { recursive: true });
  const parts = Object.entries(TITLES).flatMap(([group, [title, isLess]]) => {
    const figures = (groups.get(group) ?? []).filter(([, { unit }]) => unit !== "ratio");
    if (figures.length < 2) return [];
    figures.sort(([, one], [, other]) => (isLess ? one.value - other.value : other.value - one.value));
    writeFileSync(join(folder, "charts", `${group}.svg`), chartOf(figures));
    return [partOf(group, title, isLess, figures)];
  });
  return `# Benchmarks

Medians; where a range is given, its ends are the lowest and the highest run, and the bar is the lowest. Each command measures the
systems by turns, on your machine too. [How they are measured](./bench/index.md).

${parts.join("\n")}`;
}

/**
 * @param {string} group
 * @param {string} title
 * @param {boolean} isLess whether less is better
 * @param {[string, Figure][]} figures
 */
function partOf(group, title, isLess, figures) {
  const said = figures.map(([name, figure]) => `${name} ${shown(figure)}`).join(", ");
  const dates = figures.map(([, { date }]) => date).sort();
  const when = dates[0] === dates.at(-1) ? dates[0] : `${dates[0]} to ${dates.at(-1)}`;
  const where = new Set(figures.map(([, { machine, node, command }]) => `\`${command}\`, on ${machine}, Node ${node}`));
  return `## ${title}

![${said}](/charts/${group}.svg)

${isLess ? "Less" : "More"} is better: ${said}. ${[...where].join("; ")}, ${when}.
`;
}

/** @param {[string, Figure][]} figures the best first */
function chartOf(figures) {
  const height = figures.length * ROW + 10;
  const chart = init(null, null, { renderer: "svg", ssr: true, width: WIDTH, height });
  const rows = figures.toReversed();
  chart.setOption({
    animation: false,
    backgroundColor: "#fff",
    grid: { left: 130, right: 130, top: 4, bottom: 4 },
    xAxis: { type: "value", min: 0, show: false },
    yAxis: { type: "category", data: rows.map(([name]) => name), axisTick: { show: false }, axisLine: { show: false } },
    series: [
      {
        type: "bar",
        barMaxWidth: 20,
        label: { show: true, position: "right" },
        data: rows.map(([name, figure]) => ({
          value: figure.value,
          label: { formatter: shown(figure) },
          itemStyle: { color: isOurs(name) ? "#0b6e63" : "#9aa4ae" },
        })),
      },
    ],
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}

/** Whether a figure is one of this package. @param {string} name */
function isOurs(name) {
  return /^(pamir|sealed|unsealed|inline|lossy|processes|node)$/.test(name);
}
