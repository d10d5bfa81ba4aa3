// What a NATS server may refuse, and how jobs go on beside its settings: rights, credentials, TLS, the length of messages, an end
// in good order.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { nkeys } from "@nats-io/nats-core";
import { afterAll, describe, expect, inject, it } from "vitest";
import { keyFile, linesOf, newJob, said, startLauncher, startProgram } from "../support/nats-launcher.js";
import { certificates, credentialsBy, OPENSSL, serverOfAccount, tlsPart } from "../support/nats-secrets.js";
import { NATS_SERVER, NatsServer, natsCluster } from "../support/nats-server.js";

const programOf = (name: string): string => fileURLToPath(new URL(`programs/${name}.js`, import.meta.url));
const TRAFFIC = programOf("nats-traffic");
/** All packets go through the server. */
const THROUGH = { PAMIR_NATS_DIRECT: "0" };

const servers: NatsServer[] = [];
afterAll(() => Promise.all(servers.map((server) => server.close())));
async function serverWith(config: string): Promise<NatsServer> {
  const server = await NatsServer.start({ config });
  servers.push(server);
  return server;
}

/** Two launchers of a job, and what the server says at its end. */
async function runTwo(url: string, job: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const all = ["--nodes", "2", ...args];
  return Promise.all([0, 1].map(() => startLauncher(url, job, all, env).ended));
}

async function succeeds(url: string, env: Readonly<Record<string, string>> = {}, job = newJob()): Promise<void> {
  const ended = await runTwo(url, job, ["-n", "4", TRAFFIC, "100"], { ...THROUGH, ...env });
  expect(ended.map(({ status, err }) => [status, err])).toEqual(ended.map(() => [0, ""]));
  expect(linesOf(...ended.map(({ out }) => out)).filter((line) => line.includes("all came"))).toHaveLength(4);
}

/** What a launcher says that must end at once, long before its time is up. */
async function refused(url: string, env: Readonly<Record<string, string>> = {}, job = newJob()): Promise<string> {
  const { status, out, err } = await startLauncher(url, job, ["--nodes", "2", "-n", "2", TRAFFIC, "1"], env).ended;
  expect({ status, out }).toEqual({ status: 2, out: "" });
  return err;
}

const hasServer = NATS_SERVER !== undefined;

describe.skipIf(!hasServer)("rights", { concurrent: true }, () => {
  const user = (name: string, permissions: string): string =>
    `{ user: ${name}, password: secret, permissions: { ${permissions} } }`;
  const serverFor = (...users: string[]) => serverWith(`authorization { users: [ ${users.join(", ")} ] }`);
  const urlOf = ({ url }: NatsServer, name: string): string => url.replace("://", `://${name}:secret@`);
  const denial = (verb: string, subject: string, job: string): string =>
    `the NATS server 127\\.0\\.0\\.1:\\d+ does not let this process ${verb} pamir\\.${job}\\.${subject}[\\w.-]*: ` +
    `its user needs the rights to publish to and to subscribe to pamir\\.${job}\\.> \\(PAMIR_NATS\\)`;

  it("the subjects of the job alone: no inbox, and the server has nothing to refuse", async () => {
    const server = await serverFor(user("weather", 'publish: "pamir.weather.>", subscribe: "pamir.weather.>"'));
    await succeeds(urlOf(server, "weather"), {}, "weather");
    expect(server.log).not.toMatch(/violation/i);
  });

  it.each([
    ["subscribe to", "boot", 'publish: "pamir.weather.>", subscribe: "pamir.ocean.>"'],
    ["publish to", "", 'publish: "pamir.ocean.>", subscribe: "pamir.weather.>"'],
    ["subscribe to", "", 'publish: "pamir.ocean.>", subscribe: "pamir.ocean.>"'],
  ])(
    "a launcher whose user may not %s the job's subjects (%s) ends at once, and says why",
    async (verb, subject, permissions) => {
      const server = await serverFor(user("ocean", permissions));
      const err = await refused(urlOf(server, "ocean"), {}, "weather");
      expect(err).toMatch(new RegExp(`^pamir: ${denial(verb, subject, "weather")}\\n$`));
      expect(server.log).toMatch(/violation/i);
    },
  );

  it("so does attach() without a launcher", async () => {
    const server = await serverFor(user("ocean", 'publish: "pamir.ocean.>", subscribe: "pamir.ocean.>"'));
    const { status, err } = await startProgram([TRAFFIC, "1"], {
      PAMIR_NATS: urlOf(server, "ocean"),
      PAMIR_JOB: "weather",
      PAMIR_NODES: "2",
      PAMIR_KEY_FILE: keyFile(),
      PAMIR_OPTIONS: '{"link":"nats"}',
    }).ended;
    expect(status).toBe(1);
    expect(err).toMatch(
      new RegExp(`^PamiError: ${denial("subscribe to", "", "weather").replace(" \\(PAMIR_NATS\\)", "")}`, "m"),
    );
  });

  it.each([
    ["the rendezvous", ["boot.>", "keys", "l.>", "c.>", "n.>"], "b"],
    ["a stream to it", ["boot.>", "keys", "l.>", "b.>", "n.>"], "c"],
    ["the link", ["boot.>", "keys", "l.>", "b.>", "c.>"], "n"],
    ["what launchers tell each other", ["boot.>", "keys", "b.>", "c.>", "n.>"], "l"],
  ])("a user who may not use the subjects of %s", async (_, own, lacks) => {
    const subjects = JSON.stringify(own.map((one) => `pamir.weather.${one}`));
    const server = await serverFor(user("weather", `publish: ${subjects}, subscribe: ${subjects}`));
    const ended = await runTwo(urlOf(server, "weather"), "weather", ["-n", "2", "--on-error", "abort", TRAFFIC, "1"]);
    expect(ended.every(({ status }) => status !== 0)).toBe(true);
    const text = ended.map(({ err }) => err).join("");
    expect(text).toMatch(
      new RegExp(denial("(subscribe to|publish to)", lacks, "weather").replace(" \\(PAMIR_NATS\\)", "")),
    );
  });
});

