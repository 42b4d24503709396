"""`cgam lm vector --from` against a reader of GGUF of a few lines, libggml's own, and a writer that
lays files out as repeng does. None of it needs a model."""
import ctypes
import glob
import os
import struct
import tempfile

import numpy as np

from harness import ask, check, finish, refuse

FORMS = {4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class Reader:
    """GGUF from its description: keys, then tensors of f32."""

    def __init__(self, path):
        self.data = open(path, "rb").read()
        self.at = 4
        check(self.data[:4] == b"GGUF", path, "does not begin with GGUF")
        version, tensors, keys = self.take("<I"), self.take("<Q"), self.take("<Q")
        check(version == 3, "version", version)
        self.keys = {}
        for _ in range(keys):
            name, kind = self.text(), self.take("<I")
            self.keys[name] = self.text() if kind == 8 else self.take(FORMS[kind])
        heads = []
        for _ in range(tensors):
            name, dims = self.text(), self.take("<I")
            shape = [self.take("<Q") for _ in range(dims)]
            heads.append((name, shape, self.take("<I"), self.take("<Q")))
        base = (self.at + 31) // 32 * 32
        self.tensors = {}
        for name, shape, kind, offset in heads:
            check(kind == 0 and offset % 32 == 0, name, kind, offset)
            self.tensors[name] = np.frombuffer(self.data, "<f4", int(np.prod(shape)), base + offset)

    def take(self, form):
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self):
        n = self.take("<Q")
        self.at += n
        return self.data[self.at - n : self.at].decode()


def write_repeng(path, directions, hint="mistral"):
    """As repeng's export does: architecture, hint, count, then a tensor for each layer in its order."""

    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()

    head = b"GGUF" + struct.pack("<IQQ", 3, len(directions), 3)
    head += text("general.architecture") + struct.pack("<I", 8) + text("controlvector")
    head += text("controlvector.model_hint") + struct.pack("<I", 8) + text(hint)
    head += text("controlvector.layer_count") + struct.pack("<II", 4, len(directions))
    body = b""
    for layer, values in directions.items():
        head += text(f"direction.{layer}") + struct.pack("<I", 1)
        head += struct.pack("<QIQ", len(values), 0, len(body))
        body += values.astype("<f4").tobytes()
        body += bytes(-len(body) % 32)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + body)


def libggml():
    roots = [os.environ.get("CGAM_LLAMA", ""),
             *glob.glob(os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")),
                                     "cgam", "llama-*"))]
    for root in roots:
        path = os.path.join(root, "lib", "libggml-base.so")
        if root and os.path.exists(path):
            return ctypes.CDLL(path)
    return None


def by_libggml(path, want):
    """What llama.cpp's loader asks of a file, asked of the library it asks."""
    lib = libggml()
    if not lib:
        print("skipped: no libggml at hand")
        return
    lib.gguf_init_from_file.restype = ctypes.c_void_p
    class Params(ctypes.Structure):
        _fields_ = [("no_alloc", ctypes.c_bool), ("ctx", ctypes.c_void_p)]

    lib.gguf_init_from_file.argtypes = [ctypes.c_char_p, Params]
    g = lib.gguf_init_from_file(path.encode(), Params(True, None))
    check(g is not None, "libggml refuses", path)
    if not g:
        return
    for name, back, more in (("gguf_get_n_tensors", ctypes.c_int64, []),
                             ("gguf_get_tensor_name", ctypes.c_char_p, [ctypes.c_int64]),
                             ("gguf_get_tensor_type", ctypes.c_int, [ctypes.c_int64]),
                             ("gguf_get_tensor_offset", ctypes.c_size_t, [ctypes.c_int64]),
                             ("gguf_get_tensor_size", ctypes.c_size_t, [ctypes.c_int64]),
                             ("gguf_get_data_offset", ctypes.c_size_t, []),
                             ("gguf_free", None, [])):
        f = getattr(lib, name)
        f.restype, f.argtypes = back, [ctypes.c_void_p, *more]
    data = open(path, "rb").read()
    n = lib.gguf_get_n_tensors(g)
    check(n == len(want), "libggml finds", n, "tensors, want", len(want))
    for i in range(n):
        name = lib.gguf_get_tensor_name(g, i).decode()
        begin = lib.gguf_get_data_offset(g) + lib.gguf_get_tensor_offset(g, i)
        got = np.frombuffer(data, "<f4", lib.gguf_get_tensor_size(g, i) // 4, begin)
        check(lib.gguf_get_tensor_type(g, i) == 0, name, "is not f32")
        check(name in want and np.array_equal(got, want[name]), "libggml reads", name, "otherwise")
    lib.gguf_free(g)


def main(folder):
    def at(name):
        return os.path.join(folder, name)

    rng = np.random.default_rng(1)
    v = rng.normal(size=(7, 19)).astype("<f4")
    np.save(at("v.npy"), v)
    doc = ask("lm", "vector", "--from", at("v.npy"), "--out", at("v.gguf"))
    check(doc["layers"] == list(range(7)) and doc["left_out"] == 2, doc)
    check(np.allclose(doc["norms"], np.linalg.norm(v.astype(float), axis=1), rtol=1e-12), "norms")
    check(doc["saved"] == at("v.gguf"), doc["saved"])
    mine = Reader(at("v.gguf"))
    want = {f"direction.{l - 1}": v[l] for l in range(2, 7)}
    check(mine.keys["general.architecture"] == "controlvector", mine.keys)
    check(mine.keys["controlvector.layer_count"] == 5, mine.keys)
    check(list(mine.tensors) == list(want), list(mine.tensors))
    for name, row in want.items():
        check(np.array_equal(mine.tensors[name], row), name, "differs")
    by_libggml(at("v.gguf"), want)

    # repeng counts down from the last layer and may leave some out
    rows = {layer: rng.normal(size=21) for layer in (30, 29, 27, 3, 1)}
    write_repeng(at("r.gguf"), rows)
    ask("lm", "vector", "--from", at("r.gguf") + ":2", "--out", at("r.npy"))
    got = np.load(at("r.npy"))
    check(got.shape == (32, 21) and got.dtype == np.float32, got.shape, got.dtype)
    for layer in range(32):
        row = rows.get(layer - 1)
        want_row = np.zeros(21, "f4") if row is None else row.astype("f4") * np.float32(2)
        check(np.array_equal(got[layer], want_row), "layer", layer, "of repeng's file")

    np.save(at("w.npy"), v[:, :18])
    refuse(2, ["vectors of 19 and of 18 numbers"], "lm", "vector", "--from",
           f"{at('v.npy')},{at('w.npy')}:3", "--out", at("x.npy"))
    refuse(2, ["--contrast, --from or data"], "lm", "vector", "--from", at("v.npy"), "--dataset", "facts",
           "--out", at("x.npy"))
    refuse(2, ["x.csv", ".gguf, .npy or .safetensors"], "lm", "vector", "--from", at("v.npy"), "--out", at("x.csv"))
    refuse(2, ["no_such.gguf"], "lm", "vector", "--from", at("no_such.gguf"), "--out", at("x.npy"))
    open(at("t.gguf"), "w").write("not a vector")
    refuse(2, ["t.gguf: not a GGUF file"], "lm", "vector", "--from", at("t.gguf"), "--out", at("x.npy"))
    check(not os.path.exists(at("x.npy")), "a refused call left a file")


with tempfile.TemporaryDirectory() as scratch:
    main(scratch)
finish()
