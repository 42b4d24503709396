"""Help in words and as JSON, what a slip is answered with, and what the shells complete."""
import os
import pty
import select
import shutil
import subprocess
import tempfile
import time

from harness import CGAM, ask, check, finish, refuse, run

SHELLS = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "-n"]}


def groups():
    _, names, _ = run("help", "--verbs")
    for group in ("lm", "net", "study"):
        for words in (("help", group), (group, "--help"), (group, "-h")):
            code, out, err = run(*words)
            check(code == 0 and err == "", words, code, err)
            for name in names.splitlines():
                check((f"\n  {name:<20} " in out) == name.startswith(group + " "), words, name)
        doc = ask("help", group)
        check([v["name"] for v in doc["verbs"]] ==
              [n for n in names.splitlines() if n.startswith(group + " ")], group, "as JSON")
    for words in ((), ("lm",), ("net",), ("lm", "--json")):
        code, out, err = run(*words)
        check(code == 2 and out == "" and "Usage: cgam " in err, words, code, out, err)
    code, out, _ = run("help", "study")
    check("Usage: cgam study [NAME]" in out and "study separation" in out, "a verb and a group")


def no_blas():
    """Help computes nothing, and loading BLAS would take most of its time."""
    for words, loads in ((("--version",), False), (("help", "recall"), False), (("completion", "bash"), False),
                         (("recall",), True)):
        done = subprocess.run([CGAM, *words], capture_output=True, text=True,
                              env={**os.environ, "LD_DEBUG": "files"})
        check(("dynamically loaded" in done.stderr) == loads, words, "loads BLAS")


def search():
    code, out, err = run("help", "train")
    check(code == 0 and "\n  lm fit " in out and err == "", "help on a word", code, out, err)
    code, out, err = run("help", "xyzzy")
    check(code == 2 and "no verb 'xyzzy'" in err, "help on an unknown word", code, err)
    _, out, _ = run("help")
    for heading in ("Recall and banks", "Language models", "Server", "Tools"):
        check(f"\n{heading}\n" in out, "a section", heading)
    done = subprocess.run(f"{CGAM} help | head -n 1; echo ${{PIPESTATUS[0]}}", shell=True, text=True, executable="/bin/bash",
                          capture_output=True)
    check(done.stdout.endswith("\n0\n") and done.stderr == "", "help | head", done)


def versions():
    for word in ("-V", "--version", "version"):
        code, out, err = run(word)
        check(code == 0 and out.startswith("cgam ") and out.count("\n") == 1, word, code, out, err)
    check(set(ask("--version")) == {"version"}, "the version as JSON")


def table():
    code, names, _ = run("help", "--verbs")
    verbs = ask("help")["verbs"]
    check([v["name"] for v in verbs] == names.splitlines(), "every verb is described")
    kinds = {"flag", "int", "real", "text", "choice", "ints", "reals", "words"}
    for verb in verbs:
        words = verb["name"].split()
        check(ask(*words, "--help") == ask("help", *words), words, "one description")
        _, text, _ = run("help", *words)
        _, page, _ = run("help", *words, "--man")
        usage = text.split("Usage: ")[1].split("\n")[0]
        for p in verb["parameters"]:
            shown = p["name"] if p["positional"] else "--" + p["name"]
            check(p["kind"] in kinds and p["help"], verb["name"], p)
            check(f"\n  {shown}" in text, verb["name"], shown, "is in the help")
            value = f"[{p['value']}]" if "bare" in p else p["value"]
            check(p["positional"] or f"\n  {shown} {value}" in text or value is None, verb["name"], p,
                  "is there to its end")
            check("several times" not in p["help"], verb["name"], shown, "says so twice")
            check((p["value"] is None) == (p["kind"] == "flag"), verb["name"], p)
            if p["required"]:
                check(shown in usage and "(required" in text, verb["name"], shown, "is marked")
                check("(required" in page, verb["name"], shown, "is marked in the man page")
    recall = {p["name"]: p for p in next(v for v in verbs if v["name"] == "recall")["parameters"]}
    check(recall["mode"]["words"] == ["first", "coupled", "flow", "anneal"], recall["mode"])
    check(recall["mode"]["default"] == "first" and not recall["mode"]["required"], recall["mode"])
    check(recall["top"]["min"] == 0 and recall["top"]["max"] == 1e9, recall["top"])
    check(recall["alpha"]["max"] is None and recall["query"]["required"], recall["alpha"])
    check(recall["save-p"]["writes"] and not recall["bank"]["writes"], "what is written")
    check(recall["json"]["kind"] == "flag" and recall["threads"]["max"] == 4096, "common ones")


