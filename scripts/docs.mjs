// Writes the API reference, docs/api/*.md, from the docstrings: a page for each entry of the package. It reads the types
// under dist/, so what is @internal is not there. Usage: node scripts/docs.mjs
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Node, Project, ts } from "ts-morph";
import { slugOf } from "./anchors.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const FOLDER = "docs/api";
/** Lines of this width or shorter are not broken: as the formatter has it. */
const WIDTH = 120;

/**
 * The topics of each entry, and the names that belong to each, in the order of the page. A type without a place goes to the
 * first topic whose names mention it.
 * @type {Record<string, readonly (readonly [title: string, names: readonly string[]])[]>}
 */
const TOPICS = {
  pamir: [
    [
      "Jobs and tasks",
      ["launch", "attach", "Job", "Client", "LaunchOptions", "TaskExit", "KernelName", "HostMessagePort", "VERSION"],
    ],
    ["Messages and calls", ["Context", "Message", "SendParameters", "CallOptions", "Handler", "WaitOptions"]],
    ["Values", ["dispatchId", "codecs", "recycle", "Codec", "InPlaceCodec", "DispatchId"]],
    [
      "Regions, put and get",
      ["MemRegion", "PutParameters", "RmwParameters", "TransferParameters", "RegionHandle", "RegionWord"],
    ],
    ["Collective operations", ["Geometry", "CollectiveParameters", "CollectiveType", "Operation", "ReduceParameters"]],
    ["Shared regions, counters, grids", ["SharedRegion", "Counter", "Grid", "Aggregator", "ItemKind", "CellArray"]],
    ["Types of data", ["TransferType", "ElementType", "PackOptions", "TransferField"]],
    ["Links of your own", ["LinkKind", "NodeLink"]],
    [
      "Results and errors",
      [
        ...[
          "errorText",
          "PamiError",
          "RemoteError",
          "ErrorCode",
          "Result",
          "SUCCESS",
          "EAGAIN",
          "SHUTDOWN",
          "CANCELED",
        ],
        ...["TIMEDOUT", "INTERRUPTED", "ENOMEM", "ERROR", "INVAL", "UNIMPL"],
      ],
    ],
    ["Seeing inside", ["info", "Info", "Capabilities", "Dump", "Trace", "DebugOptions", "AlgorithmInfo"]],
    ["Limits", ["SEND_IMMEDIATE_MAX", "RECV_IMMEDIATE_MAX", "DISPATCH_ID_MAX"]],
  ],
  "pamir/pool": [
    ["Pools", ["pool", "serve", "Pool", "PoolOptions", "PoolMethods", "PoolCallOptions", "PoolStats", "PoolEvent"]],
    ["One worker", ["connect", "expose", "Connection"]],
    ["Within a call", ["currentCall", "proxy", "move"]],
  ],
  "pamir/c": [
    [
      "A job of a program",
      [
        ...[
          "launchProgram",
          "programTask",
          "LaunchProgramOptions",
          "ProgramSource",
          "ProgramLine",
          "ProgramJobEnd",
          "RankEnd",
        ],
        "ResponseLike",
      ],
    ],
    [
      "A job in a program's memory",
      ["pamirImports", "programRegion", "PamirImports", "PamirImportsOptions", "ProgramBytes"],
    ],
    ["Programs", ["runProgram", "checkProgram", "programLimits", "ProgramOptions", "ProgramEnd", "ProgramLimits"]],
    ["Files", ["hostFolder", "memoryFiles", "MemoryFiles", "MemoryTree", "Preopen", "Folder", "ProgramFile"]],
  ],
  "pamir/mpi": [
    ["Begin and end", ["init", "Mpi", "InitOptions"]],
    ["Communicators", ["Comm", "CommGroup", "SendPart", "ReceivePart", "CommBlocks", "Op"]],
    ["Requests", ["CommRequest", "waitall", "waitany", "testall", "waitallSync", "waitanySync", "CommStatus"]],
    ["In place of ranks, tags and views", ["ANY_SOURCE", "ANY_TAG", "PROC_NULL", "IN_PLACE", "TAG_UB"]],
  ],
  "pamir/piscina": [
    ["The pool", ["Piscina", "default", "module.exports", "Options", "RunOptions"]],
    ["In a worker", ["isWorkerThread", "workerData", "move"]],
    ["Queues", ["ArrayTaskQueue", "FixedQueue", "TaskQueue"]],
  ],
  "pamir/port": [["Ports", ["portTo", "Port"]]],
  "pamir/web": [
    ["Hosts and pages", ["host", "join", "Host"]],
    ["Jobs at a NATS server", ["natsInviter", "NatsInviter", "JobAtNats"]],
  ],
};

