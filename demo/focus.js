// @ts-check
// The keyboard's place on the page: a button that is disabled or goes away would lose it.

/** Whether no control has the focus. */
const isLost = () => document.activeElement === null || document.activeElement === document.body;

/** Gives an element the focus, if none has it. @param {HTMLElement | null} element */
export function catchFocus(element) {
  if (isLost()) element?.focus({ preventScroll: true });
}

/**
 * Disables a button for a while.
 * @param {HTMLButtonElement} button
 * @returns {() => void} enables it, with the focus if it had it, and the visitor has not gone on
 */
export function rest(button) {
  const had = document.activeElement === button;
  button.disabled = true;
  return () => {
    button.disabled = false;
    if (had) catchFocus(button);
  };
}
