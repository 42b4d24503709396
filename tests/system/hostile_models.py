"""Models with something wrong in them: a sound one with fields, arrays, tensors or bytes replaced. Whatever it is, the program
ends soon, with status 0, or 2 and one line; never by a signal. First what has ended libllama before, each refused by name;
then as many at random.

    hostile_models.py [RUNS [SEED]]    $CGAM is the program; HOSTILE_KEEP=DIR keeps what it did not end well on

A row for docs/reliability.md goes to the file CGAM_RELIABILITY names.
"""
import os
import random
import struct
import subprocess
import sys
import tempfile

from harness import row

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 120
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
SECONDS = 60
FORM = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
TEXT, ARRAY = 8, 9
WHOLE = [0, 1, 2, 3, 5, 7, 31, 63, 64, 65, 127, 255, 256, 512, 513, 1000, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1]
REAL = [0.0, -0.0, -1.0, 1e-45, -1e-5, 1e-38, 1e38, -1e38, 1.0, 0.5, float("inf"), float("-inf"), float("nan")]
WORDS = [b"", b" ", b"<0x", b"<0xZZ>", b"\xff\xfe", b"\xe2\x96", b"<unk>", b"llama", b"gpt2", b"bert", b"t5", b"rwkv", b"qwen2",
         b"x" * 70, b"%s%n", b"a b c", b"\x00a", b"none", b"yarn", b"default", b"plamo2"]