/** What a beginner needs: entry, name, and in how many words. Members of a class are named by it. */
const BEGIN = /** @type {const} */ ([
  [
    "pamir/pool",
    "pool",
    "`await pool(url, { workers: 4 })`",
    "starts workers; `await workers.square(12)` calls one of them",
  ],
  ["pamir/pool", "serve", "`serve({ square: (n) => n ** 2 })`", "in the worker: says which functions can be called"],
  ["pamir", "launch", "`await launch(url, { tasks: 2, join: true })`", "starts the tasks of a job, below pools"],
  ["pamir", "attach", "`await attach()`", "in a task: its client, with its number and `args`"],
  ["pamir", "clientcreatecontext", "`client.createContext()`", "what sends and receives for a thread"],
  ["pamir", "contextdispatch", "`context.dispatch(1, (message) => …)`", "sets the handler of a kind of message"],
  ["pamir", "contextsend", "`context.send({ to, dispatch: 1, payload })`", "sends bytes"],
  ["pamir", "contextcall", "`await context.call(to, 2, request)`", "sends a request, and gives the handler's reply"],
  ["pamir", "contextprogress", "`await context.progress()`", "waits, and runs the handlers of what has come"],
  ["pamir", "clientworld", "`await client.world()`", "all tasks, for sums, barriers and broadcasts"],
]);

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
  pages.set(`${FOLDER}/README.md`, beginPage(pages));
  return pages;
}

