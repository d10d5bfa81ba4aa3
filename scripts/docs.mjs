// Writes the API reference, docs/api/*.md, from the docstrings: a page for each entry of the package. It reads the types
// under dist/, so what is @internal is not there. Usage: node scripts/docs.mjs
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Node, Project, ts } from "ts-morph";

const root = fileURLToPath(new URL("..", import.meta.url));
const FOLDER = "docs/api";
/** Lines of this width or shorter are not broken: as the formatter has it. */
const WIDTH = 120;

/** Names of what a program begins with, on top of its page; all else comes behind, by kind and name. */
const FIRST = ["launch", "attach", "Job", "Client", "Context", "Message", "MemRegion", "portTo", "Port"];

/** The pages, each by its path from the root. @returns {Map<string, string>} */
export function apiPages() {
  const { exports } = JSON.parse(readFileSync(resolve(root, "package.json"), "utf8"));
  const entries = Object.entries(exports).filter(([, target]) => typeof target === "object");
  const project = new Project({
    compilerOptions: { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler, noLib: true },
  });
  const pages = new Map();
  for (const [entry, { types }] of entries) {
    const name = entry.replace(/^\./, "pamir");
    const file = project.addSourceFileAtPath(resolve(root, types));
    pages.set(`${FOLDER}/${name.replace("/", "-")}.md`, page(name, file));
  }
  return pages;
}

