// Promises, whatever else `await` would wait for, and code that is loaded late.

/** A promise, and the function that resolves it. */
export function promise<T>(): [Promise<T>, (value: T) => void] {
  let settle: (value: T) => void;
  const made = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return [made, (value) => settle(value)];
}

/**
 * Loads code at its first use. All callers wait for one promise: with an import() each, a later caller could overtake an
 * earlier one, and a member of a geometry would do its calls in another order than the other members.
 * @param load an import(); the next caller tries again if it rejects
 */
export function loadOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}

const { then: NATIVE_THEN } = Promise.prototype;

/**
 * The promise of what a user's function has returned: for a promise of any realm, and for any other object or function with
 * a `then` that can be called. `then` is read once, and called in a microtask, as `await` does. The promise rejects if
 * reading or calling it throws.
 * @returns undefined: the value is not to be awaited
 */
export function promised(value: unknown): Promise<unknown> | undefined {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return undefined;
  try {
    const { then } = value as { then?: unknown };
    if (typeof then !== "function") return undefined;
    if (then === NATIVE_THEN) return Promise.resolve(value);
    return Promise.resolve().then(
      // The executor's functions take the first call alone, and what is thrown behind that call is dropped.
      () => new Promise((resolve, reject) => void Reflect.apply(then, value, [resolve, reject])),
    );
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Whether a value would be awaited. A promise that is refused for that becomes no unhandled rejection. */
export function isPromised(value: unknown): boolean {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return false;
  try {
    const { then } = value as { then?: unknown };
    if (typeof then !== "function") return false;
  } catch {
    return false;
  }
  try {
    // It works for promises of any realm, and throws for all else, which a call of `then` might begin.
    Reflect.apply(NATIVE_THEN, value, [undefined, () => {}]);
  } catch {}
  return true;
}
