// Lists of hosts, host files, and where tasks go: named rows.
import { describe, expect, it } from "vitest";
import { parseHostFile, parseHosts, placeTasks } from "../../src/bootstrap/hosts.js";
import { PamiError } from "../../src/core/error.js";

function errorOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(PamiError);
    expect(error).toMatchObject({ code: "PAMIR_HOSTS" });
    return (error as PamiError).message;
  }
  return expect.fail("it did not throw");
}

const slots = (host: string, count: number, maxSlots?: number) => ({ host, slots: count, maxSlots });

describe("parseHosts", () => {
  it.each([
    ["a", [slots("a", 1)]],
    ["a:4,b:4", [slots("a", 4), slots("b", 4)]],
    [" a:4 , b ", [slots("a", 4), slots("b", 1)]],
    ["a:2,b,a:3", [slots("a", 5), slots("b", 1)]],
    ["192.0.2.1:2,[2001:db8::1]:3,[::1]", [slots("192.0.2.1", 2), slots("2001:db8::1", 3), slots("::1", 1)]],
    ["me@a.example.org:65536", [slots("me@a.example.org", 65_536)]],
  ])("%s", (list, hosts) => expect(parseHosts(list)).toEqual(hosts));

  it.each([
    ["", /^--hosts, entry 1: "" is no host$/],
    ["a,,b", /^--hosts, entry 2: "" is no host$/],
    ["a,b:", /^--hosts, entry 2: slots is "", not an integer from 1 to 65536$/],
    ["a:0", /^--hosts, entry 1: slots is "0"/],
    ["a:-1", /slots is "-1"/],
    ["a:four", /slots is "four"/],
    ["a:65537", /slots is "65537"/],
    ["a:65536,a:1", /entry 2: a gets 65537 slots, more than 65536/],
    ["a slots=4", /"a slots=4" is no host/],
    ["::1", /"::1" is no host; an IPv6 address needs brackets$/],
    ["[::1", /is no host$/],
    ["[a]:4", /is no host$/],
    ["-oProxyCommand=x", /is no host$/],
    ["-a@b", /is no host$/],
    ["@b", /is no host$/],
    ["a/b", /is no host$/],
  ])("%j", (list, why) => expect(errorOf(() => parseHosts(list))).toMatch(why));
});

describe("parseHostFile", () => {
  it("reads the spelling of Open MPI", () => {
    const text =
      "# the cluster\nfoo.example.com\r\nbar slots=2 # two\n\n  baz\tslots=4 max_slots=8\nqux max-slots=3 slots=3";
    expect(parseHostFile(text, "hosts")).toEqual([
      slots("foo.example.com", 1),
      slots("bar", 2),
      slots("baz", 4, 8),
      slots("qux", 3, 3),
    ]);
  });

  it("reads a file with a byte order mark, as editors of Windows write it", () => {
    expect(parseHostFile("\ufefffoo:2\r\nbar\r\n", "hosts")).toEqual([slots("foo", 2), slots("bar", 1)]);
  });

  it("reads the spelling of MPICH, and both in one file", () => {
    expect(parseHostFile("foo:2\n[::1]:3\nfoo\nbar:4 max_slots=6\n", "hosts")).toEqual([
      slots("foo", 3),
      slots("::1", 3),
      slots("bar", 4, 6),
    ]);
  });

  it.each([
    ["", /^hosts\.txt names no host$/],
    ["# nothing\n\n", /^hosts\.txt names no host$/],
    ["a\nb slots=x", /^hosts\.txt, line 2: slots is "x", not an integer from 1 to 65536$/],
    ["a slots=2 slots=2", /^hosts\.txt, line 1: "slots=2" gives slots a second time$/],
    ["a:2 slots=2", /"slots=2" gives slots a second time/],
    ["a max_slots=2 max-slots=2", /"max-slots=2" gives max_slots a second time/],
    ["a\n\nb cpus=4", /^hosts\.txt, line 3: the field "cpus=4" is none of slots=, max_slots=$/],
    ["a slots = 4", /line 1: the field "slots" is none of/],
    ["a slots=4 max_slots=3", /line 1: a has 4 slots, but max_slots=3/],
    ["a max_slots=3\nb\na:3", /line 3: a has 4 slots, but max_slots=3/],
    ["slots=4", /line 1: "slots=4" is no host/],
  ])("%j", (text, why) => expect(errorOf(() => parseHostFile(text, "hosts.txt"))).toMatch(why));

  it("ignores what only MPICH's launcher needs, and says so", () => {
    const warnings: string[] = [];
    const text = "a:2 binding=user:0,2 ifname=eth0\nb\n";
    expect(parseHostFile(text, "hosts.txt", (warning) => warnings.push(warning))).toEqual([
      slots("a", 2),
      slots("b", 1),
    ]);
    const ignored = ["binding=user:0,2", "ifname=eth0"];
    expect(warnings).toEqual(ignored.map((field) => `hosts.txt, line 1: the field "${field}" is ignored`));
    expect(errorOf(() => parseHostFile("a binding=", "hosts.txt"))).toMatch(/the field "binding=" is none of/);
  });

  it("shows of a long field a part", () => {
    expect(errorOf(() => parseHostFile(`a ${"x".repeat(100_000)}`, "hosts")).length).toBeLessThan(300);
  });
});

