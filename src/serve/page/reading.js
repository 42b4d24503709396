// reading.js: a report that lies below the server's root, inside the explorer. Its page is shown in a shadow tree, with its
// own style and without scripts; its links to files become downloads, and what it says of the explorer
// (class explorer, data-views) and of studies (pre, a command) become links to views.
import { file, save } from "./ask.js";
import { commandLine, parsed } from "./copy.js";
import { el } from "./dom.js";

const ALIEN = "script, style, link, meta, base, iframe, object, embed, form, title";

// "#phase?lambda=1.5", "Phase".
const viewLink = (view, text) => el("a", { href: `#${view}`, class: "view-link" }, text ?? view.replace(/\?.*/, "").replace(/^./, (c) => c.toUpperCase()));

function studyLink(line) {
  const [verb, options] = parsed(line);
  return /^study \w+$/.test(verb) ? viewLink(`studies?${new URLSearchParams({ study: verb, given: commandLine("", options).replace(/^cgam\s+/, "") })}`, "Start it in the explorer") : null;
}

// path: of its folder, "" for the root itself.
export async function reading(path) {
  const below = path ? `${path}/` : "", styles = [];
  const text = (await (await file(`${below}index.html`)).text()).replace(/<style>([^]*?)<\/style>/g, (_, style) => {
    styles.push(style); // parsed with the page, it would be rejected as inline
    return "";
  });
  const page = new DOMParser().parseFromString(text, "text/html");
  const sheet = new CSSStyleSheet(), host = el("article", { class: "report", "aria-label": page.title }), root = host.attachShadow({ mode: "open" });
  sheet.replaceSync(styles.join("\n").replaceAll(":root", ":host").replaceAll(/(^|[\n},])body\b/g, "$1.body"));
  page.querySelectorAll(ALIEN).forEach((one) => one.remove());
  for (const one of page.querySelectorAll(".explorer")) {
    const links = one.dataset.views.split(" ").map((view) => viewLink(view));
    one.replaceChildren("In the explorer: ", ...links.flatMap((link, k) => k ? [", ", link] : [link]));
  }
  for (const one of page.querySelectorAll("pre")) {
    const link = one.textContent.startsWith("cgam study ") ? studyLink(one.textContent) : null;
    if (link) one.after(el("p", { class: "explorer" }, link));
  }
  const body = el("div", { class: "body" });
  body.append(...page.body.childNodes);
  root.adoptedStyleSheets = [sheet];
  root.append(body);
  root.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]"), to = link?.getAttribute("href");
    if (!link || link.classList.contains("view-link")) return;
    if (/^[a-z]+:/i.test(to)) return void Object.assign(link, { target: "_blank", rel: "noopener noreferrer" });
    event.preventDefault();
    if (!to.startsWith("#")) return void save(below + to, to.split("/").at(-1));
    const place = root.getElementById(to.slice(1));
    place?.setAttribute("tabindex", "-1");
    place?.focus();
    place?.scrollIntoView();
  });
  return host;
}
