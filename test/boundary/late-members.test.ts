// What a wait for members says when it gives up: whom it awaits, and what it does if that is none any more.
import { describe, expect, it } from "vitest";
import { endpointOf } from "../../src/core/endpoint.js";
import { INTERRUPTED, TIMEDOUT } from "../../src/core/result.js";
import { lateError } from "../../src/pami/late-members.js";

const member = { rank: 2, endpoints: Array.from({ length: 20 }, (_, task) => endpointOf(task, 0)) };

describe("the error of a wait for members", () => {
  it.each([
    [[3], "gather() of rank 2 still waits for rank 3 (context 0 of task 3)"],
    [Array.from({ length: 10 }, (_, rank) => rank), /rank 7 \(context 0 of task 7\), 2 more$/],
    [[], "gather() of rank 2 still waits for its own next advance()"],
  ])("names %j", (ranks, text) => {
    const error = lateError(member, "gather", TIMEDOUT, ranks);
    expect(error).toMatchObject({
      code: "PAMIR_TIMEDOUT",
      message: typeof text === "string" ? text : expect.stringMatching(text),
    });
  });

  it("says that it was interrupted", () => {
    const error = lateError(member, "gather", INTERRUPTED, []);
    const message = "gather() of rank 2 was interrupted, and waits for its own next advance()";
    expect(error).toMatchObject({ code: "PAMIR_INTERRUPTED", message });
  });
});
