// The results as one picture: an SVG, made without a browser.
import { init } from "echarts";

/** @typedef {import("./perf/report.js").Report} Report */
/** @typedef {import("./perf/report.js").PerfResult} Result */
/** @typedef {{ value: number, unit: string, lower: boolean }} Figure */

const WIDTH = 1000;
const ROW = 26;
const HEAD = 70;

/**
 * One panel for each test and size, bars sorted, the best on top; logarithmic, since they lie far apart.
 * @param {Report} report
 */
export function chartOf({ results, pamir, node, cpu, date, void: isVoid }) {
  /** @type {Map<string, (Result & Figure)[]>} */
  const panels = new Map();
  for (const result of results) {
    const key = `${result.test}${result.bytes > 0 ? ` ${result.bytes} B` : ""}`;
    panels.set(key, [...(panels.get(key) ?? []), { ...result, ...figureOf(result) }]);
  }
  /** @type {{ title: object[], grid: object[], xAxis: object[], yAxis: object[], series: object[] }} */
  const option = { title: [], grid: [], xAxis: [], yAxis: [], series: [] };
  let top = 60;
  const text = `pamir ${pamir}, Node ${node}, ${cpu}, ${date.slice(0, 10)}${isVoid ? ": VOID, too unsteady" : ""}`;
  option.title.push({ text, left: 20, top: 10 });
  for (const [key, rows] of panels) {
    const gridIndex = option.grid.length;
    const { unit, lower } = /** @type {Figure} */ (rows[0]);
    rows.sort((a, b) => (lower ? b.value - a.value : a.value - b.value));
    const height = rows.length * ROW;
    const text = `${key}: ${unit}, ${lower ? "less" : "more"} is better; logarithmic`;
    option.title.push({ text, left: 20, top, textStyle: { fontSize: 14 } });
    option.grid.push({ left: 170, right: 110, top: top + 28, height });
    option.xAxis.push({
      type: "log",
      gridIndex,
      min: least(rows),
      startValue: least(rows),
      axisLabel: { show: false },
      splitLine: { show: false },
    });
    option.yAxis.push({ type: "category", gridIndex, data: rows.map(({ system }) => system) });
    option.series.push({
      type: "bar",
      xAxisIndex: gridIndex,
      yAxisIndex: gridIndex,
      label: { show: true, position: "right" },
      data: rows.map(({ value, system }) => ({
        value,
        label: { formatter: value >= 100 ? value.toFixed(0) : value.toPrecision(3) },
        itemStyle: { color: system.startsWith("pamir") ? "#c23531" : "#7f8c9b" },
      })),
    });
    top += height + HEAD;
  }
  const chart = init(null, null, { renderer: "svg", ssr: true, width: WIDTH, height: top });
  chart.setOption({ animation: false, backgroundColor: "#fff", ...option });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}

/**
 * Where a logarithmic axis begins: below the smallest bar, so that it too can be seen.
 * @param {Figure[]} rows
 */
function least(rows) {
  return Math.min(...rows.map(({ value }) => value)) / 3;
}

/**
 * @param {Result} result
 * @returns {Figure}
 */
function figureOf({ test, p50_ns, messages_per_s, bytes_per_s }) {
  if (p50_ns !== null) return { value: p50_ns, unit: "ns", lower: true };
  if (test === "am_bw") return { value: (bytes_per_s ?? 0) / 1e9, unit: "GB/s", lower: false };
  return { value: (messages_per_s ?? 0) / 1e6, unit: "million messages/s", lower: false };
}
