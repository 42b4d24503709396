"""A report as it lies on the disk: the page is whole and stands alone, its links lead somewhere, scripts and page.html name
tables and columns that are there."""
import csv
import glob
import os
import re
import sys

from harness import SRC, check, finish

folder = sys.argv[1]


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def columns(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", newline="") as f:
        return next(csv.reader(line for line in f if not line.startswith("#")))


def the_page_stands_alone_and_is_whole():
    page = read(f"{folder}/index.html")
    check(page.startswith("<!doctype html>") and "</html>\n" in page, page[:40])
    for outside in ("http:", "https:", "<script", "url("):
        check(outside not in page, outside)
    for section in ("claims", "separation", "competition", "coupled", "timescale", "theorems", "grids", "definitions", "models", "again"):
        check(page.count(f'id="{section}"') == 1 and f'href="#{section}"' in page, section)
    for tag in ("table", "tr", "td", "th", "div", "p", "pre", "dl", "dt", "dd", "h2", "h3", "figure", "span", "sub", "sup"):
        opened, closed = len(re.findall(f"<{tag}[ >]", page)), page.count(f"</{tag}>")
        check(opened == closed, tag, opened, "opened", closed, "closed")
    for link in re.findall('href="([^#"][^"]*)"', page):
        check(os.path.exists(f"{folder}/{link}"), "a dead link:", link)


def scripts_fit_their_tables():
    scripts = sorted(glob.glob(f"{folder}/*/*.gp"))
    check(len(scripts) >= 15, scripts)
    for script in scripts:
        known = None
        for line in read(script).split("\n"):
            table = re.search(r"'([^']*\.csv)'", line)
            if table and not line.startswith("#"):
                known = columns(os.path.join(os.path.dirname(script), table[1]))
                check(known, script, table[1])
            for name in re.findall(r"column\('([^']*)'", line):
                check(known and name in known, script, "no column", name)


def the_page_asks_for_what_there_is():
    asked, known = 0, []
    for word, fields in re.findall(r"^@(command|table|column|figure) (.*)$", read(f"{SRC}/src/lab/page/page.html"), re.M):
        field = fields.split("|")
        run = f"{folder}/{field[0]}"
        asked += 1
        if word == "column":
            check(field[0] in known, word, fields)
        elif word == "table":
            known = columns(f"{run}/{field[1]}.csv")
            check(known, word, fields)
        else:
            check(os.path.exists(f"{run}/{field[1]}.gp" if word == "figure" else run), word, fields)
    check(asked > 60, asked)


the_page_stands_alone_and_is_whole()
scripts_fit_their_tables()
the_page_asks_for_what_there_is()
finish()
