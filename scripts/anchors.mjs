// The anchors of Markdown.

/** The anchor that GitHub gives to a heading, if no earlier one has the same. @param {string} heading without its marks */
export const slugOf = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
