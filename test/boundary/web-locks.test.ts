// Web Locks in scopes without them: worklets have no navigator, and pages of insecure origins no locks.
import { afterEach, expect, it, vi } from "vitest";
import { webLocks } from "../../src/support/host.js";

afterEach(() => void vi.unstubAllGlobals());

const locks = { request: () => {} };

it.each([
  { scope: "a worklet", navigator: undefined, found: undefined },
  { scope: "an insecure page", navigator: {}, found: undefined },
  { scope: "a page", navigator: { locks }, found: locks },
])("in $scope", ({ navigator, found }) => {
  vi.stubGlobal("navigator", navigator);
  expect(webLocks()).toBe(found);
});
