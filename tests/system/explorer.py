"""The explorer in a browser: each view is opened, moved by keyboard, and compared with what the command it copies prints."""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np
from browser import Browser, Server
from harness import CGAM, ask, check, close, finish, run
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from stories import Stories

pictures = os.path.join(os.environ.get("CGAM_BUILD", "."), "tests", "explorer")
os.makedirs(pictures, exist_ok=True)
data = os.environ.get("CGAM_DATA", "/nowhere") + "/models"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def outside(text):
    """With a file in place of the id that the server has for it."""
    return re.sub(r"""(--model |model="|model\\":\\")stories(?!\.)""", r"\1stories.gguf", text)


def timeless(doc):
    """Without what differs from run to run."""
    if isinstance(doc, dict):
        return {key: timeless(value) for key, value in doc.items() if not key.endswith("seconds") and key != "capture"}
    return [timeless(one) for one in doc] if isinstance(doc, list) else doc


def apart(a, b, where=""):
    """Where two documents first differ; "" where they do not."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return next(filter(None, (apart(a[key], b[key], f"{where}/{key}") for key in a)), "")
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return next(filter(None, (apart(x, y, f"{where}/{k}") for k, (x, y) in enumerate(zip(a, b)))), "")
    return "" if a == b else f"{where}: {str(a)[:200]} and {str(b)[:200]}"


def command(page):
    """The document of the command line that the page copies."""
    words = shlex.split(outside(page.copied("command line")))
    check(words[0] == "cgam", "a command line", words)
    return ask(*words[1:])


def copies(page):
    """Command line, Python and C of what is shown, run: one document."""
    doc, build = timeless(command(page)), os.environ["CGAM_BUILD"]
    with open("page.c", "w") as out:
        out.write(outside(page.copied("C")))
    needs = subprocess.run(["pkg-config", "--libs", "--static", f"{build}/cgam_ask.pc"], capture_output=True, text=True, check=True).stdout.split()
    ours = [f"{build}/lib/{os.path.basename(word)}" for word in needs if "libcgam" in word]  # the file speaks of the installed tree
    others = [word for word in needs if word.startswith("-l") or word == "-pthread"]
    subprocess.run(["cc", "-o", "page", "page.c", f"-I{os.environ['CGAM_SRC']}/include", *ours, *others], check=True)
    done = subprocess.run(["./page"], capture_output=True, text=True)
    found = done.stderr or apart(timeless(json.loads(done.stdout)), doc)
    check(not found, "C says what the command line says", found)
    with open("page.py", "w") as out:
        out.write(outside(page.copied("Python")) + "import json\nprint(json.dumps(doc))\n")
    done = subprocess.run(["/usr/bin/python3", "page.py"], env={**os.environ, "PYTHONPATH": f"{build}/python"}, capture_output=True, text=True)
    found = done.stderr or apart(timeless(json.loads(done.stdout)), doc)
    check(not found, "Python says what the command line says", found)
    return doc


def facts(page, caption):
    """{name: text} of a table of facts."""
    rows = page.driver.execute_script("""return [...document.querySelectorAll('table.facts')].filter(t => t.caption && t.caption.textContent.includes(arguments[0]))
        .flatMap(t => [...t.rows].map(r => [...r.cells].map(c => c.textContent)))""", caption)
    return {row[0]: row[1] for row in rows}


def same(text, value, words):
    """A number as the page shows it: rounded to five digits."""
    if value is None:
        return check(text == "–", words, text)
    return close(float(NUMBER.search(text).group()), value, 2e-4 * abs(value) + 1e-12, words)


def quiet(page, *allowed):
    """No word in the console, no request to anybody else."""
    found = [line for line in page.errors() if not any(word in line for word in allowed)]
    check(not found, "the console is empty", found)
    strangers = [url for url in page.requests() if not url.startswith((page.server.base, "blob:", "data:"))]
    check(not strangers, "nobody else is asked", strangers)


def recall(page):
    page.view("recall")
    before = page.shown()
    for step in range(4):
        doc = command(page)
        x = doc["queries"][0]
        check(page.text("#winner") == str(x["winner"]), "winner")
        same(page.text("#p"), x["p"], "p")
        shown = facts(page, "Results, and which")
        for name, key in (("N_eff, exp(entropy)", "neff_entropy"), ("gap", "gap"), ("p at least", "p_lower_bound"), ("energy", "energy_end"), ("contraction", "contraction")):
            same(shown[name], x[key], name)
        cells = page.driver.execute_script("return [...document.querySelectorAll('.bars tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
        for k, row in enumerate(cells):
            check(int(row[0]) == x["top"][k][0] and row[1] == x["top_names"][k], "memory of a bar", row)
            for text, value in zip(row[2:6], (x["top"][k][1], *(x["parts"][part][k] for part in ("evidence", "bias", "feedback")))):
                same(text, value, "part of a score")
        if step < 3:
            page.keys(f"input[type=range][name={('lambda', 'alpha', 'beta')[step]}]", *["ARROW_RIGHT"] * 7)
            before = page.shown(before)
            want = float(page.one(f"input[type=range][name={('lambda', 'alpha', 'beta')[step]}]").get_attribute("value"))
            want = np.exp(want) if step == 2 else want
            page.wait(lambda: abs(json.loads(page.shown())[("lambda", "alpha", "beta")[step]] - want) < 1e-3 * want, "the slider's place")
            before = page.shown()
    marks = json.loads(page.wait(lambda: page.one(".view").get_attribute("data-marks"), "marks"))
    asked = json.loads(before)
    page.wait(lambda: json.loads(page.one(".view").get_attribute("data-marks"))["lambda_unique_max"] is not None, "marks of now")
    time.sleep(0.5)
    marks = json.loads(page.one(".view").get_attribute("data-marks"))
    want = ask("inspect", "--bank", "demo:", "--alpha", asked["alpha"], "--beta", asked["beta"], "--lambda", asked["lambda"])
    close([marks["alpha_crit"], marks["lambda_unique_max"]], [want["alpha_crit"], want["lambda_unique_max"]], 1e-12, "marks are those of inspect")
    for name, keys in (("alpha", ("alpha_fold", "alpha_crit")), ("lambda", ("lambda_unique_max",)), ("beta", ("beta_unique_max",))):
        ticks = page.all(f"#marks-{name} .tick")
        check(len(ticks) == len(keys), "marks on a slider", name, [tick.get_attribute("title") for tick in ticks])
        for tick, key in zip(ticks, keys):  # from left to right
            same(tick.get_attribute("title").split(": ")[-1], marks[key], key)
    # a memory is found by the beginning of its name, by keyboard
    names = [one["name"] for one in ask("bank", "names", "--bank", "demo:", "--prefix", "s", "--top", 8)["names"]]
    check(len(names) > 2, "names to choose from", names)
    page.keys(".mixer:nth-of-type(2) [role=combobox]", "s")
    page.wait(lambda: [one.text.split(" (")[0] for one in page.all(".mixer:nth-of-type(2) [role=option]")] == names, "names that begin so")
    page.keys(".mixer:nth-of-type(2) [role=combobox]", "ARROW_DOWN", "ARROW_DOWN")
    chosen = page.one(".mixer:nth-of-type(2) [role=combobox]").get_attribute("aria-activedescendant")
    check(page.text(f"#{chosen}").startswith(names[2]) and page.one(f"#{chosen}").get_attribute("aria-selected") == "true", "the third of them")
    page.keys(".mixer:nth-of-type(2) [role=combobox]", "ENTER")
    page.wait(lambda: json.loads(page.shown())["context"] == f"rows:7+{names[2]}", "a context by name")
    page.keys(".mixer:nth-of-type(1) [role=combobox]", "41")
    page.wait(lambda: page.all(".mixer:nth-of-type(1) [role=option]"), "a memory by number")
    page.keys(".mixer:nth-of-type(1) [role=combobox]", "ENTER")
    page.wait(lambda: json.loads(page.shown())["query"].startswith("rows:7*0.5+23*0.5+"), "a query of three")
    doc = copies(page)["queries"][0]
    check(page.text("#winner") == str(doc["winner"]) and page.text("#winner-name") == doc["top_names"][0], "the winner by name")
    check("candle (7)" in page.text(".mixed"), "numbers have names beside them", page.text(".mixed"))
    link = page.copied("link to this view")
    here = facts(page, "Results, and which")
    page.view("phase")
    page.driver.get(link)
    page.wait(lambda: facts(page, "Results, and which") == here, "the link brings the view back")
    quiet(page)
    # what cannot be computed is told
    page.view("recall", alpha="1.4")
    page.wait(lambda: "alpha_crit" in page.text(".error"), "the error")
    quiet(page, "400")


def landscape(page):
    page.view("landscape")
    page.shown()
    doc = command(page)
    page.keys(".heat canvas", "ARROW_UP")  # from the middle, one up
    where = len(doc["x"]) // 2, len(doc["y"]) // 2 + 1
    free = ask(*[word for word in shlex.split(page.copied("command line"))[1:] if word not in ("--context", "rows:41")])
    same(NUMBER.search(page.text(".heat .reading").split("=")[1]).group(), free["energy"][where[1]][where[0]], "energy under the cursor")
    page.keys(".heat canvas", "ENTER")
    page.wait(lambda: page.all(".chart") and page.one(".chart").is_displayed(), "a flow")
    flow = command(page)["flows"][0]
    check(copies(page)["flows"][0] == flow, "the flow, copied")
    close([flow["x"][0], flow["y"][0]], [doc["x"][where[0]], doc["y"][where[1]]], 1e-5, "the start")
    check(f"to memory {flow['winner'][-1]}" in page.main(), "where it went")
    rows = page.driver.execute_script("return [...document.querySelectorAll('.stage table')].at(-1).innerText")
    check(all(str(a["winner"]) in rows for a in free["attractors"]), "rest points", rows)
    page.press("Flow again, switching at t = 4")
    page.wait(lambda: "--switch 4" in page.copied("command line"), "a flow that switches")
    switched = command(page)["flows"][0]
    check(switched["winner"][-1] == 41 and 4 in switched["time"], "the context takes the query along", switched["winner"][-1])
    link, here = page.copied("link to this view"), page.text(".chart .numbers")
    check("switch at 4" in here, "a mark at the switch", here[:200])
    page.view("phase")
    page.driver.get(link)
    page.wait(lambda: page.text(".landscape .chart .numbers") == here, "the link brings the flows back")
    check(command(page)["flows"][0] == switched, "and the last of them")
    # drawn as it runs, unless less motion is wished for, and switched on its way
    check(not page.one("button:disabled").is_enabled() and page.text("button:disabled") == "Switch the context now", "at its end at once")
    page.look(1280, 900, False, "no-preference")
    page.press("Clear the flows")
    page.driver.execute_script("""const button = [...document.querySelectorAll('button')].find(b => b.textContent === 'Switch the context now');
        requestAnimationFrame(function look() { if (button.disabled) requestAnimationFrame(look); else button.click(); })""")  # a flow takes two seconds
    page.keys(".two figure:nth-child(2) canvas", "ENTER")
    page.wait(lambda: "--switch" in page.copied("command line"), "a switch under way")
    words, live = shlex.split(page.copied("command line")), command(page)["flows"][0]
    check(0 < float(words[words.index("--switch") + 1]) < live["time"][-1] and float(words[words.index("--switch") + 1]) in live["time"], "a switch on the way", words)
    check("--context-then" not in words and f"with, to memory {live['winner'][-1]}" in page.main(), "where it goes then", live["winner"], page.main())
    page.wait(lambda: page.all("button:disabled"), "its end")
    page.look(1280, 900, False)
    before = page.shown()
    page.keys("input[type=range][name=lambda]", *["ARROW_RIGHT"] * 3)
    page.shown(before)
    quiet(page)


def phase(page):
    page.view("phase")
    before = page.shown()
    for step in range(2):
        curve = (command if step else copies)(page)["curves"][-1]
        shown = facts(page, "λ = ")
        same(shown["theorem's threshold"], curve["alpha_theory"], "theorem")
        same(shown["fold, median"], curve["fold_median"], "fold")
        same(shown["mean peak reaches ½"], curve["alpha_half"], "half")
        marks = dict(re.findall(r"(\w[^;:]*) at ([\d.]+)", page.text(".chart .marks").removeprefix("Marks: ")))
        for name, value in (("theorem", curve["alpha_theory"]), ("fold, median", curve["fold_median"]), ("mean peak ½", curve["alpha_half"]), ("α_crit", 1)):
            same(marks.get(name, "0"), value, f"mark of {name}")
        page.keys("input[type=range][name=lambda]", *["ARROW_RIGHT"] * 6)
        before = page.shown(before)
        page.wait(lambda: abs(json.loads(page.shown())["lambda"][-1] - float(page.one("input[type=range][name=lambda]").get_attribute("value"))) < 1e-9, "the slider's place")
    quiet(page)


def lens(page):
    page.view("lens", prompt="Once upon a time", compare="The cat")
    before = page.shown()
    doc = copies(page)
    page.keys(".heat canvas", "ARROW_UP")
    i, j = len(doc["tokens"]) // 2, len(doc["layers"]) // 2 + 1
    reading = page.text(".heat .reading")
    check(f"layer {doc['layers'][j]}:" in reading and doc["tokens"][i]["piece"].replace(" ", "␣") in reading, "the cell", reading)
    same(reading.split("N_eff ")[1], doc["neff"][j][i], "N_eff")
    same(reading.split("rank of the final answer ")[1], doc["rank_final"][j][i], "rank")
    check(doc["top"][j][i][0][1].replace(" ", "␣") in reading, "the top word")
    page.one("#shots").click()
    page.shown(before)
    check("Max" in json.loads(page.shown())["prompt"] and len(command(page)["tokens"]) > len(doc["tokens"]), "demonstrations before the text")
    quiet(page)


def sweep(page, root="root"):
    words = ("--exact", "--queries", 6, "--shots", "0,2", "--threads", 1, "--figures", "no", "--model", "stories.gguf", "--dataset", "antonyms")
    for name, more in (("antonyms", ("--intervals",)), ("plain", ())):
        code, _, err = run("lm", "sweep", *words, *more, "--out", f"{root}/{name}")
        check(code in (0, 1), "a sweep to show", err)
    grid = np.genfromtxt(f"{root}/antonyms/sweep_grid.csv", delimiter=",", names=True)
    steps = np.genfromtxt(f"{root}/antonyms/sweep_intervals.csv", delimiter=",", names=True)
    layers = sorted(set(grid["query_layer"]))
    i, j = layers[len(layers) // 2], layers[len(layers) // 2 + 1]
    doc = json.load(open(f"{root}/antonyms/sweep.json"))["shots"][-1]
    for name, asked, lam in (("antonyms", 0.5, 0.5), ("plain", 0.5, 0.5), ("plain", 0.57, 0.5), ("antonyms", 0.57, 0.57), ("antonyms", 3.3, 3.3)):
        for over in ("restricted", "full"):
            page.view("sweep", folder=name, over=over, **{"lambda": asked})
            check(json.loads(page.shown())["lambda"] == lam, "λ", page.shown())
            page.keys(".heat canvas", "ARROW_UP")
            reading = page.text(".heat .reading")
            check(f"context of layer {int(i)}, query of layer {int(j)}" in reading, reading)
            if lam == 0.5:
                want = grid[(grid["context_layer"] == i) & (grid["query_layer"] == j) & (grid["lambda"] == lam)][0][over]
            else:
                want = np.sum((steps["context_layer"] == i) & (steps["query_layer"] == j) & (steps["over_vocabulary"] == (over == "full")) &
                              (steps["lambda_from"] <= lam) & (lam < steps["lambda_to"])) / doc["queries"]
            close(float(NUMBER.search(reading.split(": ")[1]).group()), 100 * want, 0.051, "accuracy of a pair", name, over, lam)
    check(copies(page)["shots"][-1]["zero_shot"] == doc["zero_shot"], "the command that made it")
    same(facts(page, "Beside it")["zero-shot"], 100 * doc["zero_shot"]["full"], "zero-shot beside it")
    before = page.shown()
    page.keys("input[type=range][name=lambda]", "ARROW_RIGHT")
    check(json.loads(page.shown(before))["lambda"] > 3.3, "λ moves")
    # one is run here, and shown when it is done
    page.view("sweep", dataset="antonyms", queries=6)
    page.one("summary").click()
    page.press("Run")
    page.wait(lambda: "folder=sweep-antonyms" in page.driver.current_url and page.shown(), "a sweep that was run here", 60)
    check("lm sweep is done" in page.text("#done") and os.path.exists(f"{root}/sweep-antonyms/sweep_intervals.csv"), "what it left", page.main())
    check(command(page)["queries"] == json.load(open(f"{root}/sweep-antonyms/sweep.json"))["queries"], "the command that was run")
    quiet(page)


def studies(page, root="root"):
    page.view("studies", study="study competition")
    page.keys("input[name=trials]", "16", "TAB")
    page.press("Start")
    page.wait(lambda: page.all("#done"), "the study")
    page.wait(lambda: len(page.all(".gallery img")) >= 1, "its figures")
    loaded = page.driver.execute_script("return [...document.querySelectorAll('.gallery img')].every(i => i.complete && i.naturalWidth > 0)")
    check(loaded, "figures can be looked at")
    summary = json.load(open(f"{root}/competition/summary.json"))
    os.makedirs("again", exist_ok=True)
    os.chdir("again")
    copies(page)
    check(timeless(json.load(open("competition/summary.json"))) == timeless(summary), "the study, copied")
    os.chdir("..")
    check(summary["trials"] == 16 and "summary.json" in page.main(), "what it left")
    check(re.search(r"after [\d.e-]+ s", page.text("#done")) and page.driver.current_url.endswith("folder=competition"), "done", page.driver.current_url)
    quiet(page)


def goes_on(page):
    """A study goes on while other views are shown, until it is stopped."""
    page.view("studies", study="study competition", given="--trials+300000+--out+long+--figures+no")
    page.wait(lambda: page.all("input[name=trials]"), "the form")
    page.press("Start")
    share = lambda: float(page.one("progress").get_attribute("value") or 0)
    before = page.wait(share, "progress")
    page.view("phase")
    page.shown()
    page.view("studies")
    page.wait(lambda: share() > before, "it goes on")
    check("study competition into long" in page.main() and next(b for b in page.all("button") if b.text == "Start").get_attribute("disabled"), "one at a time", page.main())
    page.press("Stop")
    page.wait(lambda: "was stopped" in page.main(), "it stops")
    page.wait(lambda: next(b for b in page.all("button") if b.text == "Stop").get_attribute("disabled"), "nothing runs")
    quiet(page)


def report(page, root="root"):
    """A report is started, watched and read in the page; it links to views, and back; as a file it says how to open them."""
    page.view("studies", study="report", given="--scale+0.01+--figures+no")
    page.wait(lambda: page.one("input[name=scale]").get_attribute("value") == "0.01", "a form from a link")
    page.driver.execute_script("""window.told = []; new MutationObserver(() => told.push(document.querySelector('.stage').innerText))
        .observe(document.querySelector('.stage'), {childList: true, subtree: true, characterData: true})""")
    page.press("Start")
    page.wait(lambda: page.all("#done"), "the report", 60)
    told = page.driver.execute_script("return told")
    check(any(re.search(r"\w \d+ %", text) for text in told) and any(" s left" in text for text in told), "progress and time left", set(told))
    page.wait(lambda: page.all("table.claims"), "its claims")
    claims = open(f"{root}/report/claims.csv").read().strip().split("\n")
    check(len(page.all("table.claims tbody tr")) == len(claims) - 1, "all claims")
    page.press("Read the report")
    inside = "document.querySelector('.report').shadowRoot"
    page.wait(lambda: page.driver.execute_script(f"return {inside}.querySelectorAll('h2').length") > 5, "the report's page")
    words = page.driver.execute_script(f"return {inside}.querySelector('.explorer').textContent")
    check("cgam serve" not in words and "Phase" in words, "it knows that it is served", words)
    page.requests()
    page.driver.execute_script(f"{inside}.querySelector('a[href=\"claims.csv\"]').click()")
    page.wait(lambda: any(url.endswith("api/out/report/claims.csv") for url in page.requests()), "a file of it")
    page.driver.execute_script(f"{inside}.querySelector('a[href=\"#coupled\"]').click()")
    check(page.driver.execute_script(f"return {inside}.activeElement.id") == "coupled" and "#studies" in page.driver.current_url, "within the page")
    page.driver.execute_script(f"[...{inside}.querySelectorAll('a')].find(a => a.href.endsWith('#phase?lambda=1.5')).click()")
    page.wait(lambda: json.loads(page.shown())["lambda"] == [0, 1.5] and "#phase" in page.driver.current_url, "to a view")
    page.driver.back()
    page.wait(lambda: page.driver.execute_script(f"return {inside}.querySelectorAll('h2').length") > 5, "and back")
    page.driver.execute_script(f"[...{inside}.querySelectorAll('a')].find(a => a.textContent == 'Start it in the explorer' && a.href.includes('separation')).click()")
    page.wait(lambda: page.all("input[name=trials]") and page.one("input[name=trials]").get_attribute("value") == "60", "a study with its parameters")
    quiet(page)
    page.driver.get(f"file://{os.getcwd()}/{root}/report/index.html")
    words = page.driver.execute_script("return document.body.innerText")
    check("cgam serve --root . --open" in words, "how to open it", words[:300])
    page.errors()
    page.requests()
    page.driver.get(page.server.address)
    page.wait(lambda: page.all("nav a"), "the page")


CONTRAST = """
const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, k) => s + v * [0.2126, 0.7152, 0.0722][k], 0);
const parts = (text) => text.match(/[\\d.]+/g).map(Number);
const behind = (node) => { for (; node; node = node.parentElement) { const c = parts(getComputedStyle(node).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
return [...document.querySelectorAll('body *')].filter(n => [...n.childNodes].some(c => c.nodeType === 3 && c.data.trim()) && n.checkVisibility() && !n.disabled && !n.closest('.out-of-sight, .skip, canvas, title, option')).map(n => {
  const style = getComputedStyle(n), a = light(parts(n instanceof SVGElement ? style.fill : style.color)), b = light(behind(n));
  return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), n.tagName + ' ' + n.className + ' ' + n.textContent.slice(0, 40)];
}).filter(([ratio]) => ratio < 4.5)"""


def by_keyboard(page, name):
    """Tab reaches every control, and shows where it is."""
    wanted = page.driver.execute_script("""document.activeElement.blur(); window.scrollTo(0, 0); window.reached = new Set(); window.unseen = [];
        window.see = (e) => { reached.add(e.target); if (e.target.matches(':focus-visible') && parseFloat(getComputedStyle(e.target).outlineWidth) < 2) unseen.push(e.target.outerHTML); };
        document.addEventListener('focusin', see);
        window.wanted = [...document.querySelectorAll('a[href], button:not(:disabled), input, select, textarea, summary, [tabindex="0"]')].filter(n => n.checkVisibility() && n.tabIndex >= 0);
        return wanted.length""")
    ActionChains(page.driver).send_keys(Keys.TAB * (wanted + 3)).perform()
    missed = page.driver.execute_script("return wanted.filter(n => !reached.has(n)).map(n => n.outerHTML.slice(0, 200))")
    check(wanted > 5 and not missed, f"every control of {name} by keyboard", wanted, missed)
    unseen = page.driver.execute_script("document.removeEventListener('focusin', see); document.activeElement.blur(); return unseen")
    check(not unseen, f"where the focus is in {name}", unseen)


def everything_fits(page):
    """No view is wider than its window, no control is without a name, in any size and both kinds of light."""
    for width, height, dark in ((360, 740, False), (1280, 900, True), (1920, 1080, False)):
        page.look(width, height, dark)
        for name, values in (("recall", {}), ("landscape", {"starts": "0,0,0;1,-0.4,0"}), ("phase", {}), ("lens", {"compare": "The cat"}),
                             ("sweep", {"folder": "antonyms", "lambda": "0.5"}), ("studies", {"folder": "competition"})):
            page.view(name, **values)
            if name != "studies":
                page.shown()
            else:
                page.wait(lambda: page.all(".gallery img"), "figures")
            time.sleep(0.15)
            wide = page.driver.execute_script("return document.documentElement.scrollWidth")
            check(wide <= width, f"{name} fits into {width} pixels", wide)
            bare = page.driver.execute_script("""return [...document.querySelectorAll('input, select, textarea, button, canvas[tabindex]')].filter(n => !(n.labels?.length || n.getAttribute('aria-label') || n.textContent.trim()))
                .map(n => n.outerHTML)""")
            check(not bare, f"controls of {name} have names", bare)
            pale = page.driver.execute_script(CONTRAST)
            check(not pale, f"contrast in {name}", "dark" if dark else "light", pale)
            tall = page.driver.execute_script("return Math.min(document.documentElement.scrollHeight, 2400)")
            page.picture(f"{pictures}/{name}-{width}{'-dark' if dark else ''}.png", max(tall, height))
            page.look(width, height, dark)
            if dark:
                by_keyboard(page, name)
    quiet(page)


def guide():
    """Small pictures for docs/figures: explorer-*.png there are these, copied when the page has changed."""
    from PIL import Image

    for name, height in (("recall-1280-dark", 1080), ("landscape-1920", 1560), ("phase-1920", 760), ("lens-1280-dark", 1150),
                         ("sweep-1920", 1250), ("studies-1920", 1000)):
        picture = Image.open(f"{pictures}/{name}.png").convert("RGB")
        picture = picture.crop((0, 0, picture.width, min(picture.height, height)))
        picture = picture.resize((900, round(picture.height * 900 / picture.width)), Image.LANCZOS).quantize(96, method=Image.Quantize.MAXCOVERAGE, dither=Image.NONE)
        path = f"{pictures}/explorer-{name.split('-')[0]}.png"
        picture.save(path, optimize=True)
        check(os.path.getsize(path) < 90000, "a small picture", path, os.path.getsize(path))


def first_load(page, times=1 if len(sys.argv) < 2 else 15):
    """From an empty tab to the first recall on show: everything that was fetched on the way, and when it was there."""
    took = []
    for _ in range(times):
        page.driver.get("about:blank")
        page.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
        page.driver.get(page.server.base + "#recall")
        page.shown()
        page.wait(lambda: "candle" in page.text(".mixed"), "names")
        entries = page.driver.execute_script("""return performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
            .map(e => [e.name, e.transferSize, e.responseEnd])""")
        took.append(max(e[2] for e in entries if e[0].endswith("/recall")))
    size = sum(e[1] for e in entries)
    print(f"first load: {len(entries)} files, {size / 1000:.0f} kB; the first recall after {np.median(took):.0f} ms (least {min(took):.0f}, of {times})")
    check(10000 < size < 150e3, "what the first view needs is far less than 300 kB", size)
    check(sum("/api" not in e[0] for e in entries) <= 4 and sum("names" in e[0] for e in entries) == 1, "the page comes in few files", [e[0] for e in entries])


def any_bank(_):
    """What the views begin with suits banks of one, two or few memories, on one line, all zero, or far from unit norm."""
    r = np.random.default_rng(3)
    banks = {"one": r.normal(size=(1, 3)), "two": r.normal(size=(2, 5)), "some": r.normal(size=(23, 8)), "line": r.normal(size=(30, 1)),
             "large": 50 * r.normal(size=(500, 600)), "zero": np.zeros((3, 4))}
    for name, bank in banks.items():
        np.save(f"{name}.npy", bank)
    odd = ["x-ray", "it's", "7up", "a b", "é*;"]
    with open("some.names", "w") as out:
        out.writelines(f"{odd[k] if k < len(odd) else f'm{k}'}\n" for k in range(23))
    server = Server(*[word for name in banks for word in ("--bank", f"{name}.npy")])
    page = Browser(server)
    for name, bank in banks.items():
        for normalize in {"one": ["true"], "two": ["false"], "line": ["true"], "zero": ["false"]}.get(name, ["true", "false"]):
            page.view("recall", bank=name, normalize=normalize)
            asked = json.loads(page.shown())
            check(asked["bank"] == name, "a bank", asked)
            if bank.size < 1000:
                marks = json.loads(page.wait(lambda: page.one(".view").get_attribute("data-marks"), "marks"))
                most = float(page.one("input[name=alpha]").get_attribute("max"))
                close(most, 1.5 * (marks["alpha_crit"] or 1), 1e-9, "the slider reaches past alpha_crit")
            page.view("landscape", bank=name, normalize=normalize)
            if name == "zero":
                page.wait(lambda: "not span a plane" in page.text(".error"), "no plane through one point")
            elif bank.shape[1] > 1:
                page.shown()
            else:
                check("two numbers" in page.main(), "no plane on a line", page.main())
    page.view("recall", bank="some", context="")
    wanted = ""
    for name, text in zip(odd, ("'x-ray'", "'it''s'", "'7up'", "'a b'", "'é*;'")):
        page.keys(".mixer:nth-of-type(2) [role=combobox]", name[:2])
        page.wait(lambda: page.text(".mixer:nth-of-type(2) [role=option]").startswith(name), "an odd name")
        page.keys(".mixer:nth-of-type(2) [role=combobox]", "ENTER")
        wanted += f"+{text}" if wanted else text
        page.wait(lambda: json.loads(page.shown())["context"] == f"rows:{wanted}", "a context of odd names")
    link = page.copied("link to this view")
    page.view("phase")
    page.driver.get(link)
    page.wait(lambda: json.loads(page.shown())["context"] == f"rows:{wanted}" and len(page.all(".mixer:nth-of-type(2) .mixed")) == len(odd), "odd names in a link")
    page.view("landscape", bank="some")
    page.driver.execute_script("""const box = document.querySelector('select'); box.value = 'one'; box.dispatchEvent(new Event('change'))""")
    page.wait(lambda: json.loads(page.shown())["bank"] == "one", "another bank")
    quiet(page, "400")
    page.close()
    check(server.close() == 0, "the server ends well")


def doors(first):
    """Without the token, and with a server that has neither folder nor bank of ours."""
    page = Browser(first.server)
    page.driver.execute_script("sessionStorage.clear()")
    page.driver.get("about:blank")
    page.driver.get(first.server.base + "#recall")
    page.wait(lambda: "token" in page.text(".error"), "a token is asked for")
    check("cgam serve printed" in page.main(), "and it is said how", page.main())
    page.errors()
    bare = Server()
    page.server = bare
    page.driver.get(bare.address)
    check("token" not in page.wait(lambda: page.all("nav a[aria-current]") and page.driver.current_url, "the page"), "the token leaves the address")
    page.view("studies")
    check("--root" in page.main(), "studies without a folder")
    page.view("sweep")
    check("--root" in page.main(), "sweeps without a folder")
    page.view("phase")
    page.shown()
    check(bare.close() == 0, "the server ends well")
    page.press("Python")
    page.keys("input[type=range][name=lambda]", "ARROW_RIGHT")
    page.wait(lambda: "does not answer" in page.text(".error"), "a server that is gone")
    page.close()


def main():
    """All of it, or the views that are named."""
    wanted = [name for name in sys.argv[1:] if not name.startswith("-")]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        models = os.path.exists(f"{data}/stories260K.bin")
        options = ["--root", "root"]
        if models:
            Stories(f"{data}/stories260K.bin", f"{data}/tok512.bin").write_gguf("stories.gguf")
            models = run("lm", "states", "--model", "stories.gguf", "--prompt", "Once", "--exact")[0] == 0
        if models:
            options += ["--model", "stories.gguf"]
        server = Server(*options)
        page = Browser(server)
        try:
            page.wait(lambda: page.all("nav a"), "the page")
            views = [first_load, recall, landscape, phase, studies, goes_on, report] + [lens, sweep, everything_fits] * models + [any_bank, doors]
            for view in views:
                if not wanted or view.__name__ in wanted:
                    view(page)
            if models and (not wanted or "everything_fits" in wanted):
                guide()
        finally:
            page.close()
        check(server.close() == 0, "the server ends well")
        os.chdir("/")
    finish()


main()
