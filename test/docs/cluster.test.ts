// docs/cluster.md and examples/cluster/: each file is read by a parser or a program that users have, and its command is run.
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { afterAll, describe, expect, inject, it } from "vitest";
import WebSocket from "ws";
import { parseAllDocuments } from "yaml";
import { OPTIONS, split } from "../../src/cli/run/options.js";
import { connectNats } from "../../src/nats/connection.js";
import { natsPlace } from "../../src/nats/place.js";
import { freePort } from "../support/free-port.js";
import { keyFile, linesOf, startProgram } from "../support/nats-launcher.js";
import { NATS_SERVER, NatsServer } from "../support/nats-server.js";
import { cli } from "../support/run-command.js";
import { find } from "../support/ssh.js";

const FOLDER = "examples/cluster";
const TRAFFIC = fileURLToPath(new URL("../cli/programs/nats-traffic.js", import.meta.url));
const page = readFileSync("docs/cluster.md", "utf8");
const names = readdirSync(FOLDER).sort();
const textOf = (name: string): string => readFileSync(join(FOLDER, name), "utf8");
const PASSWORDS = { WEATHER_PASSWORD: "w0r1d", OCEAN_PASSWORD: "o0c3an", PAGES_PASSWORD: "p0ages" };

/** Whatever YAML has. */
// biome-ignore lint/suspicious/noExplicitAny: a tree of another program's form
type Tree = any;

