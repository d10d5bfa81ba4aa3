// What Node says as "EMFILE": this process has no descriptor left. Without imports: the next file might not be opened.

const DESCRIPTORS_CODE = "PAMIR_DESCRIPTORS";

/** The text with its code, since ends of tasks and lines of commands are no errors. Opens no file. */
export function descriptorsText(): string {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft: number | string } } };
  const limit = userLimits?.open_files?.soft ?? "the";
  const text = `all ${limit} descriptors that this process may have are in use: raise ulimit -n, or start fewer processes`;
  return `${text} (${DESCRIPTORS_CODE})`;
}

/** The code of such a text, or undefined. */
export function codeIn(text: string | undefined): string | undefined {
  return text?.endsWith(`(${DESCRIPTORS_CODE})`) ? DESCRIPTORS_CODE : undefined;
}