class Model:
    """Keys as [name, type, value], value of an array: (type, list); tensors as [name, dims, type, offset]; the data."""

    def __init__(self, data):
        self.at, self.bytes = 4, data
        _, tensors, keys = self.take("<IQQ")
        self.keys = [[self.text(), kind := self.take("<I")[0], self.value(kind)] for _ in range(keys)]
        self.tensors = []
        for _ in range(tensors):
            name, dims = self.text(), self.take("<I")[0]
            self.tensors.append([name, list(self.take(f"<{dims}Q")), *self.take("<IQ")])
        self.version = 3
        self.data = bytearray(data[(self.at + 31) // 32 * 32:])

    def take(self, form):
        found = struct.unpack_from(form, self.bytes, self.at)
        self.at += struct.calcsize(form)
        return found

    def text(self):
        (size,) = self.take("<Q")
        self.at += size
        return self.bytes[self.at - size:self.at]

    def value(self, kind):
        if kind == TEXT:
            return self.text()
        if kind != ARRAY:
            return self.take("<" + FORM[kind])[0]
        kind, count = self.take("<IQ")
        return kind, [self.value(kind) for _ in range(count)]

    def write(self):
        def text(t):
            return struct.pack("<Q", len(t)) + t

        def value(kind, v):
            if kind == TEXT:
                return text(v if isinstance(v, bytes) else b"7")
            if kind == ARRAY:
                kind, items = v if isinstance(v, tuple) else (4, [])
                return struct.pack("<IQ", kind, len(items)) + b"".join(value(kind, i) for i in items)
            if isinstance(v, (bytes, tuple)):
                v = 0
            if FORM[kind] in "fd":
                return struct.pack("<" + FORM[kind], v)
            v = 0 if v != v or v in (float("inf"), float("-inf")) else int(v)
            return (v % 2**64).to_bytes(8, "little")[:struct.calcsize(FORM[kind])]

        head = b"GGUF" + struct.pack("<IQQ", self.version, len(self.tensors), len(self.keys))
        for name, kind, v in self.keys:
            head += text(name) + struct.pack("<I", kind) + value(kind, v)
        for name, dims, kind, offset in self.tensors:
            head += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *(d % 2**64 for d in dims), kind, offset % 2**64)
        return head + b"\0" * (-len(head) % 32) + bytes(self.data)


def other_number(r, kind, v):
    if FORM[kind] in "fd":
        return r.choice(REAL)
    if not isinstance(v, (int, float)):  # the type was replaced before
        v = 0
    return r.choice([v + 1, v - 1, 2 * v, v // 2, -v, r.choice(WHOLE), r.choice(WHOLE)])


def change_key(r, m):
    k = r.choice(m.keys)
    if k[1] == ARRAY:
        kind, items = k[2]
        how, at = r.randrange(8), r.randrange(len(items))
        if how == 0:
            del items[at:]
        elif how == 1:
            del items[at]
        elif how == 2:
            items.append(items[at])
        elif how == 3:
            k[2] = (r.choice(list(FORM)), [0] * len(items))
        elif kind == TEXT:
            items[at] = r.choice(WORDS + [items[r.randrange(len(items))], items[at][:r.randrange(8)]])
        else:
            for _ in range(r.choice([1, 1, len(items)])):
                items[r.randrange(len(items))] = other_number(r, kind, items[at])
    elif k[1] == TEXT:
        k[2] = r.choice(WORDS + [k[2][:-1], k[2] * 100])
    else:
        k[2] = other_number(r, k[1], k[2])


def change_keys(r, m):
    how, k = r.randrange(6), r.choice(m.keys)
    if how == 0:
        m.keys.remove(k)
    elif how == 1:
        m.keys.append(list(k))
    elif how == 2:
        k[0] = r.choice(WORDS + [k[0] + b"x", r.choice(m.keys)[0]])
    elif how == 3:
        k[1] = r.choice(list(FORM) + [TEXT, ARRAY])
        if k[1] == ARRAY:
            k[2] = (r.choice([4, 6, 8]), [1] * r.choice([0, 1, 3, 336]))
    else:  # one that a sound file may have
        arch = m.keys[0][2] if m.keys[0][1] == TEXT else b"llama"
        name, kind = r.choice([(b"attention.key_length", 4), (b"attention.value_length", 4), (b"rope.scaling.factor", 6),
                               (b"rope.scaling.original_context_length", 4), (b"rope.freq_scale", 6), (b"expert_count", 4),
                               (b"expert_used_count", 4), (b"vocab_size", 4), (b"attention.sliding_window", 4),
                               (b"attention.clamp_kqv", 6), (b"attention.max_alibi_bias", 6), (b"logit_scale", 6),
                               (b"attention.scale", 6), (b"leading_dense_block_count", 4), (b"rope.scaling.attn_factor", 6),
                               (b"attention.causal", 7), (b"pooling_type", 4), (b"residual_scale", 6), (b"embedding_scale", 6),
                               (b"rope.scaling.yarn_beta_fast", 6), (b"attn_logit_softcapping", 6),
                               (b"final_logit_softcapping", 6), (b"embedding_length_out", 4), (b"nextn_predict_layers", 4)])
        m.keys.append([arch[:60] + b"." + name, kind, r.choice(REAL if kind == 6 else WHOLE)])
        if r.random() < 0.3:
            m.keys.append([arch[:60] + b".rope.scaling.type", TEXT, r.choice([b"yarn", b"linear", b"longrope", b"x"])])
        if r.random() < 0.3:
            name = r.choice([b"unknown", b"padding", b"bos", b"eos", b"eot", b"mask", b"seperator", b"fim_pre", b"cls"])
            m.keys.append([b"tokenizer.ggml." + name + b"_token_id", 4, r.choice(WHOLE)])
        if r.random() < 0.2:
            m.keys.append([b"general.alignment", 4, r.choice(WHOLE)])
        if r.random() < 0.2:
            m.keys.append([b"tokenizer.ggml.merges", ARRAY, (TEXT, [r.choice(WORDS) for _ in range(5)])])
        if r.random() < 0.2:
            m.keys.append([b"tokenizer.chat_template", TEXT, r.choice(WORDS)])


def change_tensor(r, m):
    t = r.choice(m.tensors)
    how = r.randrange(9)
    if how == 0:
        m.tensors.remove(t)
    elif how == 1:
        m.tensors.append(list(t))
    elif how == 2:
        t[0] = r.choice(WORDS + [r.choice(m.tensors)[0], b"rope_freqs.weight"])
    elif how == 3:
        t[1] = r.choice([[], t[1][::-1], t[1] + [1], t[1][:1], t[1] + [2], [1] * 5])
    elif how == 4:
        at = r.randrange(len(t[1])) if t[1] else 0
        t[1][at:at + 1] = [r.choice(WHOLE + [2**62, 2**63, 2**64 - 1])]
    elif how == 5:
        t[2] = r.choice([*range(42), 1000, 2**32 - 1])
    elif how == 6:
        t[3] = r.choice([0, 1, 32, 2**40, 2**63, 2**64 - 32, r.choice(m.tensors)[3]])
    elif how == 7:
        t[1], other = t[1], r.choice(m.tensors)
        t[1], other[1] = other[1], t[1]
    else:  # numbers that are none, all over one tensor or in one place
        wide = struct.pack("<f", r.choice(REAL))
        count = r.choice([1, 4, 2000])
        at = t[3] + 4 * r.randrange(16)
        m.data[at:at + 4 * count] = (wide * count)[:max(0, len(m.data) - at)]


def change_bytes(r, data):
    data = bytearray(data)
    head = r.choice([200, 1000, 12000, len(data)])
    for _ in range(r.choice([1, 1, 2, 8, 100])):
        at = r.randrange(min(head, len(data)))
        how = r.randrange(4)
        if how == 0:
            data[at] ^= 1 << r.randrange(8)
        elif how == 1:
            data[at] = r.randrange(256)
        elif how == 2:
            data[at:at + 4] = struct.pack("<I", r.choice(WHOLE))
        else:
            data[at:at + 8] = struct.pack("<Q", r.choice(WHOLE + [2**63, 2**64 - 1]))
    return bytes(data[:r.randrange(len(data))] if r.random() < 0.1 else data)


def spoil(r, sound):
    if r.random() < 0.25:
        return change_bytes(r, sound)
    m = Model(sound)
    for _ in range(r.choice([1, 1, 1, 2, 3])):
        r.choice([change_key, change_key, change_keys, change_tensor])(r, m) if m.keys and m.tensors else None
    return m.write()


def put(name, v):
    """Another value of the key that ends so; of one that is not there, the first key's architecture has it."""
    def change(m):
        for k in m.keys:
            if k[0].endswith(name):
                k[2] = v
                return
        m.keys.append([b"llama." + name, 6 if isinstance(v, float) else TEXT if isinstance(v, bytes) else 4, v])
    return change


def item(name, at, v):
    def change(m):
        next(k for k in m.keys if k[0].endswith(name))[2][1][at] = v
    return change


def tensor(at, field, v):
    def change(m):
        m.tensors[at][field] = v
    return change


def shorten(name):
    def change(m):
        del next(k for k in m.keys if k[0].endswith(name))[2][1][20:]
    return change


def numbers_of_none(m):
    m.data[m.tensors[1][3]:m.tensors[1][3] + 4] = struct.pack("<f", float("nan"))


# What libllama ended on, hung on or computed nonsense from, and what is said of it.
NAMED = [
    ("llama", put(b"block_count", 0), "block_count is 0"),
    ("llama", put(b"block_count", 513), "block_count is 513"),
    ("llama", put(b"rms_epsilon", -1.0), "rms_epsilon is -1"),
    ("llama", put(b"rms_epsilon", float("nan")), "not finite"),
    ("llama", put(b"rope.freq_base", 0.0), "freq_base is 0"),
    ("llama", put(b"rope.freq_base", float("inf")), "not finite"),
    ("llama", put(b"rope.dimension_count", 18), "dimension_count is 18"),
    ("llama", put(b"rope.dimension_count", 8), "dimension_count is 8"),
    ("stablelm", put(b"rope.dimension_count", 7), "dimension_count is 7"),
    ("llama", put(b"rope.scaling.type", b"x"), "rope.scaling.type has an unknown value"),
    ("llama", put(b"head_count", 0), "head_count is 0"),
    ("llama", put(b"head_count", 5), "does not divide the width"),
    ("llama", put(b"head_count_kv", 3), "does not divide the heads"),
    ("llama", put(b"expert_count", 3), "expert_used_count"),
    ("llama", put(b"expert_used_count", 3), "expert_used_count"),
    ("llama", put(b"nextn_predict_layers", 3), "leaves no layer"),
    ("llama", put(b"context_length", 0), "context_length is 0"),
    ("llama", put(b"general.architecture", b"\x1b[2J"), "architecture is not a string"),
    ("llama", put(b"tokenizer.ggml.model", b"none"), "has no vocabulary"),
    ("llama", lambda m: m.keys.append([b"general.alignment", 4, 8]), "multiple of"),
    ("llama", lambda m: m.keys.append([b"general.alignment", 4, 24]), "power of two"),
    ("llama", lambda m: m.keys.append(list(m.keys[3])), "duplicate"),
    ("llama", lambda m: m.tensors.append(list(m.tensors[3])), "duplicate"),
    ("llama", item(b"tokens", 300, b"<s>"), "duplicate"),
    ("llama", item(b"tokens", 13, b"zz"), "has type byte"),
    ("llama", item(b"tokens", 300, b"\xe2\x96"), "is not UTF-8"),
    ("bpe", item(b"tokens", 300, b"\xff\xfe"), "is not UTF-8"),
    ("bpe", item(b"merges", 3, b"ab"), "is not a pair separated by a blank"),
    ("llama", put(b"tokenizer.ggml.model", b"bert"), "which this tokenizer does not have"),
    ("llama", shorten(b"scores"), "its length differs from the number of tokens"),
    ("llama", shorten(b"token_type"), "its length differs from the number of tokens"),
    ("llama", item(b"token_type", 300, 9), "is not a token type"),
    ("llama", item(b"scores", 300, float("nan")), "not finite"),
    ("llama", tensor(3, 2, 4), "unknown type 4"),
    ("llama", tensor(-1, 2, 9), "type 9, which is not"),
    ("xverse", tensor(-1, 2, 25), "type 25, which is not"),
    ("llama", tensor(3, 2, 12), "whole blocks of 256"),
    ("llama", tensor(3, 3, 0), "overlap"),
    ("llama", tensor(3, 3, 2**40), "truncated"),
    ("llama", numbers_of_none, "does not read the output of its last layer"),
]


def complaint(cgam, verb, data):
    """How it ended, and what it said."""
    with open("m.gguf", "wb") as f:
        f.write(data)
    try:
        done = subprocess.run([cgam, *verb, "--threads", "1", "--model", "m.gguf"], capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "no end", ""
    return done.returncode, done.stderr.decode("utf-8", "replace")


def main():
    cgam, bad, ended = os.environ["CGAM"], 0, {}
    keep = os.environ.get("HOSTILE_KEEP")
    tiny = os.path.join(os.environ["CGAM_BUILD"], "tests/python/tiny_model")
    verbs = [["lm", "states", "--prompts", "prompts", "--save", "s.npy"],
             ["lm", "states", "--prompts", "prompts", "--exact", "--save", "s.npy"],
             ["lm", "bank", "--out", "b.npy"],
             ["lm", "generate", "--prompt", "the film", "--max-tokens", "4"]]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sound = {}
        with open("prompts", "w") as f:
            f.write("the film is good\n\u00e9 \U0001f600\tbad<unk>\n")
        for kind in ("llama", "stablelm", "gemma", "xverse", "packed", "bpe"):
            subprocess.run([tiny, "sound.gguf", kind], check=True)
            sound[kind] = open("sound.gguf", "rb").read()
            code, err = complaint(cgam, verbs[0], sound[kind])  # they must be sound, or nothing is tried
            if code != 0:
                print("FAILED: sound model", kind, code, err)
                bad += 1
        for at, (kind, change, piece) in enumerate(NAMED):
            m = Model(sound[kind])
            change(m)
            code, err = complaint(cgam, verbs[0], m.write())
            if code != 2 or piece not in err or err.count("\n") != 1 or "libllama" in err:
                bad += 1
                print(f"FAILED: case {at}, {piece}: {code}: {err}")
        for run in range(RUNS):
            r = random.Random(SEED * 1_000_003 + run)
            data = spoil(r, r.choice(list(sound.values())))
            verb = r.choice(verbs)
            code, err = complaint(cgam, verb, data)
            how = "by libllama's end" if "ended libllama" in err else code
            ended[how] = ended.get(how, 0) + 1
            if code not in (0, 2) or (code == 2 and (err.count("\n") != 1 or not err.strip())):
                bad += 1
                print(f"FAILED: run {run} of seed {SEED}: {' '.join(verb)}: {code}: {err[-600:]}", flush=True)
                if keep:
                    open(f"{keep}/{SEED}-{run}.gguf", "wb").write(data)
            elif "ended libllama" in err:
                print(f"run {run} of seed {SEED}: {err.strip()}", flush=True)
    how = ", ".join(f"{n} ended {c}" for c, n in sorted(ended.items(), key=str))
    row("damaged models", "keys, tokens, tensors or bytes of a sound GGUF model replaced", RUNS, bad, "make soak")
    print(f"{len(NAMED)} cases and {RUNS} damaged models: {how}; {bad} badly")
    sys.exit(bad > 0)


main()
