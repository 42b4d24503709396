// copy.js: a request in the words of the command line, of Python and of C.
import { button, el, say } from "./dom.js";

const plain = (text) => /^[A-Za-z0-9_.,:/=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
// A bank by its id: the built-in one can be named anywhere, of others only the id is known here.
const outside = (options) => "bank" in options ? { ...options, bank: options.bank === "demo" ? "demo:" : options.bank } : options;
const given = (options) => Object.entries(outside(options)).filter(([, value]) => value !== undefined && value !== null && value !== false);

export function commandLine(verb, options) {
  const words = given(options).flatMap(([key, value]) =>
    value === true ? [`--${key}`] : [`--${key}`, plain(Array.isArray(value) ? value.join(",") : String(value))]);
  return ["cgam", verb, ...words].join(" ");
}

const python = (value) => value === true ? "True" : typeof value === "number" ? String(value) :
  Array.isArray(value) ? `[${value.map(python).join(", ")}]` : JSON.stringify(value);

export function pythonCode(verb, options) {
  const words = given(options).map(([key, value]) => `${key === "lambda" ? "lam" : key.replaceAll("-", "_")}=${python(value)}`);
  return `import cgam\n\ndoc = cgam.run(${[JSON.stringify(verb), ...words].join(", ")})\n`;
}

export function cCode(verb, options) {
  const text = JSON.stringify(Object.fromEntries(given(options)));
  const quoted = JSON.stringify(text);
  return `/* cc page.c $(pkg-config --cflags --libs --static cgam_ask) */
#include <cgam/cgam.h>
#include <stdio.h>

int main(void)
{
    cgam_env *env = NULL;
    cgam_document doc = {0};
    cgam_status status = cgam_env_new(NULL, &env);
    if (status == CGAM_OK)
        status = cgam_ask(env, ${JSON.stringify(verb)},
                          ${quoted},
                          NULL, &doc);
    if (status == CGAM_OK) puts(doc.text);
    else fprintf(stderr, "%s\\n", env ? cgam_env_message(env) : "no memory");
    cgam_text_free(env, doc.text);
    cgam_env_free(env);
    return status != CGAM_OK;
}
`;
}

// [verb, options] of a command line, as documents keep the one that made them.
export function parsed(line) {
  const words = [...line.matchAll(/(?:'[^']*'|\\.|[^\s'\\])+/g)].map(([word]) => word.replace(/'([^']*)'|\\(.)/g, "$1$2"));
  const first = words.findIndex((word) => word.startsWith("--")), options = {};
  for (let k = first; k >= 0 && k < words.length; k++) {
    const flag = k + 1 === words.length || words[k + 1].startsWith("--");
    options[words[k].slice(2)] = flag ? true : words[k + 1].trim() !== "" && Number.isFinite(Number(words[k + 1])) ? Number(words[k + 1]) : words[k + 1];
    if (!flag) k++;
  }
  return [words.slice(1, first < 0 ? undefined : first).join(" "), options];
}

async function put(text, what, shown) {
  shown.textContent = text;
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`);
    shown.dataset.note = `${what}, copied:`;
  } catch {
    shown.dataset.note = `${what}, to be copied:`;
    const all = document.createRange();
    all.selectNodeContents(shown);
    getSelection().removeAllRanges();
    getSelection().addRange(all);
  }
  shown.hidden = false;
}

// request(): [verb, options] of what is shown now, or null.
export function copyBar(request) {
  const shown = el("pre", { class: "copied", hidden: true, tabindex: 0 });
  const make = (what, form) => button(what, () => {
    const now = request();
    if (now) put(form(...now), what, shown);
  });
  return el("div", { class: "copy" },
    el("span", {}, "Copy as"), make("command line", commandLine), make("Python", pythonCode), make("C", cCode),
    button("link to this view", () => put(location.href, "link", shown)), shown);
}
