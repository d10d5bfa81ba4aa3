import { describe } from "vitest";
import { cSuite } from "./c-suite.js";
import { isFirefoxSkipped, openFirefox } from "./firefox.js";

describe.skipIf(isFirefoxSkipped())("Firefox", () => cSuite(openFirefox));
