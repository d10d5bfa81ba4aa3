// pamir/pool on a page that is not isolated.
import { poolSuite } from "../../conformance/pool.suite.js";

poolSuite();
