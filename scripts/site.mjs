// Builds the site, static files: the demo as its front, and the documents with a search. It serves them, with the headers of
// isolation. Usage: node scripts/site.mjs [--build FOLDER] [--base /PATH/ | --address URL] [--port N] [--host ADDRESS]
// The address is the site's on its host, such as https://example.org/pamir/: links to the front have a picture then.
//
//   site/dist/pages/       the Markdown of the repository, in its own folders, so that its links hold
//   site/dist/pages/public/   what is copied as it is: the demo, the charts, the files that documents link to
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "vitepress";
import { benchmarksPage } from "../site/benchmarks.mjs";
import { buildDemo } from "./demo.mjs";
import { addressOf } from "./demo-pages.mjs";
import { serveMeeting } from "./meeting.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const site = join(root, "site");
const pages = join(site, "dist", "pages");
/** Documents outside docs/, which those in it link to. */
const OTHERS = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "src/README.md"];

/** What the front leads to. */
const FRONT_LINKS = [
  ["docs/tutorial.html", "Tutorial"],
  ["docs/index.html", "Documents"],
  ["docs/api/pamir.html", "Reference"],
  ["benchmarks.html", "Benchmarks"],
]
  .map(([link, text]) => `<a href="${link}">${text}</a>`)
  .join(" · ");

/** Where a document stands in the site: README.md is the page of its folder. @param {string} path */
function placeOf(path) {
  return path === "README.md" ? "about.md" : path.replace(/README\.md$/, "index.md");
}

/**
 * A document as the site shows it, and the files, not documents, to which it links: each is a text of the site.
 * @param {string} path @param {string} text
 */
export function pageOf(path, text) {
  /** @type {Set<string>} */
  const files = new Set();
  const from = dirname(placeOf(path));
  const linked = text
    // Marks of figures and tables that a bench writes.
    .replace(/<!--[\s\S]*?-->/g, "")
    // The site's templates would take these as expressions.
    .replaceAll("{{", "&#123;&#123;")
    .replace(/\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)/g, (link, to, anchor = "") => {
      const file = join(dirname(path), to);
      if (!statSync(join(root, file), { throwIfNoEntry: false })?.isFile()) return link;
      if (file.endsWith(".md")) return `](./${relative(from, placeOf(file))}${anchor})`;
      files.add(file);
      return `](/${file}.txt)`;
    });
  return { text: linked, files: [...files] };
}

/** Writes the pages from which the site is made. @param {string | undefined} address */
async function writePages(address) {
  rmSync(pages, { recursive: true, force: true });
  const documents = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name));
  const open = join(pages, "public");
  for (const path of [...OTHERS, ...documents]) {
    const { text, files } = pageOf(path, readFileSync(join(root, path), "utf8"));
    const page = join(pages, placeOf(path));
    mkdirSync(dirname(page), { recursive: true });
    writeFileSync(page, text);
    for (const file of files) cpSync(join(root, file), join(open, `${file}.txt`));
  }
  writeFileSync(join(pages, "benchmarks.md"), await benchmarksPage(open));
  // The demo is the front of the site. Its documents are pages here.
  const demo = join(pages, "demo");
  await buildDemo(demo, { address });
  rmSync(join(demo, "docs"), { recursive: true });
  for (const name of ["index.html", "frames.html"]) {
    const page = join(demo, name);
    const html = readFileSync(page, "utf8").replace(/href="(docs\/[^"#]+\.md)/g, (_, path) => {
      return `href="${placeOf(path).replace(/md$/, "html")}`;
    });
    writeFileSync(page, html.replace("</h1>", `</h1>\n<nav aria-label="Site"><p>${FRONT_LINKS}</p></nav>`));
  }
  cpSync(demo, open, { recursive: true });
  rmSync(demo, { recursive: true });
}

/**
 * Puts the site into a folder, which any server of static files can have.
 * @param {string} folder @param {string} [base] the path under which it is served @param {string} [address] the whole URL
 */
export async function buildSite(folder, base = "/", address) {
  await writePages(address);
  await build(site, { base, outDir: relative(process.cwd(), folder) || "." });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      build: { type: "string" },
      base: { type: "string" },
      address: { type: "string" },
      port: { type: "string", default: "8080" },
      host: { type: "string" },
    },
  });
  const address = values.address === undefined ? undefined : addressOf(values.address);
  if (values.address !== undefined && address === undefined) {
    console.error(`site: --address is ${JSON.stringify(values.address)}, not a URL such as https://example.org/pamir/`);
    process.exit(2);
  }
  const path = address === undefined ? "/" : new URL(address).pathname;
  const base = values.base ?? path;
  if (!/^\/([\w.-]+\/)*$/.test(base) || (address !== undefined && base !== path)) {
    const wanted = address === undefined ? "a path such as /pamir/" : `${path}, the path of --address`;
    console.error(`site: --base is ${JSON.stringify(base)}, not ${wanted}`);
    process.exit(2);
  }
  const folder = values.build ?? join(site, "dist", "site");
  await buildSite(folder, base, address);
  if (values.build === undefined) {
    await serveMeeting(folder, { port: Number(values.port), host: values.host, command: "npm run site" });
  } else console.log(`the site is in ${folder}`);
}