describe.skipIf(!hasServer)(
  "rights that change while nodes are connected",
  { timeout: 120_000, concurrent: true },
  () => {
    const configOf = (publish: string, subscribe: string, password = "secret"): string =>
      `authorization { users: [ { user: weather, password: ${password}, permissions: { publish: ${publish}, subscribe: ${subscribe} } } ] }`;
    const ALL = configOf('"pamir.weather.>"', '"pamir.weather.>"');
    const allow = (...subjects: string[]): string => JSON.stringify(subjects.map((one) => `pamir.weather.${one}`));

    /** Two nodes with traffic, to which the server says no for a while. @returns their ends, and what was said meanwhile */
    async function changed(config: string, told: readonly RegExp[]) {
      const server = await serverWith(ALL);
      const url = server.url.replace("://", "://weather:secret@");
      const args = ["--nodes", "2", "-n", "2", "-x", 'PAMIR_OPTIONS={"silence":60000}', TRAFFIC, "400", "10"];
      const nodes = [0, 1].map(() => startLauncher(url, "weather", args, THROUGH));
      await Promise.all(nodes.map(({ child }) => said(child, "begins")));
      let err = "";
      const heard = new Promise<void>((resolve) => {
        for (const { child } of nodes)
          child.stderr?.on("data", (bytes) => {
            err += bytes;
            if (told.every((one) => one.test(err))) resolve();
          });
      });
      await server.reload(config);
      await heard;
      await server.reload(ALL);
      const ended = await Promise.all(nodes.map(({ ended }) => ended));
      expect(ended.map(({ status }) => status)).toEqual([0, 0]);
      expect(linesOf(...ended.map(({ out }) => out)).filter((line) => line.includes("all came"))).toHaveLength(2);
      return ended.map(({ err }) => err).join("");
    }

    const denial = (verb: string, subject: string): string =>
      `the NATS server 127\\.0\\.0\\.1:\\d+ does not let this process ${verb} pamir\\.weather\\.${subject}[\\w.*-]*: ` +
      "its user needs the rights to publish to and to subscribe to pamir\\.weather\\.> \\(PAMIR_NATS\\)";
    const lost = "; until that changes, packets through the server are lost\n";

    it.each([
      ["publish", "publish to", configOf(allow("l.>"), allow(">"))],
      ["subscribe", "subscribe to", configOf(allow(">"), allow("l.>"))],
    ])("a node that may no longer %s says so, once, and goes on where it may again", async (_, verb, config) => {
      const text = (node: number): string => `pamir: node ${node}: ${denial(verb, `n\\.`)}${lost}`;
      const err = await changed(config, [new RegExp(text(0)), new RegExp(text(1))]);
      for (const node of [0, 1]) expect(err.match(new RegExp(text(node), "g"))).toHaveLength(1);
    });

    it("a launcher says so, too", async () => {
      const text = `pamir run: ${denial("subscribe to", "l\\.")}; until that changes, no launcher hears this one\n`;
      await changed(configOf(allow(">"), allow("n.>")), [new RegExp(`${text}[^]*${text}`)]);
    });

    it("a user whose password is another one now", async () => {
      const refused =
        "NATS at 127\\.0\\.0\\.1:\\d+: the server refuses this process's user, token or credentials: .*\\(PAMIR_NATS\\)";
      const texts = [0, 1].map((node) => new RegExp(`pamir: node ${node}: ${refused}${lost}`));
      await changed(configOf(allow(">"), allow(">"), "other"), [...texts, new RegExp(`pamir run: ${refused}`)]);
    });
  },
);