describe("placeTasks", () => {
  const hosts = [slots("a", 2), slots("b", 3, 4), slots("c", 1)];

  it.each([
    [1, {}, [["a", 0, 1]]],
    [2, {}, [["a", 0, 2]]],
    [
      3,
      {},
      [
        ["a", 0, 2],
        ["b", 2, 1],
      ],
    ],
    [
      6,
      {},
      [
        ["a", 0, 2],
        ["b", 2, 3],
        ["c", 5, 1],
      ],
    ],
    [
      7,
      { oversubscribe: true },
      [
        ["a", 0, 3],
        ["b", 3, 3],
        ["c", 6, 1],
      ],
    ],
    [
      12,
      { oversubscribe: true },
      [
        ["a", 0, 5],
        ["b", 5, 4],
        ["c", 9, 3],
      ],
    ],
    [
      3,
      { ppn: 1 },
      [
        ["a", 0, 1],
        ["b", 1, 1],
        ["c", 2, 1],
      ],
    ],
    [
      2,
      { ppn: 1 },
      [
        ["a", 0, 1],
        ["b", 1, 1],
      ],
    ],
    [
      9,
      { ppn: 4 },
      [
        ["a", 0, 4],
        ["b", 4, 4],
        ["c", 8, 1],
      ],
    ],
  ] as const)("%d tasks, %j", (tasks, options, expected) => {
    const placed = placeTasks(tasks, hosts, options).map(({ host, firstTask, count }) => [host, firstTask, count]);
    expect(placed).toEqual(expected);
  });

  it.each([
    [7, {}, /^7 tasks don't fit: 3 hosts have 6 slots$/],
    [4, { ppn: 1 }, /^4 tasks don't fit: 3 hosts have 3 tasks by --ppn 1$/],
    [4, { ppn: 5 }, /^--ppn is 5, but b takes at most 4 tasks$/],
  ] as const)("%d tasks, %j: refused", (tasks, options, why) => {
    expect(errorOf(() => placeTasks(tasks, hosts, options))).toMatch(why);
  });

  it("refuses when every host is at its limit", () => {
    const full = [slots("a", 1, 2), slots("b", 1, 1)];
    expect(errorOf(() => placeTasks(4, full, { oversubscribe: true }))).toMatch(/2 hosts have 3 tasks at most/);
  });

  it.each([0, -1, 1.5, 65_537, Number.NaN])("refuses %d tasks", (tasks) => {
    expect(() => placeTasks(tasks, hosts)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
    expect(() => placeTasks(1, hosts, { ppn: tasks })).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
  });
});
