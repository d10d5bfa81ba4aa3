// The variables that name a NATS server.
//
//   PAMIR_NATS        nats://host:4222, or several servers of one cluster with commas; tls:// demands TLS. A user and a
//                     password, or a token, may stand before "@"
//   PAMIR_JOB         the job's name: 1 to 64 letters, digits, "_" and "-"
//   PAMIR_NATS_CREDS  a file of credentials (JWT and nkey), which no other user may read
//   PAMIR_NATS_CA     a file of certificates in PEM which servers may have, in place of those that Node trusts
import { environment } from "../support/host.js";

/** Their values. natsPlace() checks them. */
export interface NatsVariables {
  readonly nats?: string | undefined;
  readonly job?: string | undefined;
  readonly credentials?: string | undefined;
  readonly authorities?: string | undefined;
}

/** The values in this process's environment. */
export function natsVariables(): NatsVariables {
  return {
    nats: environment("PAMIR_NATS"),
    job: environment("PAMIR_JOB"),
    credentials: environment("PAMIR_NATS_CREDS"),
    authorities: environment("PAMIR_NATS_CA"),
  };
}
