// The address at which a node is reached: what PAMIR_BIND_HOST may be, and which address of a machine is taken without it.
import type { NetworkInterfaceInfo } from "node:os";
import { describe, expect, it } from "vitest";
import { ownAddress } from "../../src/start/join/own-address.js";

const one = (family: "IPv4" | "IPv6", address: string, internal = false, scopeid = 0): NetworkInterfaceInfo =>
  ({ family, address, internal, scopeid, netmask: "", mac: "", cidr: null }) as NetworkInterfaceInfo;
const LOOPBACK = [one("IPv4", "127.0.0.1", true), one("IPv6", "::1", true)];
const LINK_LOCAL = one("IPv6", "fe80::1", false, 2);
const GLOBAL = one("IPv6", "2001:db8::7");

describe("the address of a node", () => {
  it.each([
    ["IPv4 comes first", [LOOPBACK, [LINK_LOCAL, GLOBAL], [one("IPv4", "192.0.2.7")]], "192.0.2.7"],
    ["IPv6 where there is no IPv4, in brackets", [LOOPBACK, undefined, [LINK_LOCAL, GLOBAL]], "[2001:db8::7]"],
  ])("%s", (_, interfaces, address) => {
    expect(ownAddress(undefined, () => interfaces)).toBe(address);
  });

  it.each([[[LOOPBACK]], [[LOOPBACK, [LINK_LOCAL]]], [[]]])("there is none that others reach: %#", (interfaces) => {
    const error = { code: "PAMIR_ADDRESS", message: expect.stringContaining("PAMIR_BIND_HOST names another one") };
    expect(() => ownAddress(undefined, () => interfaces)).toThrow(expect.objectContaining(error));
  });

  it.each([
    ["192.0.2.9", "192.0.2.9"],
    ["::1", "[::1]"],
    ["fe80::1%eth0", "[fe80::1%eth0]"],
    ["node-7.example", "node-7.example"],
  ])("PAMIR_BIND_HOST=%s", (given, address) => {
    expect(ownAddress(given, () => [])).toBe(address);
  });

  it.each(["0.0.0.0", "0", "00.0", "::", "0::0", "0:0:0:0:0:0:0:0", "::0.0.0.0", "::ffff:0.0.0.0", "::%lo"])(
    "refuses PAMIR_BIND_HOST=%j, which is every address of this machine: packets would not come from it",
    (given) => {
      const message = `PAMIR_BIND_HOST is "${given}", which is every address of this machine: name the one that other nodes send to`;
      expect(() => ownAddress(given, () => [])).toThrow(expect.objectContaining({ code: "PAMIR_ADDRESS", message }));
    },
  );

  it.each(["0.0.0.1", "10.0.0.0", "::1", "fe80::", "0.example"])("takes PAMIR_BIND_HOST=%j", (given) => {
    expect(ownAddress(given, () => [])).toBe(given.includes(":") ? `[${given}]` : given);
  });

  it.each(["", "a b", "[::1]", "192.0.2.9:80/x"])("refuses PAMIR_BIND_HOST=%j, and names it", (given) => {
    const message = `PAMIR_BIND_HOST is ${JSON.stringify(given)}, not an address or a name of this machine`;
    expect(() => ownAddress(given, () => [])).toThrow(expect.objectContaining({ code: "PAMIR_ADDRESS", message }));
  });
});
