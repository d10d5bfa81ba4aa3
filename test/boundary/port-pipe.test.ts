// The channels between nodes of several tasks: they close with the last task of a node, also where the last node has fewer.
import { afterEach, describe, expect, it } from "vitest";
import { endpointOf } from "../../src/core/endpoint.js";
import { PortPipe } from "../../src/transport/net/port-pipe.js";

describe("a pipe of ports: node 0 has tasks 0 to 2, node 1 has 3 and 4", () => {
  const ends: MessagePort[] = [];
  afterEach(() => {
    for (const end of ends.splice(0)) end.close();
  });

  it("closes the channels to a node when the last of its tasks is dropped, and not before", () => {
    const pipe = new PortPipe((_, end) => void ends.push(end), 3, 5);
    const say = (): void => pipe.send(endpointOf(0, 0), endpointOf(3, 0), { credit: 0 });
    say();
    expect([pipe.firstTaskOf(4), [...pipe.talkedTo]]).toEqual([3, [3]]);
    expect(pipe.drop(3)).toBe(false);
    say();
    expect([ends.length, [...pipe.talkedTo]]).toEqual([1, [3]]);
    expect(pipe.drop(4)).toBe(true);
    expect([...pipe.talkedTo]).toEqual([]);
    // A further frame would need a new channel.
    say();
    expect(ends.length).toBe(2);
  });
});
