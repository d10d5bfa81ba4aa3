// The order of test files: what takes minutes begins first, so that one core does not wait for the other at the end. Vitest
// goes by sizes where it has no times, and the files of the explored schedules are small.
import { BaseSequencer, type TestSpecification } from "vitest/node";

const LONGEST = [
  /cli\/perf/,
  /interleaving\/interleaving/,
  /interleaving\/mutants/,
  /soak/,
  /examples/,
  /(api|conformance)\/processes/,
  /conformance\/(api|chains)/,
  /simulation\/(swarm|whole)/,
  /api\/(rma\.|rendezvous|engine\.|failure|kills|death)/,
  /property\/agent/,
];

const rank = ({ moduleId }: TestSpecification): number => {
  const place = LONGEST.findIndex((name) => name.test(moduleId));
  return place < 0 ? LONGEST.length : place;
};

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}
