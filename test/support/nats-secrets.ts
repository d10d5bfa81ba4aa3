// What a NATS server may ask of its clients, and show them: credentials of an operator's accounts, and certificates.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { nkeys } from "@nats-io/nats-core";

/** A token as NATS has them. */
function tokenOf(issuer: nkeys.KeyPair, subject: nkeys.KeyPair, nats: object): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = {
    jti: "1",
    iat: 1_700_000_000,
    iss: issuer.getPublicKey(),
    name: "test",
    sub: subject.getPublicKey(),
  };
  const text = `${part({ typ: "JWT", alg: "ed25519-nkey" })}.${part({ ...claims, nats: { version: 2, ...nats } })}`;
  return `${text}.${Buffer.from(issuer.sign(Buffer.from(text))).toString("base64url")}`;
}

const NO_LIMITS = { subs: -1, data: -1, payload: -1 };

/** The configuration of a server that knows one account. */
export function serverOfAccount(account: nkeys.KeyPair): string {
  const operator = nkeys.createOperator();
  const limits = { ...NO_LIMITS, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
  return [
    `operator: ${tokenOf(operator, operator, { type: "operator" })}`,
    "resolver: MEMORY",
    `resolver_preload { ${account.getPublicKey()}: ${tokenOf(operator, account, { type: "account", limits })} }`,
  ].join("\n");
}

/** The credentials of a new user of an account. */
export function credentialsBy(account: nkeys.KeyPair): string {
  const user = nkeys.createUser();
  const token = tokenOf(account, user, { type: "user", pub: {}, sub: {}, ...NO_LIMITS });
  const seed = new TextDecoder().decode(user.getSeed());
  const lines = ["-----BEGIN NATS USER JWT-----", token, "------END NATS USER JWT------", ""];
  lines.push("-----BEGIN USER NKEY SEED-----", seed, "------END USER NKEY SEED------", "");
  return lines.join("\n");
}

export const OPENSSL = spawnSync("openssl", ["version"]).status === 0;
if (!OPENSSL) console.log("not run: TLS, for which this machine lacks openssl");

/** Paths of files. */
export interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** An authority, and a certificate by it. @param at a folder for them @param name what the certificate names */
export function certificates(at: string, name: string): Certificates {
  mkdirSync(at, { recursive: true });
  const openssl = (...args: string[]): void => {
    execFileSync("openssl", args, { cwd: at, stdio: "ignore" });
  };
  const ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const subject = ["-subj", `/CN=authority ${basename(at)}`];
  openssl("req", "-x509", ...ec, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", ...subject);
  openssl("req", ...ec, "-keyout", "key.pem", "-out", "request", "-subj", "/CN=server");
  writeFileSync(join(at, "extensions"), `subjectAltName=${name}\n`);
  const by = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "extensions"];
  openssl("x509", "-req", "-in", "request", ...by, "-days", "2", "-out", "cert.pem");
  return { ca: join(at, "ca.pem"), cert: join(at, "cert.pem"), key: join(at, "key.pem") };
}

/** The part of a server's configuration that names a certificate. */
export const tlsPart = ({ cert, key }: Certificates, more = ""): string =>
  `tls { cert_file: ${JSON.stringify(cert)}, key_file: ${JSON.stringify(key)}, timeout: 10, ${more} }`;
