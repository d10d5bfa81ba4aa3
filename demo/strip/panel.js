// @ts-check
// The elements of the strip: canvas, buttons, sliders, legend, and the place for what is chosen.

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag @param {Record<string, string>} [attributes] @param {(Node | string)[]} [children]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, attributes = {}, children = []) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** @param {string} text @param {string} label what a screen reader says */
const button = (text, label) => make("button", { type: "button", "aria-label": label, title: label }, [text]);

/** @param {string} label */
function slider(label) {
  const input = make("input", { type: "range", min: "0", max: "1000", step: "any", value: "0" });
  return { input, row: make("label", { class: "strip-slider" }, [make("span", {}, [label]), input]) };
}

const LEGEND = [
  ["handler", "handler"],
  ["send", "send"],
  ["arrow", "message"],
  ["transfer", "put, get"],
  ["fence", "fence"],
  ["park", "asleep"],
  ["death", "end of a task"],
];

/** @param {HTMLElement} element */
export function makePanel(element) {
  const canvas = make("canvas", { role: "img", "aria-label": "Nothing runs yet." });
  const buttons = {
    pause: make("button", { type: "button" }, ["Hold"]),
    earlier: button("◀", "Earlier"),
    later: button("▶", "Later"),
    zoomIn: button("+", "Zoom in"),
    zoomOut: button("−", "Zoom out"),
    fit: make("button", { type: "button" }, ["Show all"]),
    previous: button("⇤", "Previous message"),
    next: button("⇥", "Next message"),
    tour: make("button", { type: "button" }, ["Step through an allreduce"]),
    save: make("button", { type: "button" }, ["Open in Perfetto"]),
  };
  const place = slider("Time");
  const steps = slider("Messages, step by step");
  steps.input.step = "1";
  const stepsText = make("output", { class: "strip-note" });
  const chosen = make("dl", { class: "strip-chosen" });
  const note = make("p", { class: "strip-note", role: "status" });
  const perfetto = make("p", { class: "strip-note", hidden: "" }, [
    "Saved. Open it in ",
    make("a", { href: "https://ui.perfetto.dev", target: "_blank", rel: "noopener" }, ["ui.perfetto.dev"]),
    " (Open trace file): an isolated page may not hand it over itself.",
  ]);
  const picture = make(
    "div",
    { class: "strip-picture", tabindex: "0", role: "group", "aria-label": "Picture of the tasks' events" },
    [canvas],
  );
  const legend = make(
    "ul",
    { class: "strip-legend" },
    LEGEND.map(([kind, text]) => make("li", {}, [make("i", { class: `strip-${kind}`, "aria-hidden": "true" }), text])),
  );
  const help = make("p", { class: "strip-note" }, [
    "Drag to scrub, pinch or turn the wheel to zoom (after a click), click an arrow. Keys: ← → scrub, + − zoom, Home shows all, space holds, P and N go from message to message, and from round to round of an allreduce.",
  ]);
  const tour = make("div", { class: "strip-tour", hidden: "" });
  const paused = make("div", { class: "strip-paused" }, [place.row, steps.row, stepsText]);
  element.classList.add("strip");
  const groups = [
    [buttons.pause],
    [buttons.earlier, buttons.later],
    [buttons.zoomIn, buttons.zoomOut, buttons.fit],
    [buttons.previous, buttons.next],
    [buttons.tour],
    [buttons.save],
  ].map((group) => make("div", { class: "strip-group" }, group));
  element.replaceChildren(
    make("div", { class: "strip-controls" }, groups),
    picture,
    legend,
    note,
    tour,
    paused,
    chosen,
    perfetto,
    help,
  );
  return {
    element,
    canvas,
    picture,
    buttons,
    place: place.input,
    steps: steps.input,
    stepsText,
    chosen,
    note,
    perfetto,
    tour,
    paused,
  };
}
/** @typedef {ReturnType<typeof makePanel>} Panel */
