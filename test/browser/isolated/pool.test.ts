// pamir/pool on a page that is isolated.
import { poolSuite } from "../../conformance/pool.suite.js";

poolSuite();
