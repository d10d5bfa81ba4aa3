// The module that Node loads before the program of a task on a process's main thread: see src/cli/run/task-output.ts.

/** The variables of a task's process, with NODE_OPTIONS by which Node loads a module first. @param path undefined: none */
export function withPreload(env: NodeJS.ProcessEnv, path: string | undefined): NodeJS.ProcessEnv {
  // Bun and Deno have streams of their own, and read other variables.
  if (path === undefined || process.versions.bun !== undefined || process.versions.deno !== undefined) return env;
  const option = `--require ${JSON.stringify(path)}`;
  return { ...env, NODE_OPTIONS: env.NODE_OPTIONS ? `${option} ${env.NODE_OPTIONS}` : option };
}
