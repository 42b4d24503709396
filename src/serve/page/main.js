// main.js: which view is shown. A view is {name, title, words, defaults(world, values), open(place, state, world)}; open may
// return a function that ends it. state has the values, set(changes) to move them into the address, and restart(values).
import { here, takeToken } from "./ask.js";
import { el, say } from "./dom.js";
import * as state from "./state.js";
import { landscape } from "./landscape.js";
import { lens } from "./lens.js";
import { phase } from "./phase.js";
import { recall } from "./recall.js";
import { studies } from "./studies.js";
import { sweep } from "./sweep.js";

const views = [recall, landscape, phase, lens, sweep, studies];
const main = document.getElementById("main");
let world = null, end = null;

function tabs(now) {
  document.getElementById("views").replaceChildren(...views.map((view) =>
    el("li", {}, el("a", { href: `#${view.name}`, "aria-current": view === now ? "page" : undefined }, view.title))));
}

function open() {
  const { view: name, values } = state.read();
  const view = views.find((one) => one.name === name) ?? views[0];
  tabs(view);
  document.title = `${view.title} – cgam explorer`;
  end?.();
  end = null;
  const usual = view.defaults(world, values), now = state.withDefaults(values, usual);
  const place = el("section", { class: `view ${view.name}`, "aria-labelledby": "title" },
    el("h2", { id: "title" }, view.title), el("p", { class: "lead" }, view.words));
  main.replaceChildren(place);
  end = view.open(place, {
    values: now,
    set(changes) {
      Object.assign(now, changes);
      state.write(view.name, now, usual);
    },
    restart(values) {
      state.write(view.name, values, {});
      open();
    },
  }, world) ?? null;
  state.write(view.name, now, usual);
}

async function start() {
  takeToken();
  try {
    world = await here();
  } catch (error) {
    tabs(null);
    main.replaceChildren(el("div", { class: "error", role: "alert" }, el("strong", {}, error.code === 401 ? "A token is needed" : "No answer"),
      el("p", {}, error.message), el("p", { class: "hint" }, error.hint), el("button", { type: "button", onclick: start }, "Try again")));
    return;
  }
  document.getElementById("about").textContent = `cgam ${world.version ?? ""}. `;
  open();
}

addEventListener("hashchange", () => {
  if (location.hash === "#main") return main.focus();
  if (/token=/.test(location.hash)) return start();
  if (world) open();
  say(document.title);
});
start();
