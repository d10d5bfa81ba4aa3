import { describe } from "vitest";
import { isFirefoxSkipped, openFirefox } from "./firefox.js";
import { webSuites } from "./web-suites.js";

describe.skipIf(isFirefoxSkipped())("Firefox", () => webSuites(openFirefox));
