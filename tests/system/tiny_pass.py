"""The forward pass of a small Llama model in GGUF, stored in f32, in NumPy and double precision; nothing of cgam or ggml
is used.

    Pass(path).run(tokens) gives stream [L + 1, T, d], attention, mlp [L, T, d], slices [L, T, heads, size] (what heads put
    into the output projection), heads [L, T, heads, d] (what they add) and scores [T, vocab]
    patches: (block from 0, head, token, vector [size]) in place of what that head puts out"""
import struct
from types import SimpleNamespace

import numpy as np

FORMS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class Pass:
    def __init__(self, path):
        self.data, self.at = open(path, "rb").read(), 4
        _, tensors, keys = self.take("<I"), self.take("<Q"), self.take("<Q")
        self.keys = {}
        for _ in range(keys):
            name = self.text()
            self.keys[name] = self.value(self.take("<I"))
        heads = []
        for _ in range(tensors):
            name, dims = self.text(), self.take("<I")
            heads.append((name, [self.take("<Q") for _ in range(dims)], self.take("<I"), self.take("<Q")))
        base = (self.at + 31) // 32 * 32
        self.w = {}
        for name, shape, kind, offset in heads:
            assert kind == 0, name
            self.w[name] = np.frombuffer(self.data, "<f4", int(np.prod(shape)), base + offset).reshape(shape[::-1]).astype(float)
        of = lambda name: self.keys[f"llama.{name}"]
        self.layers, self.width, self.heads, self.kv = (
            of(n) for n in ("block_count", "embedding_length", "attention.head_count", "attention.head_count_kv"))
        self.size, self.epsilon = self.width // self.heads, of("attention.layer_norm_rms_epsilon")

    def take(self, form):
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self):
        n = self.take("<Q")
        self.at += n
        return self.data[self.at - n : self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            of, n = self.take("<I"), self.take("<Q")
            return [self.value(of) for _ in range(n)]
        return self.take(FORMS[kind])

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * self.w[name]

    def unembedding(self):
        return self.w.get("output.weight", self.w["token_embd.weight"])

    def run(self, tokens, patches=(), edits=()):
        """edits: (layer, token, vector added)."""
        T, H, size = len(tokens), self.heads, self.size
        x = self.w["token_embd.weight"][tokens]
        out = SimpleNamespace(stream=[x], attention=[], mlp=[], slices=[], heads=[])

        def turn(a, heads):
            a = a.reshape(T, heads, size // 2, 2)
            angle = np.arange(T)[:, None, None] * 10000.0 ** (-2 * np.arange(size // 2) / size)
            c, s = np.cos(angle), np.sin(angle)
            return np.stack([a[..., 0] * c - a[..., 1] * s, a[..., 0] * s + a[..., 1] * c], -1).reshape(T, heads, size)

        for l in range(self.layers):
            m = lambda name: self.w[f"blk.{l}.{name}.weight"]
            n = self.norm(x, f"blk.{l}.attn_norm.weight")
            q, k = turn(n @ m("attn_q").T, H), turn(n @ m("attn_k").T, self.kv)
            v = (n @ m("attn_v").T).reshape(T, self.kv, size)
            slices = np.empty((T, H, size))
            for h in range(H):
                g = h // (H // self.kv)
                for t in range(T):
                    s = k[: t + 1, g] @ q[t, h] / np.sqrt(size)
                    p = np.exp(s - s.max())
                    slices[t, h] = p / p.sum() @ v[: t + 1, g]
            for block, head, token, vector in patches:
                if block == l:
                    slices[token, head] = vector
            O = m("attn_output").reshape(self.width, H, size)
            heads = np.einsum("ths,dhs->thd", slices, O)
            attention = slices.reshape(T, -1) @ m("attn_output").T
            n = self.norm(x + attention, f"blk.{l}.ffn_norm.weight")
            g = n @ m("ffn_gate").T
            mlp = (g / (1 + np.exp(-g)) * (n @ m("ffn_up").T)) @ m("ffn_down").T
            x = x + attention + mlp
            for layer, token, vector in edits:
                if layer == l + 1:
                    x[token] = x[token] + vector
            for name, a in (("stream", x), ("attention", attention), ("mlp", mlp), ("slices", slices), ("heads", heads)):
                getattr(out, name).append(a.copy())
        for name in ("stream", "attention", "mlp", "slices", "heads"):
            setattr(out, name, np.array(getattr(out, name)))
        out.scores = self.norm(x, "output_norm.weight") @ self.unembedding().T
        return out