/** Kubernetes and Compose read YAML 1.1: 0400 is octal, and "<<" merges. */
function documentsOf(name: string): Tree[] {
  const documents = parseAllDocuments(textOf(name), { version: "1.1", uniqueKeys: true });
  expect([...documents].flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
  return [...documents].map((one) => one.toJS() as Tree);
}

/** A text with its variables, as $(NAME), ${NAME} or ${NAME:?}. */
const expanded = (text: string, variables: Readonly<Record<string, string>>): string =>
  text.replace(/\$[({](\w+)(?::\?)?[)}]/g, (_, name: string) => variables[name] ?? expect.fail(name));

interface Command {
  readonly words: readonly string[];
  readonly values: Readonly<Record<string, unknown>>;
}

/** A command line of `pamir run`, whose options are those that there are. */
function commandOf(words: readonly string[], variables: Readonly<Record<string, string>>): Command {
  const [program, verb, ...args] = words.map((word) => expanded(word, variables));
  expect(program).toMatch(/(^|\/)node_modules\/\.bin\/pamir$/);
  expect(verb).toBe("run");
  const { own, app, rest } = split(args);
  expect([app, rest]).toEqual(["app.js", []]);
  const { values } = parseArgs({ args: own, options: OPTIONS });
  return { words: own, values };
}

/** Checks that a command has its job, so many nodes, and a server whose user has the rights of the job. */
function checkCommand({ values }: Command, nodes: number, nats: unknown = values.nats): void {
  expect(Number(values.nodes)).toBe(nodes);
  expect(Number(values.tasks) % nodes).toBe(0);
  const place = natsPlace({ nats: nats as string, job: values.job as string });
  expect(place).toMatchObject({ job: "weather", user: "weather" });
  expect(textOf("permissions.conf")).toContain(`publish: "pamir.${place.job}.>", subscribe: "pamir.${place.job}.>"`);
}

const servers: NatsServer[] = [];
afterAll(() => Promise.all(servers.map((server) => server.close())));
async function serverWith(config: string): Promise<{ readonly nats: string; readonly url: string; log(): string }> {
  const server = await NatsServer.start({ config, env: PASSWORDS });
  servers.push(server);
  const { url } = server;
  return { url, nats: url.replace("://", `://weather:${PASSWORDS.WEATHER_PASSWORD}@`), log: () => server.log };
}

/** Runs a command as each of its nodes does, at another server. */
async function runNodes(
  { nats, log }: { readonly nats: string; readonly log: () => string },
  { words, values }: Command,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const args = words.map((word) => word.replace(/nats:\/\/.*/, nats));
  const one = { ...env, PAMIR_KEY_FILE: keyFile(), ...(env.PAMIR_NATS && { PAMIR_NATS: nats }) };
  const all = Array.from(
    { length: Number(values.nodes) },
    () => startProgram([cli, "run", ...args, TRAFFIC, "10"], one).ended,
  );
  const ended = await Promise.all(all);
  expect(ended.map(({ status, err }) => [status, err])).toEqual(ended.map(() => [0, ""]));
  const lines = linesOf(...ended.map(({ out }) => out)).filter((line) => line.includes("all came"));
  expect(lines).toHaveLength(Number(values.tasks));
  // The server had nothing to refuse: no inbox, no other subject.
  expect(log()).not.toMatch(/violation/i);
}

it("the page names each file, and each file names the page", () => {
  expect(names).toHaveLength(9);
  for (const name of names) {
    expect(page).toContain(`(../${FOLDER}/${name})`);
    expect(textOf(name)).toMatch(/docs\/cluster\.md|pamir-node\.service/);
  }
});

it("the pages have a row for each variable of pamir that the files set", () => {
  const rows = [page, readFileSync("docs/machines.md", "utf8")]
    .join("\n")
    .split("\n")
    .filter((line) => line.startsWith("| `"));
  const variables = new Set(names.flatMap((name) => textOf(name).match(/\bPAMIR_[A-Z_]+/g) ?? []));
  expect(variables.size).toBeGreaterThan(3);
  expect([...variables].filter((name) => !rows.some((row) => row.includes(`\`${name}\``)))).toEqual([]);
});

it("the page has a row for each variable of a NATS server that is read", () => {
  const read = readFileSync("src/nats/variables.ts", "utf8") + readFileSync("src/link/registry.ts", "utf8");
  const variables = new Set(read.match(/\bPAMIR_(NATS\w*|JOB)/g) ?? []);
  expect(variables.size).toBeGreaterThan(3);
  for (const name of variables) expect(page).toContain(`| \`${name}\` |`);
});

describe.skipIf(NATS_SERVER === undefined)("permissions.conf", () => {
  it("gives each job its own subjects alone, and a real server takes it", async () => {
    const text = textOf("permissions.conf");
    const users = [...text.matchAll(/user: (\w+)\n\s+password: \$(\w+)\n\s+permissions: \{ (.*) \}/g)];
    expect(users.map(([, user, , permissions]) => [user, permissions])).toEqual(
      ["weather", "ocean"].map((job) => [job, `publish: "pamir.${job}.>", subscribe: "pamir.${job}.>"`]),
    );
    const server = await serverWith(text);
    const nats = server.url.replace("://", `://ocean:${PASSWORDS.OCEAN_PASSWORD}@`);
    const args = [cli, "run", "--nats", nats, "--job", "weather", "--nodes", "2", "-n", "2", TRAFFIC, "1"];
    const { status, err } = await startProgram(args, { PAMIR_KEY_FILE: keyFile() }).ended;
    expect([status, err]).toEqual([2, expect.stringMatching(/does not let this process .* pamir\.weather\.>/)]);
  });
});

describe.skipIf(NATS_SERVER === undefined)("websocket.conf", () => {
  it("admits pages of one origin, and their user nowhere else, and a real server takes it", async () => {
    const text = textOf("websocket.conf");
    expect(text).toMatch(/^ {2}port: 8443\n {2}tls \{ cert_file: "[\w/.]+", key_file: "[\w/.]+" \}$/m);
    const here = text.replace(/port: 8443\n.*$/m, 'listen: "127.0.0.1:-1"\n  no_tls: true');
    const server = await NatsServer.start({ config: here, env: PASSWORDS });
    servers.push(server);
    const first = (origin?: string): Promise<string> =>
      new Promise((resolve) => {
        const socket = new WebSocket(server.websocket, { origin });
        socket.on("error", ({ message }) => resolve(message));
        socket.on("message", (bytes) => {
          resolve(String(bytes).slice(0, 5));
          socket.close();
        });
      });
    expect(await first("https://example.org")).toBe("INFO ");
    expect(await first("https://example.com")).toMatch(/403/);
    const place = natsPlace({
      nats: server.url.replace("://", `://pages:${PASSWORDS.PAGES_PASSWORD}@`),
      job: "weather",
    });
    await expect(connectNats(place, { name: "page" })).rejects.toThrow("the server refuses this process's user");
    const node = natsPlace({ nats: server.url.replace("://", `://weather:${PASSWORDS.WEATHER_PASSWORD}@`) });
    await (await connectNats(node, { name: "node" })).close();
  });
});

describe("compose.yaml", { timeout: 120_000 }, () => {
  const [{ services, secrets }] = documentsOf("compose.yaml") as [Tree];
  const hosts = Object.keys(services).filter((name) => name !== "node");
  const { node } = services;
  const command = commandOf(node.command, PASSWORDS);

  it("has three servers that know each other, and four nodes that know the servers", () => {
    expect(hosts).toEqual(["nats-0", "nats-1", "nats-2"]);
    expect(node.deploy.replicas).toBe(4);
    checkCommand(command, 4);
    expect(natsPlace({ nats: command.values.nats as string }).servers).toEqual(hosts.map((host) => `${host}:4222`));
    for (const host of hosts) {
      const { command: words, environment } = services[host];
      expect(words).toContain(`--routes=${hosts.map((one) => `nats://${one}:6222`).join(",")}`);
      expect(Object.keys(environment)).toEqual(["WEATHER_PASSWORD", "OCEAN_PASSWORD"]);
    }
    expect(node.depends_on).toEqual(hosts);
    expect(node.environment.PAMIR_KEY_FILE).toBe(`/run/secrets/${node.secrets[0]}`);
    expect(secrets[node.secrets[0]]).toEqual({ file: "./job.key" });
    // The key file belongs to the user of the container.
    expect(node.user).toMatch(/^\$\{JOB_USER:\?\}$/);
  });

  it.skipIf(NATS_SERVER === undefined)("its servers and nodes run, at addresses of this machine", async () => {
    const log = join(mkdtempSync(join(inject("folder"), "compose-")), "log");
    const ports = await Promise.all(hosts.map(async () => ({ client: await freePort(), route: await freePort() })));
    const here = (text: string): string =>
      hosts.reduce(
        (left, host, i) =>
          left
            .replace(`${host}:4222`, `127.0.0.1:${ports[i]?.client}`)
            .replace(`${host}:6222`, `127.0.0.1:${ports[i]?.route}`),
        text.replace("/etc/nats/permissions.conf", join(FOLDER, "permissions.conf")),
      );
    const children = hosts.map((host, i) => {
      const words = services[host].command.map((word: string) =>
        here(word).replace("0.0.0.0:6222", `127.0.0.1:${ports[i]?.route}`),
      );
      const own = [`--port=${ports[i]?.client}`, "--addr=127.0.0.1", `--log=${log}-${i}`];
      return spawn(NATS_SERVER as string, [...words, ...own], {
        env: { ...process.env, ...PASSWORDS },
        stdio: "ignore",
      });
    });
    const logs = (): string[] =>
      hosts.map((_, i) => (existsSync(`${log}-${i}`) ? readFileSync(`${log}-${i}`, "utf8") : ""));
    try {
      // Each has a route to both others.
      await expect
        .poll(() => logs().map((text) => (text.match(/Route connection created/g)?.length ?? 0) >= 2), {
          timeout: 60_000,
        })
        .toEqual([true, true, true]);
      const words = command.words.map(here);
      await runNodes(
        { nats: words.find((word) => word.startsWith("nats://")) as string, log: () => logs().join("") },
        command,
        {},
      );
    } finally {
      for (const child of children) child.kill("SIGKILL");
    }
  });

  const compose = find("docker") !== undefined && spawnSync("docker", ["compose", "version"]).status === 0;
  if (!compose) console.log("not run: docker compose config: the plugin is not installed");
  it.skipIf(!compose)("docker compose takes it", () => {
    const env = { ...process.env, ...PASSWORDS, JOB_USER: "1000" };
    const args = ["compose", "-f", join(FOLDER, "compose.yaml"), "config", "--quiet"];
    const { status, stderr } = spawnSync("docker", args, { env, encoding: "utf8" });
    expect([status, stderr]).toEqual([0, ""]);
  });
});

describe.each([
  ["statefulset.yaml", "StatefulSet"],
  ["jobset.yaml", "JobSet"],
])("%s", { timeout: 120_000 }, (name, kind) => {
  const documents = documentsOf(name);
  const { spec } = documents.find((one) => one.kind === kind);
  const job = kind === "JobSet" ? spec.replicatedJobs[0].template.spec : undefined;
  const template = (job ?? spec).template;
  const pod = template.spec;
  const [container] = pod.containers;
  const command = commandOf([...container.command, ...container.args], PASSWORDS);
  const env = Object.fromEntries(container.env.map((one: Tree) => [one.name, one.value]));

  it("has as many pods as the command has nodes", () => {
    if (job === undefined) {
      expect(spec.replicas).toBe(4);
      // Each pod waits for all others.
      expect(spec.podManagementPolicy).toBe("Parallel");
      expect(template.metadata.labels).toMatchObject(spec.selector.matchLabels);
      const service = documents.find((one) => one.kind === "Service");
      expect([service.metadata.name, service.spec.clusterIP]).toEqual([spec.serviceName, "None"]);
      expect(template.metadata.labels).toMatchObject(service.spec.selector);
    } else {
      expect(spec.replicatedJobs[0].replicas).toBe(1);
      expect([job.completions, job.parallelism, job.completionMode]).toEqual([4, 4, "Indexed"]);
      expect([job.backoffLimit, pod.restartPolicy]).toEqual([0, "Never"]);
    }
    checkCommand(command, 4);
    expect(natsPlace({ nats: command.values.nats as string }).servers).toEqual(["nats:4222"]);
  });

  it("gives the key to the container's user alone, with mode 0400", () => {
    const volume = (one: string): Tree => pod.volumes.find((each: Tree) => each.name === one);
    const [init] = pod.initContainers;
    const mounts = Object.fromEntries(init.volumeMounts.map((one: Tree) => [one.name, one.mountPath]));
    expect(volume("secret").secret).toMatchObject({ secretName: "weather", defaultMode: 0o400 });
    expect(volume("key").emptyDir.medium).toBe("Memory");
    expect(init.command).toEqual(["install", "-m", "0400", `${mounts.secret}/job.key`, `${mounts.key}/job.key`]);
    expect(container.volumeMounts).toEqual([{ name: "key", mountPath: mounts.key, readOnly: true }]);
    expect(env.PAMIR_KEY_FILE).toBe(`${mounts.key}/job.key`);
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: pod.securityContext.fsGroup });
    // With fsGroup, a file of a secret has mode 0440: the copy is taken, the file is not.
    const folder = mkdtempSync(join(inject("folder"), "pod-"));
    const [from, to] = [join(folder, "secret"), join(folder, "job.key")];
    copyFileSync(keyFile(), from);
    chmodSync(from, 0o440);
    const [tool, ...args] = init.command as string[];
    expect(spawnSync(tool as string, [...args.slice(0, 2), from, to]).status).toBe(0);
    const keyIs = (path: string) =>
      spawnSync(
        process.execPath,
        [cli, "run", "--nats", "nats://127.0.0.1:1", "--job", "a", "--nodes", "2", "--start-timeout", "1", TRAFFIC],
        {
          env: { ...process.env, PAMIR_KEY_FILE: path },
          encoding: "utf8",
        },
      ).stderr;
    expect(keyIs(from)).toContain("has mode 0440: other users may use it");
    expect(keyIs(to)).toContain("no server listens there");
  });

  it.skipIf(NATS_SERVER === undefined)("its nodes run at a server with the users of nats-values.yaml", async () => {
    const [values] = documentsOf("nats-values.yaml") as [Tree];
    const { cluster, jetstream, websocket, merge } = values.config;
    expect([cluster, jetstream, websocket]).toEqual([
      { enabled: true, replicas: 3 },
      { enabled: false },
      { enabled: false },
    ]);
    // As the chart makes the file: JSON, without the quotes of "<< … >>".
    const config = JSON.stringify(merge, null, 1).replace(/"<< (.*?) >>"/g, "$1");
    expect(config).toContain("$WEATHER_PASSWORD");
    expect(values.container.env).toEqual({
      WEATHER_PASSWORD: container.env.find((one: Tree) => one.name === "WEATHER_PASSWORD") && {
        valueFrom: container.env[0].valueFrom,
      },
    });
    await runNodes(await serverWith(config.replace(/^\{|\}$/g, "")), command, {});
  });
});

