// The variable by which `pamir run --restart` tells its tasks of those that come later: what it may say, and that it is removed.
import { describe, expect, it } from "vitest";
import { LATER, takeLater } from "../../src/bootstrap/later.js";

describe("takeLater", () => {
  it("reads the variable once", () => {
    const env: Record<string, string | undefined> = { [LATER]: '{"world":2,"most":4,"rank":1,"ended":[0,1]}' };
    expect(takeLater(env)).toEqual({ world: 2, most: 4, rank: 1, ended: [0, 1] });
    expect(env).toEqual({});
    expect(takeLater(env)).toBeUndefined();
  });

  it.each(["", "{", "1", "null", "{}", '{"world":2}', '{"world":2,"most":-1}', '{"world":2,"most":4,"ended":["a"]}'])(
    "refuses %j",
    (text) => {
      const env: Record<string, string | undefined> = { [LATER]: text };
      expect(() => takeLater(env)).toThrow(/^PAMIR_LATER is .*, not what pamir run writes there$/);
      expect(env).toEqual({});
    },
  );
});
