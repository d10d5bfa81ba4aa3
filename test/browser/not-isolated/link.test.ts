// A link over the ports of a browser.
import "../isolated/conformance/globals.js";
import { beforeEach } from "vitest";
import { linkSuite } from "../../conformance/link.suite.js";
import { BROWSER_PARTS, isInPart } from "../../support/effort.js";
import { portsRig } from "../../support/ports-rig.js";

beforeEach(({ task, skip }) => skip(!isInPart(task.fullName, BROWSER_PARTS), "not in this run's part"));

async function settle(): Promise<void> {
  for (let turns = 0; turns < 10; turns++) await new Promise((done) => setTimeout(done));
}

linkSuite("ports", () => portsRig((accept) => accept(), settle));

linkSuite("ports, where both nodes may make a channel at the same time", () => portsRig(setTimeout, settle));
