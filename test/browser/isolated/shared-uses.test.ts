// The column of docs/hosts.md that says which functions of Chromium refuse shared memory.
import { expect, it } from "vitest";
import { outcomeOf, SHARED_USES } from "../../support/shared-uses.js";

it.each(SHARED_USES)("$name", async (one) => {
  expect(await outcomeOf(one)).toBe(one.chromium);
});