def slips():
    refuse(2, ["no verb 'rcall'; did you mean recall?"], "rcall", "--bank", "x")
    refuse(2, ["no verb 'lm gte'; did you mean lm get? see: cgam help lm"], "lm", "gte")
    refuse(2, ["no verb 'stuyd'; did you mean study?"], "help", "stuyd")
    refuse(2, ["no verb 'recall now'; see: cgam help recall"], "help", "recall", "now")
    refuse(2, ["no verb 'xyzzy'; see: cgam help"], "xyzzy")
    refuse(2, ["no option --aplha; did you mean --alpha?"], "demo", "--aplha", "1")
    refuse(2, ["--mode: invalid value 'cupled' (valid: first|coupled|flow|anneal); did you mean coupled?"], "recall",
           "--bank", "x", "--query", "y", "--mode", "cupled")
    refuse(2, ["cgam recall: --bank needs a value: FILE[:NAME]"], "recall", "--bank", "--query", "q")
    refuse(2, ["cgam recall: --query is missing"], "recall", "--bank", "b")
    refuse(2, ["cgam demo: --alpha is -1, it must be at least 0"], "demo", "--alpha", "-1")
    refuse(2, ["cgam recall: --save-p and --save-readout"], "recall", "--bank",
           "b", "--query", "q", "--save-p", "x", "--save-readout", "x")
    refuse(2, ["--mode: invalid value 'a?b'"], "recall", "--bank", "x", "--query", "y", "--mode", "a\nb")
    refuse(2, ["no verb 'a?b?[31m'"], "a\nb\033[31m")
    refuse(2, ["cgam completion: SHELL is missing"], "completion")
    refuse(2, ["SHELL: invalid value 'fishy' (valid: bash|zsh|fish); did you mean fish?"], "completion", "fishy")


