// The site of the documents (scripts/site.mjs). Its pages keep the repository's folders and links.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";
import { slugOf } from "../../scripts/anchors.mjs";

const pages = fileURLToPath(new URL("../dist/pages", import.meta.url));

/** Entries of the documents in a folder, by their headings. @param {string} folder @param {string[]} [first] that come first */
function entriesOf(folder, first = []) {
  const names = readdirSync(join(pages, folder)).filter((name) => name.endsWith(".md"));
  const order = [...first, ...names.filter((name) => !first.includes(name)).sort()];
  return order.map((name) => {
    const [, title = name] = /^# (.*)$/m.exec(readFileSync(join(pages, folder, name), "utf8")) ?? [];
    const place = name.replace(/(^index)?\.md$/, "");
    return { text: title.replaceAll("`", ""), link: `/${folder}/${place}` };
  });
}

export default defineConfig({
  title: "pamir",
  description: "Messages at memory speed between the threads, processes, machines and pages of a JavaScript program",
  srcDir: "dist/pages",
  // Files as they are, the license of clang among them.
  srcExclude: ["public/**"],
  cacheDir: "dist/.cache",
  lang: "en",
  head: [["link", { rel: "icon", href: "data:," }]],
  lastUpdated: false,
  // The index of the search is one chunk.
  vite: { build: { chunkSizeWarningLimit: 4000 } },
  markdown: { anchor: { slugify: slugOf } },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    nav: [
      // The front is no page of this tool.
      { text: "Demo", link: "/index.html", target: "_self" },
      { text: "About", link: "/about" },
      { text: "Tutorial", link: "/docs/tutorial" },
      { text: "Documents", link: "/docs/" },
      { text: "Reference", link: "/docs/api/pamir" },
      { text: "Benchmarks", link: "/benchmarks" },
    ],
    sidebar: [
      { text: "Guide", items: entriesOf("docs", ["tutorial.md", "index.md"]) },
      { text: "Recipes", collapsed: true, items: entriesOf("docs/recipes") },
      { text: "Reference", collapsed: true, items: entriesOf("docs/api", ["index.md"]) },
      { text: "Internals", collapsed: true, items: entriesOf("docs/internals", ["adding.md"]) },
    ],
  },
});
