// @ts-check
// The Tab key in an editor: an indent. Behind Escape it leaves the editor, as everywhere else: so no keyboard is caught in it.

const INDENT = "  ";

/** @param {HTMLTextAreaElement} editor */
export function bindTab(editor) {
  let leaves = false;
  editor.addEventListener("focus", () => {
    leaves = false;
  });
  editor.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leaves = true;
    else if (event.key === "Tab" && !event.shiftKey && !leaves && !editor.readOnly) {
      event.preventDefault();
      // The browser's own way of typing: undo takes it back.
      if (!document.execCommand("insertText", false, INDENT))
        editor.setRangeText(INDENT, editor.selectionStart, editor.selectionEnd, "end");
    } else if (event.key !== "Shift" && event.key !== "Tab") leaves = false;
  });
}
