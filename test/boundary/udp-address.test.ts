// Addresses of UDP sockets: which texts are addresses, and one canonical text for each socket.
import { isIPv6 } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalIpv6, formatUdpAddress, isLoopback, parseUdpAddress } from "../../src/link/udp/udp-address.js";
import { assertProperty } from "../support/seed.js";

describe("parseUdpAddress()", () => {
  it.each([
    ["udp:127.0.0.1:4567", "127.0.0.1", 4567, 4],
    ["udp:0.0.0.0:1", "0.0.0.0", 1, 4],
    ["udp:255.255.255.255:65535", "255.255.255.255", 65535, 4],
    ["udp:[::1]:4567", "::1", 4567, 6],
    ["udp:[::]:65535", "::", 65535, 6],
    ["udp:[0:0:0:0:0:0:0:1]:1", "::1", 1, 6],
    ["udp:[FD00::A:0:0:B]:1", "fd00::a:0:0:b", 1, 6],
    ["udp:[1:0:0:2:0:0:0:3]:1", "1:0:0:2::3", 1, 6],
    ["udp:[1:0:2:3:4:5:6:7]:1", "1:0:2:3:4:5:6:7", 1, 6],
    ["udp:[0001:0000:0:2:3:4:5:6]:1", "1::2:3:4:5:6", 1, 6],
    ["udp:[fe80::1%eth0]:9", "fe80::1%eth0", 9, 6],
    ["udp:[::1.2.3.4]:9", "::102:304", 9, 6],
    ["udp:[64:ff9b::1.2.3.4]:9", "64:ff9b::102:304", 9, 6],
    ["udp:[::ffff:127.0.0.1]:9", "127.0.0.1", 9, 4],
    ["udp:[::ffff:7f00:1]:9", "127.0.0.1", 9, 4],
    ["udp:localhost:80", "localhost", 80, 0],
    ["udp:Node-1.Example.ORG:80", "node-1.example.org", 80, 0],
    ["udp:job-0.job_svc.ns.svc:80", "job-0.job_svc.ns.svc", 80, 0],
    [`udp:${"a".repeat(63)}:80`, "a".repeat(63), 80, 0],
  ] as const)("%s", (text, host, port, family) => {
    expect(parseUdpAddress(text)).toEqual({ host, port, family });
    const formatted = formatUdpAddress(host, port);
    expect(parseUdpAddress(formatted)).toEqual({ host, port, family });
    // Canonical: a text that was formatted is the same when it is read and formatted again.
    const again = parseUdpAddress(formatted);
    expect(formatUdpAddress(again.host, again.port)).toBe(formatted);
  });

  const FORM = "udp:HOST:PORT, with an IPv6 address in brackets";
  const PORT = "an address with a port from 1 to 65535";
  const HOST = "an address with an IPv4 address or a host name";
  const BRACKETS = "an address with an IPv6 address in its brackets";
  it.each([
    ["", FORM],
    ["udp", FORM],
    ["udp:", FORM],
    ["udp::", FORM],
    ["udp:127.0.0.1", FORM],
    ["udp:127.0.0.1:", FORM],
    ["127.0.0.1:80", FORM],
    ["UDP:127.0.0.1:80", FORM],
    ["tcp:127.0.0.1:80", FORM],
    ["udp:127.0.0.1:80 ", FORM],
    ["udp:127.0.0.1:80/x", FORM],
    ["udp:127.0.0.1:-1", FORM],
    ["udp:127.0.0.1:1.5", FORM],
    ["udp:127.0.0.1:0x50", FORM],
    ["udp:127.0.0.1:123456", FORM],
    ["udp:::1:80", FORM],
    ["udp:[::1]", FORM],
    ["udp:[::1:80", FORM],
    ["udp:::1]:80", FORM],
    ["udp:[[::1]]:80", FORM],
    ["udp:127.0.0.1:0", PORT],
    ["udp:127.0.0.1:080", PORT],
    ["udp:127.0.0.1:65536", PORT],
    ["udp:127.0.0.1:99999", PORT],
    ["udp:[::1]:0", PORT],
    ["udp::80", HOST],
    ["udp:256.0.0.1:80", HOST],
    ["udp:1.2.3:80", HOST],
    ["udp:1.2.3.4.5:80", HOST],
    ["udp:01.2.3.4:80", HOST],
    ["udp:1234:80", HOST],
    ["udp:.:80", HOST],
    ["udp:a..b:80", HOST],
    ["udp:-a:80", HOST],
    ["udp:a-:80", HOST],
    ["udp:a b:80", HOST],
    ["udp:a\n:80", HOST],
    ["udp:a/b:80", HOST],
    ["udp://127.0.0.1:80", HOST],
    ["udp:é:80", HOST],
    [`udp:${"a".repeat(64)}:80`, HOST],
    [`udp:${"a.".repeat(126)}aa:80`, HOST],
    ["udp:[]:80", BRACKETS],
    ["udp:[127.0.0.1]:80", BRACKETS],
    ["udp:[:]:80", BRACKETS],
    ["udp:[:::]:80", BRACKETS],
    ["udp:[1::2::3]:80", BRACKETS],
    ["udp:[1:2:3:4:5:6:7]:80", BRACKETS],
    ["udp:[1:2:3:4:5:6:7:8:9]:80", BRACKETS],
    ["udp:[1:2:3:4::5:6:7:8]:80", BRACKETS],
    ["udp:[12345::]:80", BRACKETS],
    ["udp:[g::]:80", BRACKETS],
    ["udp:[::1.2.3.256]:80", BRACKETS],
    ["udp:[1.2.3.4::]:80", BRACKETS],
    ["udp:[fe80::1%]:80", BRACKETS],
    ["udp:[fe80::1%a%b]:80", BRACKETS],
    ["udp:[fe80::1%a b]:80", BRACKETS],
    ["udp:[::ffff:1.2.3.4%eth0]:80", BRACKETS],
  ])("%j is none, and the error names it and what is wanted", (text, wanted) => {
    expect(() => parseUdpAddress(text)).toThrow(
      expect.objectContaining({
        code: "PAMIR_INVAL",
        message: `a UDP address is ${JSON.stringify(text)}, not ${wanted}`,
      }),
    );
  });

  it.each([[undefined], [null], [5], [{}], [["udp:127.0.0.1:80"]]])("%j, which is no text, is none", (value) => {
    expect(() => parseUdpAddress(value as unknown as string)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
  });

  it("port 0 is for a socket that is to be opened; an error for a long text has a part of it", () => {
    expect(parseUdpAddress("udp:127.0.0.1:0", 0).port).toBe(0);
    const text = "x".repeat(1_000_000);
    expect(() => parseUdpAddress(text)).toThrow(expect.objectContaining({ code: "PAMIR_INVAL" }));
    expect(() => parseUdpAddress(text)).not.toThrow(/x{301}/);
  });
});

describe("canonicalIpv6()", () => {
  it("agrees with URL for every address: RFC 5952, but for those that stand for an IPv4 address", () => {
    const word = fc.oneof(fc.constant(0), fc.constant(0xffff), fc.integer({ min: 0, max: 0xffff }));
    assertProperty(
      fc.property(fc.array(word, { minLength: 8, maxLength: 8 }), fc.boolean(), (words, isUpper) => {
        const plain = words.map((one) => one.toString(16).padStart(isUpper ? 4 : 1, "0")).join(":");
        const text = isUpper ? plain.toUpperCase() : plain;
        const given = canonicalIpv6(text) as string;
        const isMapped = words.slice(0, 5).every((one) => one === 0) && words[5] === 0xffff;
        if (isMapped) expect(canonicalIpv6(`::ffff:${given}`)).toBe(given);
        else expect(`[${given}]`).toBe(new URL(`http://[${text}]/`).hostname);
        expect(isMapped || canonicalIpv6(given) === given).toBe(true);
      }),
      1000,
    );
  });

  it("takes the texts that node:net takes, and no others", () => {
    const piece = fc.constantFrom("0", "1", "ffff", "10000", ":", "::", ".", "1.2.3.4", "g", "", "F");
    assertProperty(
      fc.property(fc.array(piece, { maxLength: 18 }), (pieces) => {
        const text = pieces.join("");
        expect([text, canonicalIpv6(text) !== undefined]).toEqual([text, isIPv6(text)]);
      }),
      5000,
    );
  });
});

it("formatUdpAddress() gives what the system reports in canonical form", () => {
  expect(formatUdpAddress("::ffff:10.0.0.1", 5)).toBe("udp:10.0.0.1:5");
  expect(formatUdpAddress("::10.0.0.1", 5)).toBe("udp:[::a00:1]:5");
  expect(formatUdpAddress("fe80::1%eth0.100", 5)).toBe("udp:[fe80::1%eth0.100]:5");
});

it("isLoopback()", () => {
  for (const host of ["127.0.0.1", "127.255.0.9", "::1"]) expect(isLoopback(host)).toBe(true);
  for (const host of ["0.0.0.0", "::", "128.0.0.1", "12.7.0.0", "::2", "1127.0.0.1"])
    expect(isLoopback(host)).toBe(false);
});