/** @param {string} entry @param {import("ts-morph").SourceFile} file */
function page(entry, file) {
  const exported = [...file.getExportedDeclarations()].sort(
    ([a], [b]) => rank(a) - rank(b) || a.localeCompare(b, "en"),
  );
  /** @type {Record<string, Map<string, string[]>>} */
  const groups = { "To begin with": new Map(), Functions: new Map(), Classes: new Map(), Types: new Map() };
  groups.Constants = new Map();
  for (const [name, declarations] of exported) {
    const [first] = declarations;
    if (first === undefined) throw new Error(`${entry} exports ${name}, which has no declaration`);
    const lines = otherName(file, name, first) ?? section(name, declarations);
    groups[rank(name) < FIRST.length ? "To begin with" : groupOf(first)]?.set(name, lines);
  }
  const filled = Object.entries(groups).filter(([, sections]) => sections.size > 0);
  const body = filled.flatMap(([title, sections]) => [`## ${title}`, "", ...[...sections.values()].flat()]);
  const anchors = anchorsOf(body);
  const lines = [
    `# ${entry}`,
    "",
    "Made from the docstrings by `npm run docs`: change those.",
    "",
    ...filled.flatMap(([title, sections]) => {
      const links = [...sections.keys()].map((name) => `[\`${name}\`](#${anchors.get(`### ${name}`)})`);
      return [...wrap(`${title}: ${links.join(", ")}.`), ""];
    }),
    ...body,
  ];
  return `${lines.join("\n").trimEnd()}\n`;
}

/** The section of another name of what is exported under its own. @param {import("ts-morph").SourceFile} file @param {string} name @param {Node} node */
function otherName(file, name, node) {
  const own = Node.hasName(node) ? node.getName() : name;
  if (own === name || file.getExportedDeclarations().get(own)?.[0] !== node) return undefined;
  return [`### ${name}`, "", `\`${own}\` under another name.`, ""];
}

/** @param {string} name */
function rank(name) {
  const place = FIRST.indexOf(name);
  return place < 0 ? FIRST.length : place;
}

/** @param {Node} node */
function groupOf(node) {
  if (Node.isFunctionDeclaration(node)) return "Functions";
  if (Node.isClassDeclaration(node)) return "Classes";
  return Node.isVariableDeclaration(node) ? "Constants" : "Types";
}

/** The anchor that GitHub gives to each heading. @param {string[]} lines @returns {Map<string, string>} */
function anchorsOf(lines) {
  /** @type {Map<string, number>} */
  const seen = new Map();
  const headings = lines.filter((line) => /^#+ /.test(line));
  return new Map(
    headings.map((heading) => {
      const slug = heading
        .replace(/^#+ /, "")
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_ -]/gu, "")
        .replaceAll(" ", "-");
      const times = seen.get(slug) ?? 0;
      seen.set(slug, times + 1);
      return [heading, times === 0 ? slug : `${slug}-${times}`];
    }),
  );
}

/** Text in lines of the usual width. @param {string} words */
function wrap(words) {
  const lines = [""];
  for (const word of words.split(" ")) {
    const line = lines.at(-1) ?? "";
    if (line !== "" && `${line} ${word}`.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines;
}

/** The section of a name: what it is, and its members. @param {string} name @param {Node[]} declarations */
function section(name, declarations) {
  const [node] = /** @type {[Node]} */ (declarations);
  const lines = [`### ${name}`, ""];
  if (Node.isFunctionDeclaration(node)) lines.push(...code(declarations), ...text(declarations));
  else if (Node.isClassDeclaration(node)) lines.push(...text([node]), ...classMembers(name, node));
  else if (Node.isInterfaceDeclaration(node)) {
    const bases = node.getExtends().map((base) => `\`${base.getText()}\``);
    lines.push(...text([node]), ...(bases.length > 0 ? [`With all of ${bases.join(" and ")}.`, ""] : []));
    lines.push(...properties(node.getMembers()));
  } else if (Node.isVariableDeclaration(node)) {
    const type = node.getTypeNode();
    lines.push(...(Node.isTypeLiteral(type) ? [] : code([node])), ...text([node]));
    if (Node.isTypeLiteral(type)) lines.push(...properties(type.getMembers()));
  } else lines.push(...code([node]), ...text([node]));
  return lines;
}

/** Public members, overloads together. @param {string} name @param {import("ts-morph").ClassDeclaration} node */
function classMembers(name, node) {
  /** @type {Map<string, Node[]>} */
  const members = new Map();
  for (const each of node.getMembers()) {
    const own = "getName" in each ? each.getName() : "constructor";
    if (!own.startsWith("#")) members.set(own, [...(members.get(own) ?? []), each]);
  }
  const object = name.charAt(0).toLowerCase() + name.slice(1);
  return [...members].flatMap(([own, overloads]) => {
    const isCall = overloads.some((each) => Node.isMethodDeclaration(each));
    const path = own === "constructor" ? `new ${name}()` : `${object}${own.startsWith("[") ? "" : "."}${own}`;
    return [`#### ${path}${isCall ? "()" : ""}`, "", ...code(overloads), ...text(overloads)];
  });
}

/** Properties as a list, each with what is said of it. @param {Node[]} members */
function properties(members) {
  return [
    ...members.flatMap((each) => {
      const said = docstring(each).join(" ").replace(/\s+/g, " ").trim();
      return [`- \`${signature(each)}\``, ...(said === "" ? [] : wrap(said).map((line) => `  ${line}`))];
    }),
    "",
  ];
}

/** A declaration in one line, without its docstring. @param {Node} node */
function signature(node) {
  return node
    .getText()
    .replace(/\/\*\*[\s\S]*?\*\/\s*/g, "")
    .replace(/^(export )?(declare )?/, "")
    .replace(/;$/, "")
    .replace(/;?\s*\n\s*/g, " ");
}

/** Declarations as code; where a line would be too long, a parameter or an alternative a line. @param {Node[]} nodes */
function code(nodes) {
  const lines = nodes.flatMap((node) => {
    const line = signature(node);
    if (line.length <= WIDTH) return [line];
    if (Node.isTypeAliasDeclaration(node))
      return line.replaceAll(" | ", "\n  | ").replace(" = ", " =\n  | ").split("\n");
    if (!Node.isParametered(node)) return [line];
    const parameters = node.getParameters().map(signature);
    return line.replace(parameters.join(", "), `\n  ${parameters.join(",\n  ")},\n`).split("\n");
  });
  return ["```ts", ...lines, "```", ""];
}

/** The docstrings of declarations, those that say something. @param {Node[]} declarations */
function text(declarations) {
  return declarations.flatMap((each) => {
    const lines = docstring(each);
    return lines.length > 0 ? [...lines, ""] : [];
  });
}

/** A docstring as Markdown: its tags become a list. @param {Node} node */
function docstring(node) {
  const owner = Node.isVariableDeclaration(node) ? node.getVariableStatement() : node;
  if (!Node.isJSDocable(owner)) return [];
  return owner.getJsDocs().flatMap((doc) => {
    const tags = doc.getTags().map((tag) => {
      const said = (tag.getCommentText() ?? "").replace(/\n/g, "\n  ");
      return Node.isJSDocParameterTag(tag) ? `- \`${tag.getName()}\`: ${said}` : `- *${tag.getTagName()}* ${said}`;
    });
    const description = doc.getDescription().trim();
    return [...(description === "" ? [] : [description]), ...(tags.length > 0 ? ["", ...tags] : [])];
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  mkdirSync(resolve(root, FOLDER), { recursive: true });
  for (const [path, content] of apiPages()) writeFileSync(resolve(root, path), content);
}
