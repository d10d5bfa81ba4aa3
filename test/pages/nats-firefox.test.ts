// Pages of Firefox in a job at a NATS server.
import { describe } from "vitest";
import { NATS_SERVER } from "../support/nats-server.js";
import { isFirefoxSkipped, openFirefox } from "./firefox.js";
import { natsSuite } from "./nats-suite.js";

describe.skipIf(isFirefoxSkipped() || NATS_SERVER === undefined)("Firefox", () => natsSuite(() => openFirefox(true)));
