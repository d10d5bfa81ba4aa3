// Two copies of the package in one program, as dependencies can bring them: an object of one that comes to the other is named.
import { cpSync, mkdtempSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import * as one from "pamir";
import { afterAll, beforeAll, expect, inject, it } from "vitest";

const folder = mkdtempSync(join(inject("folder"), "copies-"));
const urls = [resolve("dist"), join(folder, "dist")].map((path) => pathToFileURL(path).href);
let other: typeof one;
const jobs: one.Job[] = [];

beforeAll(async () => {
  for (const part of ["dist", "package.json"]) cpSync(part, join(folder, part), { recursive: true });
  other = await import(/* @vite-ignore */ pathToFileURL(join(folder, "dist/index.js")).href);
  for (const { launch } of [one, other]) jobs.push(await launch(null, { tasks: 1, join: true }));
});
afterAll(() => Promise.all(jobs.map((job) => job.terminate())));

it("a region or context of another copy is refused, by an error that names the files of both", () => {
  const [ours, theirs] = jobs.map(({ client }) => client) as [one.Client, one.Client];
  const context = ours.createContext();
  const to = context.endpoint;
  const remote = ours.createRegion(64);
  const local = ours.createRegion(64);
  const calls: [string, () => unknown][] = [
    ["MemRegion", () => context.put({ to, local: theirs.createRegion(64), remote: remote.handle, bytes: 8 })],
    ["Context", () => ours.advance([theirs.createContext()])],
  ];
  for (const [kind, call] of calls) {
    const error = expect.objectContaining({
      code: "PAMIR_INVAL",
      message: expect.stringMatching(
        new RegExp(` a ${kind} of another copy of pamir \\(${urls[1]}/\\S+; this one: ${urls[0]}/\\S+\\)`),
      ),
    });
    expect(call).toThrow(error);
  }
  expect(() => context.put({ to, local, remote: remote.handle, bytes: 8 })).not.toThrow();
});
