// `pamir run --link`: the links of this package, and one of a user's own.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, inject, it } from "vitest";
import { app, run, saidBy } from "../support/run-command.js";
import { UNIX_LINK } from "../support/unix-rig.js";

/** Writes a module into the folder of this run. */
function moduleOf(name: string, text: string): string {
  const file = join(inject("folder"), name);
  writeFileSync(file, text);
  return file;
}

const CODE = "PAMIR_LINK_MODULE";

/** The link over Unix sockets, which says what it opens. */
const OPENS = `import { writeSync } from "node:fs";
import kind from ${JSON.stringify(pathToFileURL(UNIX_LINK))};
export default {
  ...kind,
  name: "told",
  open(bind, opening) {
    writeSync(2, "opens " + bind + "\\n");
    return kind.open(bind, opening);
  },
};
`;

describe.skipIf(process.platform === "win32")("a link of a user's own", () => {
  it.each([
    ["threads of their own", [], 2],
    ["the threads of tasks", ["-x", 'PAMIR_OPTIONS={"agent":"inline"}'], 4],
  ])("joins nodes whose agents have %s", (_, more, links) => {
    const module = moduleOf("told.mjs", OPENS);
    const { status, stdout, stderr } = run("-n", "4", "--nodes", "2", "--link", module, ...more, app);
    expect({ status, tasks: saidBy(stdout).map(({ task }) => task) }).toEqual({ status: 0, tasks: [0, 1, 2, 3] });
    expect(stderr.match(/opens unix:/g)?.length).toBe(links);
  });

  it("is named by PAMIR_LINK_MODULE, too, and adds a name", () => {
    const module = moduleOf("named.mjs", OPENS);
    const variable = ["-x", `PAMIR_LINK_MODULE=${module}`];
    const { status, stderr } = run("-n", "2", "--nodes", "2", ...variable, "--link", "told", app);
    expect({ status, opened: stderr.match(/opens unix:/g)?.length }).toEqual({ status: 0, opened: 2 });
    const other = run("-n", "2", "--nodes", "2", ...variable, "--link", "tcp", app);
    expect(other.status).toBe(2);
    expect(other.stderr).toContain('link of PAMIR_OPTIONS is "tcp", not "udp" or "websocket" or "nats" or "told"');
  });

  it.each([
    ["none.mjs", undefined, "a module that does not load: Cannot find module"],
    ["throws.mjs", 'throw new Error("first\\nsecond");', "a module that does not load: first (PAMIR"],
    ["syntax.mjs", "export default {", "a module that does not load: "],
    ["empty.mjs", "", "a module whose default export is undefined, not an object"],
    ["nameless.mjs", "export default {};", "a module whose name is undefined, not 1 to 32"],
    ["taken.mjs", 'export default { name: "udp" };', 'a module whose name is "udp", that of a link of this package'],
    ["bare.mjs", 'export default { name: "bare", bind() {} };', "a module whose open is undefined, not a function"],
    [
      "large.mjs",
      'export default { name: "large", bind() {}, open() {}, packetBytesMax: 1e9 };',
      "a module whose packetBytesMax is 1000000000, not from 1232 to 65504",
    ],
  ])("%s is refused before any task, in one line", (name, text, why) => {
    const module = text === undefined ? join(inject("folder"), name) : moduleOf(name, text);
    const { status, stdout, stderr } = run("-n", "2", "--nodes", "2", "--link", module, app);
    expect({ status, stdout, lines: stderr.trim().split("\n").length }).toEqual({ status: 2, stdout: "", lines: 1 });
    expect(stderr).toContain(`PAMIR_LINK_MODULE is ${JSON.stringify(module)}, ${why}`);
    expect(stderr).toContain(`(${CODE})`);
  });

  it.each([
    ["./link.mjs", "neither an absolute path nor the name of a package"],
    ["no-such-link", "a package that is not installed"],
  ])("PAMIR_LINK_MODULE is never looked up from the current folder: %s", (given, why) => {
    const { status, stderr } = run("-n", "2", "--nodes", "2", "-x", `PAMIR_LINK_MODULE=${given}`, app);
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining(`is "${given}", ${why}`) });
  });

  it.each([
    ["address", "{ ...link, address: undefined }", "whose address is undefined, not a text"],
    ["packetBytes", "{ ...link, packetBytes: 1234 }", "whose packetBytes is 1234, not a multiple of 4"],
    ["send", "{ ...link, send: undefined }", "whose send is undefined, not a function"],
  ])("what it opens is checked: %s", (name, made, why) => {
    const text = `const link = { address: "here", packetBytes: 1232, send() {}, close() {} };
export default { name: "wrong", bind: () => "", open: async () => (${made}) };`;
    const { status, stderr } = run("-n", "2", "--nodes", "2", "--link", moduleOf(`wrong-${name}.mjs`, text), app);
    expect(status).toBe(1);
    expect(stderr).toContain(`open() of link "wrong" has given a link ${why}`);
  });

  it("what open() throws has the link's name, and a code", () => {
    const text =
      'export default { name: "shut", bind: () => "there", open: async () => { throw new Error("no way\\nat") } };';
    const { status, stderr } = run("-n", "2", "--nodes", "2", "--link", moduleOf("shut.mjs", text), app);
    expect(status).toBe(1);
    expect(stderr).toContain('link "shut" does not open at there: no way');
    expect(stderr).toContain("PAMIR_ADDRESS");
  });
});

it("--link websocket joins nodes", () => {
  const { status, stdout } = run("-n", "2", "--nodes", "2", "--link", "websocket", app);
  expect({ status, tasks: saidBy(stdout).map(({ task }) => task) }).toEqual({ status: 0, tasks: [0, 1] });
});

it("--link takes nodes or hosts", () => {
  const { status, stderr } = run("-n", "2", "--link", "udp", app);
  expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining("--link does not go with threads") });
});
