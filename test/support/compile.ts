// Compiles the kernels' sources, as they are or changed.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import asc from "assemblyscript/asc";

/** A deliberate bug. */
export interface SourceMutant {
  readonly name: string;
  /** File of assembly/, or path of one in src/. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

const root = fileURLToPath(new URL("../..", import.meta.url));

/** A text with the mutant in it. */
export function mutated({ name, find, replace }: SourceMutant, text: string): string {
  if (text.split(find).length !== 2) throw new Error(`mutant "${name}": its place is not found`);
  return text.replace(find, () => replace);
}

/** Names of the mutants whose place is not found, or is not one: the sources have changed. */
export function misplacedOf(mutants: readonly SourceMutant[]): string[] {
  return mutants
    .filter(({ file, find }) => {
      const path = file.startsWith("src/") ? file : `assembly/${file}`;
      return readFileSync(`${root}/${path}`, "utf8").split(find).length !== 2;
    })
    .map(({ name }) => name);
}

/**
 * The wasm module of the sources with a mutant in them; without one: of the sources as they are.
 * @param entry file of assembly/ @param target one of asconfig.json
 */
export async function compileKernels(
  entry: string,
  target: string,
  mutant?: SourceMutant,
): Promise<Uint8Array<ArrayBuffer>> {
  let wasm: Uint8Array<ArrayBuffer> | undefined;
  const out = ["--outFile", "kernels.wasm", "--textFile", "kernels.wat"];
  const { error, stderr } = await asc.main([`assembly/${entry}`, "--target", target, ...out, "--baseDir", root], {
    readFile(name: string): string | null {
      let text: string;
      try {
        text = readFileSync(`${root}/${name}`, "utf8");
      } catch {
        return null;
      }
      return mutant === undefined || name !== `assembly/${mutant.file}` ? text : mutated(mutant, text);
    },
    writeFile(name: string, contents: string | Uint8Array): void {
      if (name.endsWith(".wasm")) wasm = contents as Uint8Array<ArrayBuffer>;
    },
    listFiles: () => [],
  });
  if (error || wasm === undefined) throw new Error(`${mutant?.name}: ${stderr.toString()}`);
  return wasm;
}
