"""The explorer in a browser: each view is opened, moved by keyboard, and compared with what the command it copies prints."""
import json
import os
import re
import shlex
import subprocess
import tempfile
import time

import numpy as np
from browser import Browser, Server
from harness import CGAM, ask, check, close, finish, run
from stories import Stories

pictures = os.path.join(os.environ.get("CGAM_BUILD", "."), "tests", "explorer")
os.makedirs(pictures, exist_ok=True)
data = os.environ.get("CGAM_DATA", "/nowhere") + "/models"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def command(page):
    """The document of the command line that the page copies."""
    words = shlex.split(page.copied("command line"))
    check(words[0] == "cgam", "a command line", words)
    return ask(*[word if word != "stories" else "stories.gguf" for word in words[1:]])


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
        shown = facts(page, "What came out")
        for name, key in (("N_eff, exp(entropy)", "neff_entropy"), ("gap", "gap"), ("p at least", "p_lower_bound"), ("energy", "energy_end"), ("contraction", "contraction")):
            same(shown[name], x[key], name)
        cells = page.driver.execute_script("return [...document.querySelectorAll('.bars tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
        for k, row in enumerate(cells):
            check(int(row[0]) == x["top"][k][0], "memory of a bar")
            for text, value in zip(row[1:5], (x["top"][k][1], *(x["parts"][part][k] for part in ("evidence", "bias", "feedback")))):
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
    check({tick.get_attribute("title").split(":")[0] for tick in page.all(".tick")} >= {"α_crit", "up to here one answer, proved"}, "marks on the sliders")
    # C and the link
    code = page.copied("C")
    with open("page.c", "w") as out:
        out.write(code)
    build = os.environ["CGAM_BUILD"]
    subprocess.run(["cc", "-o", "page", "page.c", f"-I{os.environ['CGAM_SRC']}/include", f"-L{build}/lib", "-lcgam", f"-Wl,-rpath,{build}/lib"], check=True)
    doc = json.loads(subprocess.run(["./page"], check=True, capture_output=True, text=True).stdout)
    check(doc["queries"] == command(page)["queries"], "C says what the command line says")
    code = page.copied("Python")
    check(code.startswith("import cgam") and 'cgam.run("recall"' in code and "lam=" in code, "Python", code)
    compile(code, "page.py", "exec")
    link = page.copied("link to this view")
    here = facts(page, "What came out")
    page.view("phase")
    page.driver.get(link)
    page.wait(lambda: facts(page, "What came out") == here, "the link brings the view back")
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
    close([flow["x"][0], flow["y"][0]], [doc["x"][where[0]], doc["y"][where[1]]], 1e-5, "the start")
    check(f"to memory {flow['winner'][-1]}" in page.main(), "where it went")
    rows = page.driver.execute_script("return [...document.querySelectorAll('.stage table')].at(-1).innerText")
    check(all(str(a["winner"]) in rows for a in free["attractors"]), "rest points", rows)
    page.press("Flow again, switching at t = 4")
    page.wait(lambda: "--switch 4" in page.copied("command line"), "a flow that switches")
    switched = command(page)["flows"][0]
    check(switched["winner"][-1] == 41 and 4 in switched["time"], "the context takes the query along", switched["winner"][-1])
    check("starts=" in page.driver.current_url, "the flow is in the link")
    before = page.shown()
    page.keys("input[type=range][name=lambda]", *["ARROW_RIGHT"] * 3)
    page.shown(before)
    quiet(page)


def phase(page):
    page.view("phase")
    before = page.shown()
    for _ in range(2):
        curve = command(page)["curves"][-1]
        shown = facts(page, "λ = ")
        same(shown["theorem's threshold"], curve["alpha_theory"], "theorem")
        same(shown["fold, median"], curve["fold_median"], "fold")
        same(shown["mean peak reaches ½"], curve["alpha_half"], "half")
        page.keys("input[type=range][name=lambda]", *["ARROW_RIGHT"] * 6)
        before = page.shown(before)
        page.wait(lambda: abs(json.loads(page.shown())["lambda"][-1] - float(page.one("input[type=range][name=lambda]").get_attribute("value"))) < 1e-9, "the slider's place")
    quiet(page)


def lens(page):
    page.view("lens", prompt="Once upon a time", compare="The cat")
    before = page.shown()
    doc = command(page)
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


def sweep(page, root):
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
    same(facts(page, "Beside it")["zero-shot"], 100 * doc["zero_shot"]["full"], "zero-shot beside it")
    before = page.shown()
    page.keys("input[type=range][name=lambda]", "ARROW_RIGHT")
    check(json.loads(page.shown(before))["lambda"] > 3.3, "λ moves")
    quiet(page)


def studies(page, root):
    page.view("studies", study="study competition")
    page.keys("input[name=trials]", "16", "TAB")
    page.press("Start")
    page.wait(lambda: page.all("#done"), "the study")
    page.wait(lambda: len(page.all(".gallery img")) >= 1, "its figures")
    loaded = page.driver.execute_script("return [...document.querySelectorAll('.gallery img')].every(i => i.complete && i.naturalWidth > 0)")
    check(loaded, "figures can be looked at")
    summary = json.load(open(f"{root}/competition/summary.json"))
    check(summary["trials"] == 16 and "summary.json" in page.main(), "what it left")
    check("after" in page.text("#done") and page.driver.current_url.endswith("folder=competition"), "done", page.driver.current_url)
    quiet(page)


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
            bare = page.driver.execute_script("""return [...document.querySelectorAll('input, select, textarea, button')].filter(n => !(n.labels?.length || n.getAttribute('aria-label') || n.textContent.trim()))
                .map(n => n.outerHTML)""")
            check(not bare, f"controls of {name} have names", bare)
            tall = page.driver.execute_script("return Math.min(document.documentElement.scrollHeight, 2400)")
            page.picture(f"{pictures}/{name}-{width}{'-dark' if dark else ''}.png", max(tall, height))
            page.look(width, height, dark)
    quiet(page)


def guide():
    """Small pictures for docs/figures: explorer-*.png there are these, copied when the page has changed."""
    from PIL import Image

    for name, height in (("recall-1280-dark", 960), ("landscape-1920", 1170), ("phase-1920", 760), ("lens-1280-dark", 1150)):
        picture = Image.open(f"{pictures}/{name}.png").convert("RGB")
        picture = picture.crop((0, 0, picture.width, min(picture.height, height)))
        picture = picture.resize((900, round(picture.height * 900 / picture.width)), Image.LANCZOS).quantize(40, dither=Image.NONE)
        path = f"{pictures}/explorer-{name.split('-')[0]}.png"
        picture.save(path, optimize=True)
        check(os.path.getsize(path) < 60000, "a small picture", path, os.path.getsize(path))


def first_load(page):
    page.driver.get(page.server.base)
    page.view("recall")
    entries = page.driver.execute_script("""return performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
        .map(e => [e.name, e.transferSize, e.responseEnd])""")
    own = [e for e in entries if "/api" not in e[0]]
    size = sum(e[1] for e in own)
    print(f"first load: {len(own)} files, {size / 1000:.0f} kB, {max(e[2] for e in own):.0f} ms")
    check(10000 < size < 300e3, "the page is less than 300 kB", size)


def doors(server):
    """Without the token, and with a server that has neither folder nor bank of ours."""
    page = Browser(server)
    page.driver.execute_script("sessionStorage.clear()")
    page.driver.get("about:blank")
    page.driver.get(server.base + "#recall")
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
            first_load(page)
            recall(page)
            landscape(page)
            phase(page)
            studies(page, "root")
            if models:
                lens(page)
                sweep(page, "root")
                everything_fits(page)
                guide()
        finally:
            page.close()
        doors(server)
        check(server.close() == 0, "the server ends well")
        os.chdir("/")
    finish()


main()