describe.skipIf(!hasServer)("credentials", { concurrent: true }, () => {
  const account = nkeys.createAccount();
  /** A file of credentials. */
  function fileOf(name: string, issuer: nkeys.KeyPair, mode = 0o400): string {
    const path = join(inject("folder"), `${name}.creds`);
    writeFileSync(path, credentialsBy(issuer), { mode });
    return path;
  }
  const server = hasServer ? serverWith(serverOfAccount(account)) : undefined;

  it("of an account that the server knows", async () => {
    const { url } = (await server) as NatsServer;
    await succeeds(url, { PAMIR_NATS_CREDS: fileOf("right", account) });
  });

  it.each(["of another account", "none"])("%s: refused", async (which) => {
    const { url } = (await server) as NatsServer;
    const env = which === "none" ? {} : { PAMIR_NATS_CREDS: fileOf("other", nkeys.createAccount()) };
    const text = "the server refuses this process's user, token or credentials: PAMIR_NATS and PAMIR_NATS_CREDS";
    expect(await refused(url, env)).toMatch(new RegExp(`^pamir: NATS at [\\d.:]+: ${text} \\(PAMIR_NATS\\)\\n$`));
  });

  it("a file that other users may read", async () => {
    const { url } = (await server) as NatsServer;
    const err = await refused(url, { PAMIR_NATS_CREDS: fileOf("open", account, 0o644) });
    expect(err).toContain("has mode 0644: other users may use it; make it 0600 or 0400 (PAMIR_NATS)");
  });
});

describe.skipIf(!hasServer || !OPENSSL)("TLS", { concurrent: true }, () => {
  const own =
    hasServer && OPENSSL
      ? certificates(join(inject("folder"), "tls-own"), "IP:127.0.0.1")
      : { ca: "", cert: "", key: "" };
  const server = hasServer && OPENSSL ? serverWith(tlsPart(own)) : undefined;
  const urlOf = async (scheme: string): Promise<string> =>
    ((await server) as NatsServer).url.replace(/^\w+:/, `${scheme}:`);

  it.each(["tls", "nats"])("%s:// with the right authority", async (scheme) => {
    await succeeds(await urlOf(scheme), { PAMIR_NATS_CA: own.ca });
  });

  it.each(["tls", "nats"])("%s:// without an authority: a certificate that nothing vouches for", async (scheme) => {
    expect(await refused(await urlOf(scheme))).toMatch(
      /^pamir: NATS at [\d.:]+: the server's certificate is not trusted \(.+\): PAMIR_NATS_CA names a file of authorities \(PAMIR_NATS\)\n$/,
    );
  });

  it("another authority", async () => {
    const { ca } = certificates(join(inject("folder"), "tls-other"), "IP:127.0.0.1");
    expect(await refused(await urlOf("tls"), { PAMIR_NATS_CA: ca })).toMatch(
      /the server's certificate is not trusted \(/,
    );
  });

  it("a certificate of another host", async () => {
    const elsewhere = certificates(join(inject("folder"), "tls-elsewhere"), "DNS:nats.example.org");
    const { url } = await serverWith(tlsPart(elsewhere));
    const err = await refused(url.replace(/^\w+:/, "tls:"), { PAMIR_NATS_CA: elsewhere.ca });
    expect(err).toMatch(/the server's certificate is not trusted \(.*127\.0\.0\.1.*\)/);
  });

  it("a server that wants a certificate of each client", async () => {
    const { url } = await serverWith(tlsPart(own, `verify: true, ca_file: ${JSON.stringify(own.ca)}`));
    const err = await refused(url.replace(/^\w+:/, "tls:"), { PAMIR_NATS_CA: own.ca });
    expect(err).toMatch(
      /^pamir: NATS at [\d.:]+: the server wants a certificate of each client \(verify\), and .* \(PAMIR_NATS\)\n$/,
    );
  });

  it("tls:// where the server has none", async () => {
    const { url } = await serverWith("");
    expect(await refused(url.replace(/^\w+:/, "tls:"))).toMatch(/: take nats:\/\/ \(PAMIR_NATS\)\n$/);
  });
});

describe.skipIf(!hasServer)("settings of servers", { timeout: 120_000, concurrent: true }, () => {
  // Packets are at most as long; what nodes tell each other at the start goes in pieces.
  it.each([1232, 1300, 8192])("messages of %d bytes at most", async (most) => {
    const { url } = await serverWith(`max_payload: ${most}`);
    await succeeds(url);
  });

  it("a server that ends in good order: its clients go to another one, and nothing is lost", async () => {
    const cluster = await natsCluster(2, { config: 'lame_duck_grace_period: "1s"' });
    servers.push(...cluster);
    const [leaving, other] = cluster as [NatsServer, NatsServer];
    const job = newJob();
    const args = ["--nodes", "2", "-n", "2", "-x", 'PAMIR_OPTIONS={"silence":60000}', TRAFFIC, "250", "40"];
    const nodes = [leaving, other].map(({ url }) => startLauncher(url, job, args, THROUGH));
    await Promise.all(nodes.map(({ child }) => said(child, "begins")));
    const left = leaving.lameDuck();
    await delay(500);
    // It takes no more clients.
    const [ended] = await Promise.all([Promise.all(nodes.map((one) => one.ended)), left]);
    expect(ended.map(({ status, err }) => [status, err])).toEqual(ended.map(() => [0, ""]));
    expect(linesOf(...ended.map(({ out }) => out)).filter((line) => line.includes("all came"))).toHaveLength(2);
    expect(leaving.log).toMatch(/lame duck/i);
  });
});