def full_disk():
    """Whatever is printed has to arrive."""
    for words in (["--version"], ["help"], ["recall", "--help"], ["demo"], ["demo", "--json"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([CGAM, *words], stdout=full, stderr=subprocess.PIPE, text=True)
        check(done.returncode == 3 and done.stderr.count("\n") == 1, words, done.returncode,
              done.stderr)
        check("standard output" in done.stderr, words, done.stderr)


def on_terminal(*words, **more):
    """Both streams of the program on a terminal."""
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    environment.update({"TERM": "xterm", **more})
    with subprocess.Popen([CGAM, *words], stdout=theirs, stderr=theirs, env=environment) as child:
        os.close(theirs)
        seen = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other side has gone
                piece = b""
            if not piece:
                break
            seen += piece
        os.close(ours)
        child.wait()
    return seen.decode()


def colours():
    for words in (("help", "inspect"), ("xyzzy",), ("demo", "--alpha", "x")):
        check("\033[1" in on_terminal(*words), words, "has colours")
        for quiet in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            check("\033" not in on_terminal(*words, **quiet), words, quiet, "has none")
        check("\033[1" in on_terminal(*words, NO_COLOR=""), words, "an empty NO_COLOR says nothing")
        code, out, err = run(*words, env={**os.environ, "TERM": "xterm"})
        check("\033" not in out + err, words, "has none in a pipe")
    plain = run("help", "inspect")[1]
    seen = on_terminal("help", "inspect").replace("\r\n", "\n")
    check(seen.replace("\033[1m", "").replace("\033[0m", "") == plain, "colours change no word")
    check("\033[1m  --bank FILE[:NAME]\033[0m\n" in seen and "\033[1mOptions\033[0m\n" in seen, seen)


def typed(shell, start, wanted):
    """Types each line and a tab into a shell on a terminal and waits for what should appear."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(shell[0], shell, {**os.environ, "TERM": "xterm"})
    os.write(terminal, start.encode() + b'; echo rea""dy\n')
    for line, want in [("", "ready"), *wanted]:
        seen, end = "", time.time() + 20
        os.write(terminal, line.encode() + b"\t" if line else b"")
        while want not in seen and time.time() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                seen += os.read(terminal, 65536).decode(errors="replace")
        check(want in seen, shell[0], repr(line), "lacks", repr(want), "in", repr(seen))
        os.write(terminal, b"\x15")  # empties the line
    os.close(terminal)
    os.waitpid(child, 0)


def bash_completes(script, line):
    """What bash offers at the end of the line, as readline would split it."""
    words = line.replace("=", " = ").split(" ")
    inside = "\n".join([
        f"source {script}",
        "COMP_WORDS=(" + " ".join(f"'{w}'" for w in words) + ")",
        f"COMP_CWORD={len(words) - 1}", "_cgam cgam", 'printf "%s\\n" "${COMPREPLY[@]}"'])
    done = subprocess.run(["bash", "-c", inside], capture_output=True, text=True)
    check(done.returncode == 0 and done.stderr == "", line, done.stderr)
    return done.stdout.split()


def completions():
    for shell, judge in SHELLS.items():
        code, out, err = run("completion", shell)
        check(code == 0 and err == "" and "cgam" in out, shell, err)
        with open(shell, "w") as f:
            f.write(out)
        if shutil.which(shell):
            done = subprocess.run([*judge, shell], capture_output=True, text=True)
            check(done.returncode == 0 and done.stderr == "", shell, done.stderr)
    os.makedirs("bin")
    os.symlink(CGAM, "bin/cgam")
    os.environ["PATH"] = os.path.abspath("bin") + ":" + os.environ["PATH"]
    os.makedirs("some folder/in")
    open("some.npy", "w").close()
    offers = lambda line: bash_completes("./bash", line)
    verbs = {n.split()[0] for n in run("help", "--verbs")[1].splitlines()}
    check(set(offers("cgam ")) == verbs | {"--help", "--version"}, offers("cgam "))
    check(offers("cgam rec") == ["recall"], offers("cgam rec"))
    check(offers("cgam net ") == ["run", "show", "train"], offers("cgam net "))
    check(offers("cgam lm ge") == ["get", "generate"], offers("cgam lm ge"))
    check(set(offers("cgam recall --sa")) == {"--save-p", "--save-readout"}, "options")
    check(offers("cgam recall --mode ") == ["first", "coupled", "flow", "anneal"], "choices")
    check(offers("cgam recall --bank b --mode=co") == ["coupled"], "choices after =")
    check(offers("cgam recall --bank some.") == ["some.npy"], "files")
    check(set(offers("cgam net run so")) == {"some.npy", "some", "folder"}, "files and folders")
    check(offers("cgam net run x --out so") == ["some", "folder"], "folders")
    check(offers("cgam recall --alpha 0") == [], "numbers are the user's")
    check(offers("cgam help re") == ["recall", "report"], "verbs")
    check(offers("cgam completion f") == ["fish"], "shells")
    check(offers("cgam recall --mode=") == ["first", "coupled", "flow", "anneal"], "choices right after =")
    check(offers("cgam frobnicate --") == [] and offers("cgam lm frobnicate --") == [], "no verb")
    check("--svg" in offers("cgam net show --") and "--svg" not in offers("cgam net run --"),
          "each verb has its own")
    wanted = [("cgam ins", "inspect"), ("cgam lm sw", "lm sweep"),
              ("cgam recall --save-r", "--save-readout"), ("cgam recall --mode c", "--mode coupled"),
              ("cgam recall --mode=c", "--mode=coupled"), ("cgam recall --bank some.", "some.npy"),
              ("cgam recall --bank=some.", "--bank=some.npy")]
    typed(["bash", "--norc", "--noprofile", "-i"], 'PS1="> "; source ./bash', wanted)
    if shutil.which("zsh"):
        typed(["zsh", "-f", "-i"], 'PS1="> "; autoload -Uz compinit; compinit -u -D; source ./zsh',
              wanted)
    if shutil.which("fish"):
        def fish(line):
            done = subprocess.run(["fish", "-c", f'source ./fish; complete -C "{line}"'],
                                  capture_output=True, text=True)
            return [l.split("\t")[0] for l in done.stdout.splitlines()]
        check(set(fish("cgam ")) == verbs | {"--help", "--version"}, fish("cgam "))
        check(set(fish("cgam net ")) == {"run", "show", "train"}, fish("cgam net "))
        check(set(fish("cgam recall --mode ")) == {"first", "coupled", "flow", "anneal"}, "choices in fish")
        check(set(fish("cgam recall --sa")) == {"--save-p", "--save-readout"}, "options in fish")
        check("some.npy" in fish("cgam recall --bank so"), "files in fish")
        check(fish("cgam recall --mode=co") == ["--mode=coupled"], "choices after = in fish")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.environ["HOME"] = folder
    groups(), no_blas(), search(), versions(), table(), slips(), full_disk(), colours(), completions()
finish()