/** @param {string} entry @param {import("ts-morph").SourceFile} file */
function page(entry, file) {
  const exported = file.getExportedDeclarations();
  const topics = topicsOf(entry, exported);
  /** @type {[title: string, sections: Map<string, string[]>][]} */
  const filled = topics.map(([title, names]) => [
    title,
    new Map(
      names.map((name) => [
        name,
        otherName(file, name, /** @type {Node} */ (exported.get(name)?.[0])) ?? section(name, exported.get(name) ?? []),
      ]),
    ),
  ]);
  const body = filled.flatMap(([title, sections]) => [`## ${title}`, "", ...[...sections.values()].flat()]);
  const anchors = anchorsOf(body);
  const lines = [
    `# ${entry}`,
    "",
    "Made from the docstrings by `npm run docs`: change those. [The first ten functions](README.md) are on a page of their own.",
    "",
    "The topics, each with its functions and classes, then its types:",
    "",
    ...filled.flatMap(([title, sections]) => {
      const links = [...sections.keys()].map((name) => `[\`${name}\`](#${anchors.get(`### ${name}`)})`);
      const [first, ...rest] = wrap(`- **[${title}](#${anchors.get(`## ${title}`)})**: ${links.join(", ")}`);
      return [first, ...rest.map((line) => `  ${line}`)];
    }),
    "",
    ...body,
  ];
  return `${lines.join("\n").trimEnd()}\n`;
}

/** The section of another name of what is exported under its own; undefined: it is no other name. @param {import("ts-morph").SourceFile} file @param {string} name @param {Node} node */
function otherName(file, name, node) {
  const own = Node.hasName(node) ? node.getName() : name;
  if (own === name || file.getExportedDeclarations().get(own)?.[0] !== node) return undefined;
  return [`### ${name}`, "", `\`${own}\` under another name.`, ""];
}

/**
 * The names of an entry by topic: those that TOPICS names, then what is no type, then types.
 * @param {string} entry @param {ReadonlyMap<string, Node[]>} exported
 * @returns {[title: string, names: string[]][]}
 */
function topicsOf(entry, exported) {
  const topics = /** @type {[title: string, names: string[]][]} */ (
    (TOPICS[entry] ?? []).map(([title, names]) => [title, names.filter((name) => exported.has(name))])
  );
  const isType = (/** @type {string} */ name) => isTypeNode(exported.get(name)?.[0]);
  // Functions and classes first: a name goes where it is mentioned, and so do those that it mentions.
  const rest = [...exported.keys()].filter((name) => !topics.some(([, names]) => names.includes(name)));
  rest.sort((a, b) => Number(isType(a)) - Number(isType(b)) || a.localeCompare(b, "en"));
  for (let wasPlaced = true; wasPlaced && rest.length > 0; ) {
    wasPlaced = false;
    for (const name of [...rest]) {
      const mention = new RegExp(`\\b${name.replace(".", "\\.")}\\b`);
      const topic = topics.find(([, names]) =>
        names.some((other) => exported.get(other)?.some((node) => mention.test(node.getText()))),
      );
      if (topic === undefined) continue;
      topic[1].push(name);
      rest.splice(rest.indexOf(name), 1);
      wasPlaced = true;
    }
  }
  if (rest.length > 0) throw new Error(`${entry}: no topic mentions ${rest.join(", ")}: add them to TOPICS`);
  const [first = ["", []]] = topics;
  if (first[1].length === 0) throw new Error(`${entry} has no topic: add it to TOPICS`);
  return topics.filter(([, names]) => names.length > 0);
}

/** docs/api/README.md: the functions that a beginner needs, then the pages. @param {ReadonlyMap<string, string>} pages */
function beginPage(pages) {
  const rows = BEGIN.map(([entry, anchor, code, words]) => {
    const file = `${entry.replace("/", "-")}.md`;
    const headings = [...anchorsOf((pages.get(`${FOLDER}/${file}`) ?? "").split("\n")).values()];
    if (!headings.includes(anchor)) throw new Error(`${file} has no heading #${anchor}: see BEGIN`);
    return `| [${code}](${file}#${anchor}) | ${words} |`;
  });
  const names = [...pages.keys()].map((path) => path.slice(FOLDER.length + 1));
  const lines = [
    "# The first ten functions",
    "",
    "Made by `npm run docs`. The [tutorial](../tutorial.md) has programs with most of them, and [coming-from.md](../coming-from.md) with calls.",
    "",
    "| call | what it does |",
    "| --- | --- |",
    ...rows,
    "",
    `All of them, by topic: ${names.map((name) => `[${name.replace(/\.md$/, "").replace("-", "/")}](${name})`).join(", ")}.`,
    "[Error codes and results](../errors.md), [words](../glossary.md).",
  ];
  return `${lines.join("\n")}\n`;
}

/** Whether a declaration is a type alone. @param {Node | undefined} node */
function isTypeNode(node) {
  return !(
    Node.isFunctionDeclaration(node) ||
    Node.isClassDeclaration(node) ||
    Node.isVariableDeclaration(node) ||
    Node.isExpression(node)
  );
}

/** The anchor that GitHub gives to each heading. @param {string[]} lines @returns {Map<string, string>} */
function anchorsOf(lines) {
  /** @type {Map<string, number>} */
  const seen = new Map();
  const headings = lines.filter((line) => /^#+ /.test(line));
  return new Map(
    headings.map((heading) => {
      const slug = slugOf(heading.replace(/^#+ /, ""));
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

/** The members of the interfaces that a declaration of the same name extends. @param {import("ts-morph").ClassDeclaration} node */
function mergedMembers(node) {
  const merged = (node.getSymbol()?.getDeclarations() ?? []).filter(Node.isInterfaceDeclaration);
  const bases = merged.flatMap((each) => each.getExtends()).map((base) => base.getType().getSymbolOrThrow());
  return bases
    .flatMap((base) => base.getDeclarations().filter(Node.isInterfaceDeclaration))
    .flatMap((each) => each.getMembers());
}

/** Public members, overloads together. @param {string} name @param {import("ts-morph").ClassDeclaration} node */
function classMembers(name, node) {
  /** @type {Map<string, Node[]>} */
  const members = new Map();
  for (const each of [...node.getMembers(), ...(node.getBaseClass()?.getMembers() ?? []), ...mergedMembers(node)]) {
    const own = "getName" in each ? each.getName() : "constructor";
    if (!own.startsWith("#")) members.set(own, [...(members.get(own) ?? []), each]);
  }
  const object = name.charAt(0).toLowerCase() + name.slice(1);
  return [...members].flatMap(([own, overloads]) => {
    const isCall = overloads.some((each) => Node.isMethodDeclaration(each) || Node.isMethodSignature(each));
    const path = own === "constructor" ? `new ${name}()` : `${object}${own.startsWith("[") ? "" : "."}${own}`;
    return [`#### ${path.replace("[", "\\[")}${isCall ? "()" : ""}`, "", ...code(overloads), ...text(overloads)];
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
