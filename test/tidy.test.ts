// Rules of this repository that a machine can check. A test that fails names the rule and the places that break it.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { slugOf } from "../scripts/anchors.mjs";
import { linkKinds } from "../src/link/registry.js";

const root = resolve(import.meta.dirname, "..");
/** The links of the package. */
const LINKS = await linkKinds();
const SKIPPED = new Set(["node_modules", "dist", "coverage", "generated", "results", "build"]);

/** Files below a folder, as paths from the root. */
function files(folder: string, extension: RegExp): string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return SKIPPED.has(entry.name) || entry.name.startsWith(".") ? [] : files(path, extension);
    return extension.test(entry.name) ? [path] : [];
  });
}

const text = (path: string): string => readFileSync(join(root, path), "utf8");

/** The code without its comments; strings stay. */
function code(path: string): string {
  return text(path)
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ""))
    .replace(/(^|[^:"'`])\/\/.*$/gm, "$1");
}

/** The comments without the code, line by line. */
function comments(path: string): string {
  const lines = code(path).split("\n");
  return text(path)
    .split("\n")
    .map((line, i) => (line.startsWith(lines[i] as string) ? line.slice((lines[i] as string).length) : ""))
    .join("\n");
}

/** `path:line: text` of each line that matches. */
function matches(path: string, content: string, pattern: RegExp): string[] {
  return content.split("\n").flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}: ${line.trim()}`] : []));
}

function rule(name: string, broken: () => string[]): void {
  it(name, () => {
    expect(broken(), `rule: ${name}`).toEqual([]);
  });
}

interface Import {
  readonly from: string;
  /** What stands in the quotes. */
  readonly name: string;
  /** A path from the root without its extension, or the name of a package. */
  readonly to: string;
  readonly typeOnly: boolean;
}

function imports(path: string): Import[] {
  const found = code(path).matchAll(
    /\b(?:import|export)\s+(type\s+)?(?:[\w*{}\s,$]+?\s+from\s+)?"([^"\n]+)"|(?<!typeof )\bimport\("([^"]+)"\)/g,
  );
  return [...found].map(([, type, statically, dynamically]) => {
    const name = (statically ?? dynamically) as string;
    const to = name.startsWith(".") ? join(dirname(path), name).replace(/\.(js|ts)$/, "") : name;
    return { from: path, name, to, typeOnly: type !== undefined };
  });
}

const assembly = files("assembly", /\.ts$/);
const layout = assembly.filter((path) => path.startsWith("assembly/layout/"));
const src = files("src", /\.ts$/);
const scripts = files(".", /\.(ts|js|mjs)$/);
const documents = files(".", /\.md$/);

it("finds the files that the rules are about", () => {
  expect(assembly).toContain("assembly/layout.ts");
  expect(src).toContain("src/kernel/twin/lane.ts");
  expect(src.length).toBeGreaterThan(25);
  expect(imports("src/kernel/wasm.ts").map(({ to }) => to)).toEqual(
    expect.arrayContaining(["src/generated/wasm", "src/kernel/bind", "src/kernel/kernel"]),
  );
});

describe("imports point one way", () => {
  /** What a word in the table's last column stands for. */
  const GROUPS: Record<string, string[]> = {
    nothing: [],
    layout: ["assembly/layout", "assembly/seq", "assembly/layout-hash"],
    "src/index.ts": ["src/index"],
    "src/transport/transport.ts": ["src/transport/transport"],
  };
  /** The table of src/README.md: what the files of each folder may import from, themselves aside. */
  const ARROWS = Object.fromEntries(
    [...text("src/README.md").matchAll(/^\| `src\/(\w+)\/` +\|[^|]+\| ([^|]+?) +\|$/gm)].map(([, folder, words]) => [
      folder as string,
      (words as string).split(", ").flatMap((word) => GROUPS[word.replaceAll("`", "")] ?? [`src/${word}/`]),
    ]),
  );

  rule("assembly/ imports nothing from outside of it", () =>
    assembly.flatMap(imports).flatMap(({ from, to }) => (to.startsWith("assembly/") ? [] : [`${from} imports ${to}`])),
  );

  rule("the files of layout/ and seq.ts import nothing, for asc and TypeScript both compile them", () =>
    [...layout, "assembly/seq.ts"].flatMap(imports).map(({ from, to }) => `${from} imports ${to}`),
  );

  rule("layout.ts exports each file of layout/, and the others import that alone", () => [
    ...layout
      .map((path) => path.replace(/\.ts$/, ""))
      .filter((path) => !imports("assembly/layout.ts").some(({ to }) => to === path))
      .map((path) => `assembly/layout.ts does not export ${path}`),
    ...[...assembly, ...src]
      .filter((path) => path !== "assembly/layout.ts")
      .flatMap(imports)
      .filter(({ to }) => to.startsWith("assembly/layout/"))
      .map(({ from, to }) => `${from} imports ${to}`),
  ]);

  for (const [folder, allowed] of Object.entries(ARROWS)) {
    if (folder === "cli") continue;
    rule(`src/${folder} imports only ${allowed.join(", ") || "nothing of src/"}`, () =>
      src
        .filter((path) => path.startsWith(`src/${folder}/`))
        .flatMap(imports)
        .filter(({ name, to }) => name.startsWith(".") && !to.startsWith(`src/${folder}/`))
        .filter(({ to }) => !allowed.some((one) => (one.endsWith("/") ? to.startsWith(one) : to === one)))
        .map(({ from, to }) => `${from} imports ${to}`),
    );
  }

  rule("each folder imports only folders above it in the table", () => {
    const order = Object.keys(ARROWS);
    return order.flatMap((folder, i) =>
      (ARROWS[folder] ?? [])
        .filter((one) => one.startsWith("src/") && one.endsWith("/") && order.indexOf(one.slice(4, -1)) >= i)
        .map((one) => `src/${folder} may import ${one}`),
    );
  });

  rule("no file imports itself by way of others", () => {
    const next = new Map(
      src.map((path) => [
        path.replace(/\.ts$/, ""),
        imports(path)
          .filter(({ name }) => name.startsWith("."))
          .map(({ to }) => to),
      ]),
    );
    const circles: string[] = [];
    const done = new Set<string>();
    const walk = (file: string, way: readonly string[]): void => {
      if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(" → "));
      if (done.has(file) || way.includes(file)) return;
      for (const to of next.get(file) ?? []) walk(to, [...way, file]);
      done.add(file);
    };
    for (const file of next.keys()) walk(file, []);
    return circles;
  });

  rule("a folder of src/ or assembly/ has at most 15 files, which a reader can look over", () => {
    const counts = new Map<string, number>();
    for (const path of [...src, ...assembly]) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
    return [...counts].filter(([, count]) => count > 15).map(([folder, count]) => `${folder} has ${count} files`);
  });

  rule("every folder of src/ has a row in the table of src/README.md", () =>
    readdirSync(join(root, "src"), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && entry.name !== "generated" && !(entry.name in ARROWS))
      .map(({ name }) => name),
  );

  // A launcher speaks PMI-1 and has a job key, which programs never need: an entry of the package would be for it alone.
  rule(
    "src/cli uses the package by the name 'pamir', and bench/perf, which measures; src/link/registry names the links; only src/cli/run imports more: src/bootstrap, src/nats, labels, exit codes, input, the guard, what Node loads first, and checks of options; and limits of starting, timers, private folders, texts, and where packages are found, which need no package",
    () =>
      files("src/cli", /\.ts$/)
        .flatMap(imports)
        .filter(({ name, to }) => name.startsWith(".") && !/^(src\/cli|bench\/perf)\//.test(to))
        .filter(
          ({ from, to }) =>
            !/^src\/(start\/process\/start-limits|link\/(kind|registry)|support\/(timers|printable|text|node\/(packages|(private|temporary)-folder)))$/.test(
              to,
            ) &&
            !(
              from.startsWith("src/cli/run/") &&
              /^src\/(bootstrap\/|nats\/|start\/(output\/(input|labels)|process\/(exit-code|guard|preload)|join\/(join-options|own-address)|limits)$)/.test(
                to,
              )
            ),
        )
        .map(({ from, to }) => `${from} imports ${to}`),
  );

  /** The names of links, but for one whose servers processes also meet at: the bootstrap and the commands have that name, too. */
  const named = LINKS.filter(({ name }) => !existsSync(`src/bootstrap/${name}`));
  const ofLinks = src.filter((path) => !/^src\/(link|web)\//.test(path));

  rule(
    "outside src/link and src/web, nothing imports a particular link: src/link/registry.ts alone has a row for each",
    () =>
      ofLinks
        .flatMap(imports)
        .filter(({ to }) => to.startsWith("src/link/"))
        .filter(({ to }) => !/^src\/link\/(kind|registry|link|(lossy|delayed)-link)$/.test(to))
        .map(({ from, to }) => `${from} imports ${to}`),
  );

  rule(
    'outside src/link and src/web, no code has the name or the scheme of a link, such as "udp", as a text of its own',
    () => {
      const names = named.map(({ name }) => name).join("|");
      const schemes = named.map((kind) => kind.bind({ host: "a", port: 1, node: 0 }).replace(/:.*/, "")).join("|");
      const pattern = new RegExp(`(["'\`])((${names})|(${schemes})s?:[^"'\`]*)\\1`);
      expect(['"udp"', "`ws:a`", '"wss:"'].filter((one) => !pattern.test(one))).toEqual([]);
      return ofLinks.flatMap((path) => matches(path, code(path), pattern));
    },
  );

  rule("a new link is a folder and a row: neither the build, nor the commands, nor this test name one", () => {
    const names = named.flatMap(({ name, needs = [] }) => [name, ...needs]).join("|");
    const pattern = new RegExp(`(?<![\\w-])(${names})(?![\\w-])`);
    return ["scripts/build.mjs", ...files("src/cli", /\.ts$/)].flatMap((path) => matches(path, code(path), pattern));
  });

  rule(
    "the library has no dependency; src/seal/noble.ts has, which only src/seal, src/web by select.ts, and tests import",
    () =>
      src
        .filter((path) => !path.startsWith("src/cli/"))
        .flatMap(imports)
        .filter(
          ({ from, name, to }) =>
            !from.startsWith("src/seal/") &&
            !(from.startsWith("src/web/") && to === "src/seal/select") &&
            (!/^(\.|node:)/.test(name) || /^src\/seal\/(noble|select)/.test(to)),
        )
        .map(({ from, name }) => `${from} imports ${name}`),
  );

  rule(
    'no `import … from "node:…"` in src/ outside src/cli and src/piscina, so that bundlers for the web see none; types are erased',
    () =>
      src
        .filter((path) => !/^src\/(cli|piscina)\//.test(path))
        .flatMap(imports)
        .filter(({ name, typeOnly }) => name.startsWith("node:") && !typeOnly)
        .map(({ from, name }) => `${from} imports ${name}`),
  );
});

describe("some things have one home", () => {
  rule("in the library, atomics are named in assembly/sync.ts and src/kernel/atomics.ts only", () =>
    [...assembly, ...src.filter((path) => !path.startsWith("src/cli/"))]
      .filter((path) => !["assembly/sync.ts", "src/kernel/atomics.ts"].includes(path))
      .flatMap((path) => matches(path, code(path), /\b(Atomics|atomic)\./)),
  );

  rule(
    "where an endpoint stands in a node's tables, src/node/address.ts knows: only it divides by the contexts of a task",
    () =>
      src
        .filter((path) => path !== "src/node/address.ts")
        .flatMap((path) => matches(path, code(path), /[/%]\s*\(?(this\.)?[\w#.]*\bcontexts\b/)),
  );

  rule("only src/support reads `navigator`, which worklets and Node 20 lack", () =>
    src
      .filter((path) => !path.startsWith("src/support/"))
      .flatMap((path) => matches(path, code(path), /\bnavigator\b/)),
  );

  rule("time and chance come from src/support, so that a simulation can own them", () =>
    src
      .filter((path) => !/^src\/(support|cli)\//.test(path))
      .flatMap((path) => matches(path, code(path), /\b(Date\.now|Math\.random|performance\.now)\b/)),
  );

  rule("src/support/timers.ts makes all timers: a host takes any delay beyond 2^31 - 1 ms as 1 ms", () =>
    src
      .filter((path) => path !== "src/support/timers.ts")
      .flatMap((path) => matches(path, code(path), /\b(setTimeout|setInterval|AbortSignal\.timeout)\b/)),
  );

  rule(
    "only src/kernel imports the twin: others take its kernels by open.ts or select.ts, and atomics from atomics.ts",
    () =>
      src
        .filter((path) => !path.startsWith("src/kernel/"))
        .flatMap(imports)
        .filter(({ to }) => to.startsWith("src/kernel/twin/"))
        .map(({ from, to }) => `${from} imports ${to}`),
  );

  /** Folders of kernels that a file of src/kernel/ loads by itself. */
  const LOADED_LATER = ["collective", "mpi"];

  for (const folder of LOADED_LATER) {
    rule(`only src/kernel/${folder}.ts imports the twin of the kernels in assembly/${folder}/`, () =>
      src
        .filter((path) => path !== `src/kernel/${folder}.ts` && !path.startsWith(`src/kernel/twin/${folder}/`))
        .flatMap(imports)
        .filter(({ to }) => to.startsWith(`src/kernel/twin/${folder}/`))
        .map(({ from, to }) => `${from} imports ${to}`),
    );
  }

  /** The twin of a file of assembly/. The runtime has a use for the atomics too, so they lie beside the twin. */
  const twinOf = (name: string): string => (name === "sync" ? "src/kernel/atomics.ts" : `src/kernel/twin/${name}.ts`);

  /**
   * The files of assembly/ that export functions; seq.ts is shared, and index.ts only exports the others. Those of calls/ have no
   * twin: programs in C call them, each beside its long way in src/c/mpi/.
   */
  const kernels = assembly
    .map((path) => /^assembly\/((?:(?:collective|mpi|session)\/)?\w+)\.ts$/.exec(path)?.[1] ?? "index")
    .filter((name) => !["index", ...LOADED_LATER.map((folder) => `${folder}/index`), "layout", "seq"].includes(name));

  rule("the twin has the functions of assembly/, in the same order, and returns no others", () =>
    kernels.flatMap((name) => {
      const functions = (path: string, pattern: RegExp): string[] =>
        [...code(path).matchAll(pattern)].map((match) => match[1] as string);
      const original = functions(`assembly/${name}.ts`, /^export function (\w+)/gm);
      const twin = functions(twinOf(name), /^ *(?:export )?function (\w+)/gm);
      const missing = original.filter((own) => !twin.includes(own));
      const ordered = twin.filter((own) => original.includes(own));
      const returned = /\n {2}return \{([^}]*)\};/.exec(code(twinOf(name)))?.[1]?.match(/\w+/g) ?? [];
      return [
        ...missing.map((own) => `assembly/${name}.ts has ${own}(), its twin has not`),
        ...(missing.length === 0 && ordered.join() !== original.join()
          ? [`${twinOf(name)}: the order of functions`]
          : []),
        ...returned.filter((own) => !original.includes(own)).map((own) => `${twinOf(name)} returns ${own}()`),
        ...(returned.length === 0 ? [`${twinOf(name)} returns nothing`] : []),
      ];
    }),
  );

  describe("sync points", () => {
    /** The names of the table in docs/internals/memory.md. */
    const table = [...text("docs/internals/memory.md").matchAll(/^\| `([a-z-]+)` +\| [^|]*→[^|]*\|/gm)].map(
      ([, name]) => name as string,
    );
    /** Each `SYNC name (role)` of a file: which point, and which end of it. */
    const named = (path: string): { name: string; role: string }[] =>
      [...text(path).matchAll(/\bSYNC (\S*?\w)(?=[^\w-]|$)(?: \(([^)]*)\))?/gm)].map(([, name, role]) => ({
        name: name as string,
        role: role ?? "",
      }));
    const kernelFiles = assembly.filter(
      (path) => /^assembly\/(session\/)?[\w-]+\.ts$/.test(path) && path !== "assembly/layout.ts",
    );
    const isTwin = (path: string): boolean => path.startsWith("src/kernel/twin/") || path === twinOf("sync");

    it("are read from the table", () => {
      expect(table).toEqual(expect.arrayContaining(["commit", "ready", "task-state", "buffer-wanted"]));
      expect(new Set(table).size).toBe(table.length);
    });

    rule("every sync point that a comment names is in the table of docs/internals/memory.md", () =>
      [...assembly, ...src, ...files("test/interleaving", /\.ts$/)].flatMap((path) =>
        named(path)
          .filter(({ name }) => !table.includes(name))
          .map(({ name }) => `${path}: SYNC ${name}`),
      ),
    );

    rule("every sync point of the table is in a picture of layout/, and both ends of it are in the code", () => {
      const drawn = layout.flatMap(named).map(({ name }) => name);
      const ends = [...kernelFiles, ...src.filter((path) => !isTwin(path))].flatMap(named);
      return table.flatMap((point) => {
        const roles = new Set(ends.filter(({ name, role }) => name === point && role !== "").map(({ role }) => role));
        return [
          ...(drawn.includes(point) ? [] : [`${point} is not in the picture of any area`]),
          ...(roles.size >= 2 ? [] : [`${point} has one end only: ${[...roles]}`]),
        ];
      });
    });

    rule("the twin names the sync points that its original names, in the same order", () =>
      kernelFiles.flatMap((path) => {
        const twin = twinOf(path.slice("assembly/".length, -".ts".length));
        const list = (of: string): string[] => named(of).map(({ name, role }) => `${name} (${role})`);
        const original = list(path);
        // Behind its twin's part, atomics.ts has functions that wasm has no instruction for.
        return original.length > 0 && list(twin).slice(0, original.length).join() !== original.join() ? [twin] : [];
      }),
    );
  });
});

describe("documents say what is there", () => {
  const { scripts: commands } = JSON.parse(text("package.json")) as { scripts: Record<string, string> };
  /** What stands in backticks, and the lines of fenced blocks. */
  const snippets = (path: string): { inline: string[]; fenced: string[] } => {
    const fenced = [...text(path).matchAll(/^ *```[^\n]*\n([\s\S]*?)^ *```/gm)].map((match) => match[1] as string);
    const inline = [
      ...text(path)
        .replace(/^ *```[\s\S]*?^ *```/gm, "")
        .matchAll(/`([^`\n]+)`/g),
    ].map((match) => match[1] as string);
    return { inline, fenced };
  };

  rule("every script that a document names exists in package.json", () =>
    documents.flatMap((path) => {
      const { inline, fenced } = snippets(path);
      const named = [...inline, ...fenced].flatMap((snippet) => [
        ...[...snippet.matchAll(/\bnpm run (?:--?\S+ )*([\w:-]+)/g)].map((match) => match[1] as string),
        ...[...snippet.matchAll(/\bnpm (test|start|stop|restart)\b/g)].map((match) => match[1] as string),
      ]);
      return named.filter((name) => !(name in commands)).map((name) => `${path}: npm run ${name}`);
    }),
  );

  rule("every file that a document names, by a path with an extension, exists", () =>
    documents.flatMap((path) =>
      snippets(path)
        .inline.filter(
          (name) => /^(?:\.{0,2}\/)?[\w@.-]+(?:\/[\w@.-]+)+\.[a-z]{1,5}$/.test(name) && !name.startsWith("pamir/"),
        )
        .filter((name) => ![root, join(root, dirname(path))].some((base) => existsSync(join(base, name))))
        .map((name) => `${path}: ${name}`),
    ),
  );

  rule("every link of a document to another, or to a place in it, leads somewhere", () => {
    /** The anchors that GitHub gives to a document's headings. */
    const anchors = (path: string): string[] => {
      const headings = text(path)
        .replace(/^ *```[\s\S]*?^ *```/gm, "")
        .matchAll(/^#+ (.*)$/gm);
      const slugs = [...headings].map(([, heading]) => slugOf(heading as string));
      return slugs.map((slug, place) => {
        const times = slugs.slice(0, place).filter((earlier) => earlier === slug).length;
        return times === 0 ? slug : `${slug}-${times}`;
      });
    };
    return documents.flatMap((path) =>
      [...text(path).matchAll(/\]\(([^)#\s]*)(?:#([^)\s]*))?\)/g)]
        .filter(([, to]) => !/^\w+:/.test(to as string))
        .filter(([, to, anchor]) => {
          const file = to === "" ? path : join(dirname(path), to as string);
          return !existsSync(join(root, file)) || (anchor !== undefined && !anchors(file).includes(anchor));
        })
        .map(([link]) => `${path}: ${link}`),
    );
  });

  rule("the name of an exported type has one meaning: no two files of src export types of one name", () => {
    // The API of the package piscina, whose names are not this project's.
    const foreign = new Map([["CloseOptions", "src/piscina/piscina.ts"]]);
    const homes = new Map<string, string[]>();
    for (const path of scripts.filter((one) => one.startsWith("src/") && !one.startsWith("src/generated/"))) {
      for (const [, name] of code(path).matchAll(/^export (?:abstract )?(?:class|interface|type) (\w+)/gm)) {
        if (foreign.get(name as string) === path) continue;
        const known = homes.get(name as string) ?? [];
        // A class and the interface of its generated methods are one type.
        if (!known.includes(path)) homes.set(name as string, [...known, path]);
      }
    }
    return [...homes].filter(([, paths]) => paths.length > 1).map(([name, paths]) => `${name}: ${paths.join(", ")}`);
  });

  rule("README.md has at most 120 lines", () => {
    if (!existsSync(join(root, "README.md"))) return [];
    const lines = text("README.md").trimEnd().split("\n").length;
    return lines > 120 ? [`it has ${lines}`] : [];
  });
});

describe("nothing is left lying about", () => {
  const everything = [...scripts, ...documents, ...files(".", /\.(json|yml|yaml)$/)].filter(
    (path) => path !== "package-lock.json",
  );

  rule("no note of work to be done: do it, or open an issue", () => {
    const note = new RegExp(`\\b(TO${"DO"}|FIX${"ME"}|XX${"X"})\\b`);
    return everything.flatMap((path) => matches(path, text(path), note));
  });

  rule("no RegExp within toMatchObject(), which matches whatever is there: expect.stringMatching()", () =>
    files("test", /\.ts$/).flatMap((path) =>
      matches(path, code(path), /toMatchObject\(\{.*\b(?!stringMatching)\w+: \/[^/]/),
    ),
  );

  rule("comments of src/ and assembly/ name the component that acts: no who, somebody, nobody, everybody, he", () =>
    [...src, ...assembly].flatMap((path) =>
      matches(path, comments(path), /\b(who|whoever|somebody|nobody|everybody|he|his|him)\b/i),
    ),
  );

  rule("no path of somebody's machine", () =>
    everything.flatMap((path) => matches(path, text(path), /(?<![\w.@$/}-])\/(work|root|home|Users|mnt)\/\w/)),
  );
});
