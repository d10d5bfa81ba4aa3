// The formulas of docs/collectives.md, as code.

/** The ones in the binary numerals of 0 to n - 1. */
function bits(n: number): number {
  let ones = 0;
  for (let number = 0; number < n; number++) ones += number.toString(2).replaceAll("0", "").length;
  return ones;
}

/** The most of a binomial tree that one member below the root has below itself, and itself. */
function subtree(n: number): number {
  return Math.max(...Array.from({ length: n - 1 }, (_, i) => Math.min((i + 1) & -(i + 1), n - i - 1)));
}

const FUNCTIONS = { bits, subtree, up: Math.ceil, down: Math.floor, log2: Math.log2 };

/** The value of a formula: of the bound, where it begins with "≤". */
export function evaluated(formula: string, symbols: Readonly<Record<string, number>>): number {
  const code = formula
    .replace("≤ ", "")
    .replace(/⌈log (\w+)⌉/g, "up(log2($1))")
    .replace(/\blog (\w+)/g, "log2($1)")
    .replace(/⌈([^⌉]+)⌉/g, "up($1)")
    .replace(/⌊([^⌋]+)⌋/g, "down($1)")
    .replaceAll("·", "*")
    .replaceAll("−", "-")
    .replaceAll("^", "**")
    .replace(/\[([^\]]+)\]/g, "Number($1)");
  const all = { ...symbols, ...FUNCTIONS };
  return new Function(...Object.keys(all), `return ${code}`)(...Object.values(all)) as number;
}