describe("systemd", { timeout: 120_000 }, () => {
  const unit = textOf("pamir-node.service");
  const setting = (name: string): string[] =>
    [...unit.matchAll(new RegExp(`^${name}=(.*)$`, "gm"))].map(([, text]) => text as string);
  const variables = Object.fromEntries(
    [...textOf("weather.env").matchAll(/^(\w+)=(.*)$/gm)].map(([, name, text]) => [name as string, text as string]),
  );
  const [exec = ""] = setting("ExecStart");
  const command = commandOf(exec.split(" "), variables);

  it("the unit's command has the job's name, nodes and tasks by its file of variables", () => {
    expect(Object.keys(variables)).toEqual(["PAMIR_NATS", "PAMIR_JOB", "PAMIR_NODES", "TASKS"]);
    checkCommand(command, 4, variables.PAMIR_NATS);
    // Other users of the machine see the options.
    expect(exec).not.toMatch(/PAMIR_NATS|nats:/);
  });

  it("the key goes from the credential to a file that the user alone may read", () => {
    const [directory] = setting("RuntimeDirectory");
    expect(setting("RuntimeDirectoryMode")).toEqual(["0700"]);
    expect(setting("LoadCredential")).toEqual(["job.key:/etc/pamir/job.key"]);
    const folders = { CREDENTIALS_DIRECTORY: "/credentials", RUNTIME_DIRECTORY: "/own" };
    expect(setting("ExecStartPre").map((line) => expanded(line, folders))).toEqual([
      "/usr/bin/install -m 0400 /credentials/job.key /own/job.key",
    ]);
    expect(setting("Environment")).toEqual([`PAMIR_KEY_FILE=%t/${directory}/job.key`]);
  });

  it.skipIf(NATS_SERVER === undefined)("its nodes run with the server in PAMIR_NATS", async () => {
    const few = commandOf(exec.split(" "), { ...variables, TASKS: "4" });
    await runNodes(await serverWith(textOf("permissions.conf")), few, variables);
  });

  const verify = find("systemd-analyze");
  if (verify === undefined) console.log("not run: systemd-analyze verify: it is not installed");
  const verified = (path: string): string[] => {
    const { stdout, stderr } = spawnSync(verify as string, ["verify", path], { encoding: "utf8" });
    return `${stdout}${stderr}`
      .split("\n")
      .filter((line) => /pamir-node\.service|nats-server\.service|pamir\.conf/.test(line));
  };

  it.skipIf(verify === undefined)("systemd-analyze finds the unit right", () => {
    const folder = mkdtempSync(join(inject("folder"), "unit-"));
    const path = join(folder, "pamir-node.service");
    const here = unit.replaceAll("/srv/weather/node_modules/.bin/pamir", "/bin/true").replace("/srv/weather", "/");
    writeFileSync(path, here);
    expect(verified(path)).toEqual([]);
    writeFileSync(path, here.replace("KillMode=mixed", "KillMode=all"));
    expect(verified(path).join()).toContain("Failed to parse kill mode");
  });

  const debian = "/lib/systemd/system/nats-server.service";
  it.skipIf(verify === undefined || !existsSync(debian))(
    "systemd-analyze finds the drop-in of Debian's server right",
    () => {
      const folder = mkdtempSync(join(inject("folder"), "drop-in-"));
      const path = join(folder, "nats-server.service");
      copyFileSync(debian, path);
      mkdirSync(`${path}.d`);
      const own = textOf("nats-server-drop-in.conf");
      writeFileSync(join(`${path}.d`, "pamir.conf"), own);
      expect(verified(path)).toEqual([]);
      writeFileSync(join(`${path}.d`, "pamir.conf"), own.replace("TimeoutStopSec=150", "TimeoutStopSec=long"));
      expect(verified(path).join()).toContain("Failed to parse time value");
    },
  );
});
