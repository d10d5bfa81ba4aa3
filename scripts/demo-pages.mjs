// What the pages of the demo get when they are built: ten to twenty lines of the sources for each part, and their address.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../demo", import.meta.url));

/**
 * Lines of a file, and what they do: from the first line that begins with a text to the next one that begins with another.
 * Spaces before both are left out. Without an end, one line.
 * @typedef {[file: string, says: string, from: string, to?: string]} Cut
 */

/** By the name of a place in the pages, `data-code`. @type {Record<string, Cut[]>} */
export const CODE = {
  tank: [
    ["tank/halos.js", "a row at the border goes to the neighbor", "this.rows[from].set(", "});"],
    ["tank/tank-task.js", "a step, once the neighbors' rows are here", "const isReady = "],
    ["tank/tank-task.js", "", "let goesOn = until("],
    ["tank/tank-task.js", "", "stepRows(rows, step);"],
  ],
  kill: [
    ["tank/tank-job.js", "the page ends a worker, in the midst of its work", "void this.job?.terminate(slot.task);"],
    ["tank/tank-task.js", "the others hear of it, and stop", "for (const task of given.members) {", "}"],
    ["tank/tank-task.js", "", "function hear(task) {", "}"],
    ["tank/tank-job.js", "the rows are shared among those that are there", "firsts: ids.partsOf("],
    ["tank/tank-job.js", "it is started again: a task with the next number", "slot.task = this.job.spawn();"],
  ],
  strip: [
    ["tank/tank-job.js", "an option of launch()", "trace: { events: TRACE_EVENTS },"],
    ["strip/trace-reader.js", "the last events, as many as a frame has time for", "live(job) {", "}"],
    ["page.js", "the strip is for any job", "mountStrip("],
  ],
  c: [
    ["c/run-ranks.js", "the page starts as many ranks as are asked for", "import { launchProgram }", "}"],
    ["c/rank-task.js", "a rank: a worker, the same for each program", "import { programTask }", "await programTask();"],
  ],
  more: [
    ["more/guest-worker.js", "the other page joins by its ticket", "guest = new Guest(await join("],
    ["more/guest-worker.js", "a row beside its own comes from the tank", "context.dispatch(words.HALO,", "});"],
    ["more/guest-rows.js", "a step; the rows at its borders go to the tank", "stepRows(rows, this.step);"],
    ["more/guest-rows.js", "", "this.send(words.BORDER,"],
    [
      "more/bridge-task.js",
      "a task of the tank puts them into its neighbors' memory",
      "const [first, last] = [rows.",
      "if (!halos.put(",
    ],
    ["more/bridge-task.js", "the page was closed: the others share its rows", "link.whenEnded("],
  ],
  tree: [
    [
      "strip/tree-task.js",
      "a task of an allreduce in a tree of messages",
      "const { members }",
      "context.sendImmediate(page, SUM",
    ],
  ],
  card: [["card/ping-pong.js", "half a round trip between two tasks", "export function pingPong(", "}"]],
  frames: [
    [
      "frames/frames.js",
      "the engine is another thread, or not",
      "const options = { tasks: 2,",
      "const job = await launch(",
    ],
    ["frames/frames.js", "sends while it draws", "const stop = drawFrames();", "const figures = await stop();"],
  ],
};

/** @param {Cut} cut */
function linesOf([file, , from, to]) {
  const lines = readFileSync(join(folder, file), "utf8").split("\n");
  const first = lines.findIndex((line) => line.trimStart().startsWith(from));
  const indent = /^ */.exec(lines[first] ?? "")?.[0] ?? "";
  const last = to === undefined ? first : lines.findIndex((line, at) => at >= first && line.startsWith(indent + to));
  if (first < 0 || last < first) throw new Error(`${file} has no lines from "${from}" to "${to ?? from}"`);
  return lines.slice(first, last + 1).map((line) => line.slice(indent.length));
}

/** What a place of the pages shows. @param {string} name */
export function codeOf(name) {
  const cuts = CODE[name];
  if (cuts === undefined) throw new Error(`no code is known by the name ${name}`);
  const head = (/** @type {Cut} */ [file, says]) => (says === "" ? [] : ["", `// ${file}: ${says}`]);
  return cuts
    .flatMap((cut) => [...head(cut), ...linesOf(cut)])
    .join("\n")
    .trim();
}

/** Puts the code into a page: `<code data-code="NAME"></code>`. @param {string} html */
export const withCode = (html) =>
  html.replace(/<code data-code="(\w+)"><\/code>/g, (_, name) => {
    const text = codeOf(name).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    return `<code data-code="${name}">${text}</code>`;
  });

/** Documents to which a page links, in the folders of the repository. @param {string} html */
export const documentsOf = (html) => [...html.matchAll(/href="(docs\/[^"#]+\.md)/g)].map(([, path = ""]) => path);

/**
 * What a page says to those that show a link to it. They fetch the picture by itself, so its address is absolute: without the
 * address of the pages, the link has none.
 * @param {string} html @param {string} name of the page @param {string} [address] of the folder of pages, with a / at its end
 */
export function withAddress(html, name, address) {
  const head = /(<meta property="og:image" content=")([^"]+)/;
  if (address === undefined) {
    const text = html.replace(/ *<meta property="og:image[^>]*>\n/g, "");
    return text.replace('content="summary_large_image"', 'content="summary"');
  }
  const url = new URL(name === "index.html" ? "." : name, address);
  const text = html.replace(head, (_, before, picture) => before + new URL(picture, address));
  return text.replace(/( *)(<meta property="og:type")/, `$1<meta property="og:url" content="${url}" />\n$1$2`);
}

/** An address that is given by --address, or the fault of it. @param {string} given */
export function addressOf(given) {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  const isRight = /^https?:$/.test(url?.protocol ?? "") && given.endsWith("/") && url?.search === "" && url.hash === "";
  return isRight ? given : undefined;
}
