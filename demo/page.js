// @ts-check
// The page: the tank, what is seen of it, and the card of the machine.
import { setUpCard } from "./card/card.js";
import { mountStrip } from "./strip/strip.js";
import { Hero, lacks, optionsOf } from "./tank/hero.js";

/** @param {string} id */
const element = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const hero = new Hero(optionsOf(new URLSearchParams(location.search)));
// For a look from the console: tank.water(), tank.tank.job.dump().
Object.assign(globalThis, { tank: hero });
const text = lacks();
element("where").hidden = text === "";
element("where").textContent = text;
void hero.start();
setUpCard(hero);
mountStrip(element("strip"), () => hero.tracedJob);
/** A part of the page that is loaded late, and says so if it can't be. @param {HTMLElement} said @param {() => Promise<void>} part */
async function load(said, part) {
  try {
    await part();
  } catch (error) {
    said.hidden = false;
    said.textContent = `This part can't be loaded: ${/** @type {Error} */ (error).message}. Reload the page once its server answers.`;
  }
}

void load(element("more-static"), async () => (await import("./more/section.js")).setUpMore(hero));

// Loaded once it is about to be seen: most visitors see the tank alone.
const place = element("c");
const seen = new IntersectionObserver(
  (entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    seen.disconnect();
    void load(place, async () => {
      const { mountC } = await import("./c/c-section.js");
      await mountC(place, hero);
    });
  },
  { rootMargin: "50%" },
);
// All of it: a visitor may come from below.
seen.observe(/** @type {HTMLElement} */ (place.closest("section")));
