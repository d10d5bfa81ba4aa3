// pamir/pool on a page that is isolated.
import { info } from "pamir";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { poolSuite } from "../../conformance/pool.suite.js";

poolSuite();

describe("on a host that isolates the page and has no SharedArrayBuffer, as WebKitGTK", () => {
  beforeAll(() => void vi.stubGlobal("SharedArrayBuffer", undefined));
  afterAll(() => void vi.unstubAllGlobals());

  it("tasks talk by messages, and info() says why", () => {
    expect(info()).toMatchObject({ mode: "messages", why: "this host has no SharedArrayBuffer", isolated: true });
  });
  poolSuite();
});
