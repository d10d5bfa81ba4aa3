/** A promise, and the function that resolves it. */
export function promise<T>(): [Promise<T>, (value: T) => void] {
  let settle: (value: T) => void;
  const made = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return [made, (value) => settle(value)];
}
