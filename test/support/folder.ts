// A folder for what the test files of one run share; it is gone when the run is over.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    folder: string;
  }
}

export default function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), "pamir-test-"));
  project.provide("folder", folder);
  return () => rmSync(folder, { recursive: true, force: true });
}
