"""The 260,000-parameter story model: llama2.c's files as GGUF, and its forward pass in NumPy.

    stories.py gguf MODEL.bin TOK.bin OUT.gguf

As a module: Stories(model, tok).run(tokens, edits) gives states [L + 1, tokens, d] and scores, in double;
nothing of cgam or ggml is used."""
import struct
import sys

import numpy as np

BOS, EOS = 1, 2


class Stories:
    def __init__(self, model, tok):
        raw = open(model, "rb").read()
        dim, ff, layers, heads, kv, vocab, length = struct.unpack("7i", raw[:28])
        self.dim, self.ff, self.layers, self.heads, self.kv = dim, ff, layers, heads, kv
        self.vocab, self.length, self.head = abs(vocab), length, dim // heads
        numbers, at = np.frombuffer(raw, "<f4", offset=28), 0

        def take(*shape):
            nonlocal at
            n = int(np.prod(shape))
            at += n
            return numbers[at - n : at].reshape(shape)

        kd = kv * self.head
        self.embedding = take(self.vocab, dim)
        self.attn_norm = take(layers, dim)
        self.q, self.k, self.v = take(layers, dim, dim), take(layers, kd, dim), take(layers, kd, dim)
        self.o = take(layers, dim, dim)
        self.ffn_norm = take(layers, dim)
        self.gate, self.down, self.up = take(layers, ff, dim), take(layers, dim, ff), take(layers, ff, dim)
        self.norm = take(dim)
        take(length, self.head)  # tables of angles that are no longer used
        self.output = self.embedding if vocab > 0 else take(self.vocab, dim)
        self.tied = vocab > 0
        raw, self.pieces, self.scores, at = open(tok, "rb").read(), [], [], 4
        for _ in range(self.vocab):
            score, n = struct.unpack_from("<fi", raw, at)
            self.pieces.append(raw[at + 8 : at + 8 + n])
            self.scores.append(score)
            at += 8 + n

    def run(self, tokens, edits=()):
        """edits: (layer, kind, positions, vector), applied in order."""
        x = self.embedding[tokens].astype(float)
        states = []

        def after(layer):
            for at, kind, positions, vector in edits:
                if at == layer:
                    for t in positions:
                        x[t] = vector if kind == "replace" else x[t] + vector
            states.append(x.copy())

        def norm(h, gain):
            return h / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-5) * gain

        def turn(a, heads):
            a = a.reshape(len(tokens), heads, self.head // 2, 2)
            rate = 10000.0 ** (-2 * np.arange(self.head // 2) / self.head)
            angle = np.arange(len(tokens))[:, None, None] * rate
            c, s = np.cos(angle), np.sin(angle)
            return np.stack([a[..., 0] * c - a[..., 1] * s, a[..., 0] * s + a[..., 1] * c], -1).reshape(
                len(tokens), heads, self.head
            )

        after(0)
        hidden = np.triu(np.ones((len(tokens), len(tokens)), bool), 1)
        for l in range(self.layers):
            n = norm(x, self.attn_norm[l])
            q, k = turn(n @ self.q[l].T, self.heads), turn(n @ self.k[l].T, self.kv)
            v = (n @ self.v[l].T).reshape(len(tokens), self.kv, self.head)
            k, v = (np.repeat(a, self.heads // self.kv, 1) for a in (k, v))
            w = np.einsum("thd,shd->hts", q, k) / np.sqrt(self.head)
            w[:, hidden] = -np.inf
            w = np.exp(w - w.max(-1, keepdims=True))
            w /= w.sum(-1, keepdims=True)
            x = x + np.einsum("hts,shd->thd", w, v).reshape(len(tokens), -1) @ self.o[l].T
            n = norm(x, self.ffn_norm[l])
            g = n @ self.gate[l].T
            x = x + (g / (1 + np.exp(-g)) * (n @ self.up[l].T)) @ self.down[l].T
            after(l + 1)
        return np.array(states), norm(x, self.norm) @ self.output.T

    def write_gguf(self, path, template=None):
        tensors = [("token_embd.weight", self.embedding), ("output_norm.weight", self.norm)]
        if not self.tied:
            tensors.append(("output.weight", self.output))
        for l in range(self.layers):
            for name in ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_down", "ffn_up"):
                field = {"attn_q": "q", "attn_k": "k", "attn_v": "v", "attn_output": "o"}.get(name, name.replace("ffn_", "") if name != "ffn_norm" else name)
                tensors.append((f"blk.{l}.{name}.weight", getattr(self, field)[l]))

        def text(s):
            s = s if isinstance(s, bytes) else s.encode()
            return struct.pack("<Q", len(s)) + s

        def piece(i):
            return {0: b"<unk>", BOS: b"<s>", EOS: b"</s>"}.get(i, self.pieces[i].replace(b" ", "▁".encode()))

        u32, f32 = (lambda v: struct.pack("<II", 4, v)), (lambda v: struct.pack("<If", 6, v))
        kind = [2 if i == 0 else 3 if i < 3 else 6 if i < 259 else 1 for i in range(self.vocab)]
        string = lambda v: struct.pack("<I", 8) + text(v)
        array = lambda t, items: struct.pack("<IIQ", 9, t, len(items)) + b"".join(items)
        keys = {
            "general.architecture": string("llama"), "general.name": string("stories260K"),
            "llama.block_count": u32(self.layers), "llama.context_length": u32(self.length),
            "llama.embedding_length": u32(self.dim), "llama.feed_forward_length": u32(self.ff),
            "llama.attention.head_count": u32(self.heads), "llama.attention.head_count_kv": u32(self.kv),
            "llama.rope.dimension_count": u32(self.head), "llama.attention.layer_norm_rms_epsilon": f32(1e-5),
            "tokenizer.ggml.model": string("llama"),
            "tokenizer.ggml.tokens": array(8, [text(piece(i)) for i in range(self.vocab)]),
            "tokenizer.ggml.scores": array(6, [struct.pack("<f", s) for s in self.scores]),
            "tokenizer.ggml.token_type": array(5, [struct.pack("<i", k) for k in kind]),
            "tokenizer.ggml.bos_token_id": u32(BOS), "tokenizer.ggml.eos_token_id": u32(EOS),
        }
        if template:
            keys["tokenizer.chat_template"] = string(template)
        out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
        out += b"".join(text(k) + v for k, v in keys.items())
        at, data = 0, b""
        for name, a in tensors:
            out += text(name) + struct.pack("<I", a.ndim) + struct.pack(f"<{a.ndim}Q", *a.shape[::-1])
            out += struct.pack("<IQ", 0, len(data))
            data += a.astype("<f4").tobytes()
            data += bytes(-len(data) % 32)
        out += bytes(-len(out) % 32)
        with open(path, "wb") as f:
            f.write(out + data)


if __name__ == "__main__":
    _, verb, model, tok, path = sys.argv
    Stories(model, tok).write_gguf(path)
