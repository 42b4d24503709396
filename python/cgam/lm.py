"""Language models: hidden states of any GGUF model as NumPy arrays, text under edits, the lens, vectors.

    m = cgam.lm.Model()                                  # the default model, or a path
    h = m.states(["The capital of France is"])           # (prompts, layers + 1, width)
    m.generate("Once upon a time", vectors={12: (v, 4.0)}).text

Layers are counted 0 .. L: 0 is the embedding, l the residual stream after block l. libllama is loaded when the
first model is opened; `cgam lm get` fetches it and the default model.
"""
import dataclasses
import os
import threading
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._arrays import Array, f32
from .bank import Bank, count_threads
from .results import Shown, axes
from .verbs import default

__all__ = ["Edit", "Lens", "Model", "Text", "Token", "load_vectors", "save_vectors"]

F32 = NDArray[np.float32]
_TOGETHER = 256  # continuations per call of the extension
Path = Union[str, "os.PathLike[str]"]


_EDIT: Dict[str, Any] = _core.edit_default()


@dataclasses.dataclass(frozen=True)
class Edit:
    """A change of the residual stream after block `layer`, before any later block reads it.

    kind is "add" (h + scale v) or "replace" (scale v); positions are "last", "prompt", "generated", "all", or
    (from, to), both included, negative from the end of the prompt. The defaults are the library's: "add", once, at
    the prompt's last token."""

    layer: int
    vector: Any  #: (width,)
    scale: float = _EDIT["scale"]
    kind: str = _EDIT["kind"]
    positions: Union[str, Tuple[int, int]] = _EDIT["positions"]


@dataclasses.dataclass(frozen=True)
class Token:
    id: int
    piece: str
    log_p: float  #: when it was drawn, at temperature 1 and among all tokens
    neff: float  #: exp of the entropy of that distribution


@dataclasses.dataclass(frozen=True, repr=False)
class Text(Shown):
    """A generated text."""

    text: str
    tokens: List[Token]
    stop: str  #: "eos", "length" or "word"

    _short = ("text", "stop")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Lens(Shown):
    """The layer x token table of a text: arrays (layers + 1, tokens)."""

    tokens: List[str]
    ids: NDArray[np.int32]
    neff: Array
    kl_final: Array  #: KL(final || layer) in nats
    rank_final: NDArray[np.int64]  #: of the final distribution's most probable word
    top_ids: NDArray[np.int32]  #: (layers + 1, tokens, top)
    top_p: Array
    top: List[List[str]]  #: the most probable word of each cell

    _short = ("tokens", "neff")

    def plot(self, ax: Any = None) -> Any:
        """Cells with their most probable word, darker for a smaller neff; requires matplotlib."""
        ax = axes(ax)
        cells = np.log(self.neff)
        ax.imshow(cells, origin="lower", aspect="auto", cmap="viridis")
        middle = (cells.min() + cells.max()) / 2
        for layer, row in enumerate(self.top):
            for at, word in enumerate(row):
                ax.text(at, layer, _printable(word)[:8], ha="center", va="center", fontsize=6,
                        color="black" if cells[layer, at] > middle else "white")
        ax.set_xticks(range(len(self.tokens)), [_printable(t) for t in self.tokens], rotation=60)
        ax.set_ylabel("layer")
        return ax


def _printable(word: str) -> str:
    """The printable part of a token, for a figure."""
    return "".join(c for c in word.strip() if c.isprintable() and ord(c) < 0x2000).replace("$", r"\$")


class Model:
    """A GGUF model. Threads may share it; calls wait for each other."""

    def __init__(self, path: Optional[Path] = None, *, threads: Optional[int] = None) -> None:
        self._handle = _core.model_open(None if path is None else os.fspath(path), count_threads(threads))
        info: Dict[str, Any] = _core.model_info(self._handle)
        self.layers: int = info["layers"]  #: L; states have L + 1
        self.heads: int = info["heads"]  #: of a block's attention; 0 if the file does not say
        self.width: int = info["width"]
        self.vocab: int = info["vocab"]
        self.context: int = info["context"]
        self.parameters: int = info["parameters"]
        self.tied: bool = info["tied"]
        self.exact: bool = info["exact"]  #: exact=True works
        self.name: str = info["name"]
        self.architecture: str = info["architecture"]
        self.file: str = info["file"]
        self._lens: Any = None
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"Model({self.file}: {self.layers} layers, width {self.width}, {self.vocab} words)"

    # ---- tokens

    def tokenize(self, text: str, *, begin: bool = True) -> List[int]:
        """Token ids; begin: add the beginning-of-sequence token, if the model has one."""
        with self._lock:
            tokens: List[int] = _core.tokenize(self._handle, text, begin)
        return tokens

    def piece(self, token: int) -> str:
        """A token as text."""
        with self._lock:
            return bytes(_core.piece(self._handle, token)).decode("utf-8", "replace")

    def chat(self, prompt: str, *, system: Optional[str] = None) -> List[int]:
        """Tokens of the beginning of a conversation, in the model's own template."""
        messages = (() if system is None else (("system", system),)) + (("user", prompt),)
        with self._lock:
            tokens: List[int] = _core.chat(self._handle, messages)
        return tokens

    def _prompt(self, prompt: Union[str, Sequence[int]]) -> NDArray[np.int32]:
        tokens = np.asarray(self.tokenize(prompt) if isinstance(prompt, str) else prompt)
        if tokens.ndim != 1 or tokens.dtype.kind not in "iu" or tokens.size == 0:
            raise ValueError("prompt: expected a text or at least one token id")
        if tokens.min() < 0 or tokens.max() >= self.vocab:
            raise ValueError(f"prompt: token ids must be from 0 to {self.vocab - 1}")
        return np.require(tokens, np.int32, ["C", "A"])

    def _edits(self, edits: Sequence[Edit], vectors: Optional[Mapping[int, Any]] = None) -> Tuple[Any, ...]:
        every, words, rows = [], [], []
        for layer, given in (vectors or {}).items():
            direction, scale = given if isinstance(given, tuple) else (given, _EDIT["scale"])
            every.append(Edit(layer, direction, scale, positions="all"))
        for e in [*every, *edits]:
            if e.kind not in ("add", "replace"):
                raise ValueError(f"edit: invalid kind '{e.kind}' (valid: add, replace)")
            v = f32(e.vector, "edit")
            if v.shape != (self.width,):
                raise ValueError(f"edit: vector of shape {v.shape}, expected ({self.width},)")
            place, first, last = (e.positions, 0, 0) if isinstance(e.positions, str) else ("range", *e.positions)
            words.append((e.layer, e.kind == "replace", place, first, last, float(e.scale)))
            rows.append(v)
        return tuple(words), np.stack(rows) if rows else None

    # ---- states

    def states(self, prompts: Union[str, Sequence[Any]], *, layers: Union[str, Sequence[int]] = "all",
               tokens: str = "last", edits: Sequence[Edit] = (), exact: bool = False,
               part: str = "residual") -> Union[F32, List[F32]]:
        """Hidden states, f32, or what each block adds to them.

        One prompt (a text, or a list of token ids) or a list of them.
        tokens "last": (layers, width) for one prompt, (prompts, layers, width) for a list;
        tokens "all": (layers, tokens, width) for one prompt, a list of such arrays for a list.
        part "attention", "mlp": the outputs of blocks 1 to L, whose sum is the step of the residual stream;
        "heads": what each head adds, (.., heads, width), whose sum is the attention's output.
        """
        one = isinstance(prompts, str) or (len(prompts) > 0 and isinstance(prompts[0], (int, np.integer)))
        if tokens not in ("last", "all"):
            raise ValueError(f"tokens: invalid value '{tokens}' (valid: last, all)")
        if part not in ("residual", "attention", "mlp", "heads"):
            raise ValueError(f"part: invalid value '{part}' (valid: residual, attention, mlp, heads)")
        with self._lock:
            words = [self._prompt(p) for p in ([prompts] if one else prompts)]
            if not words:
                raise ValueError("prompts: the list is empty")
            wanted = None if isinstance(layers, str) and layers == "all" else self._layers(layers)
            rows = self.layers + (part == "residual") if wanted is None else len(wanted)
            shape = (self.heads, self.width) if part == "heads" else (self.width,)
            out = [np.empty((rows, len(w) if tokens == "all" else 1, *shape), np.float32) for w in words]
            _core.observe(self._handle, words, wanted, tokens == "all", exact, self._edits(edits), out, part)
        if tokens == "all":
            return out[0] if one else out
        return out[0][:, 0] if one else np.stack([h[:, 0] for h in out])

    def _layers(self, layers: Any) -> NDArray[np.int64]:
        wanted = np.atleast_1d(np.asarray(layers))
        if wanted.dtype.kind not in "iu" or wanted.ndim != 1 or wanted.size == 0:
            raise ValueError("layers: expected 'all' or layer numbers")
        if wanted.min() < 0 or wanted.max() > self.layers or np.any(np.diff(wanted) <= 0):
            raise ValueError(f"layers: numbers must be from 0 to {self.layers}, in rising order")
        return np.require(wanted, np.int64, ["C", "A"])

    def lens(self, prompt: str, *, lens: str = "norm", top: Optional[int] = None, exact: bool = False) -> Lens:
        """The state of every token after every layer, read through the unembedding."""
        with self._lock:
            if self._lens is None:
                self._lens = _core.lens_new(self._handle)
            count = int(default("lm lens", "top")) if top is None else top
            rows, width, k, ids, cells, words = _core.lens_view(self._lens, prompt, lens, count, exact)
            token = np.frombuffer(ids, np.int32)
            cell_type, word_type = (np.dtype(layout) for layout in _core.lens_layouts())
            cell = np.frombuffer(cells, cell_type).reshape(width, rows).T
            word = np.frombuffer(words, word_type).reshape(width, rows, k).swapaxes(0, 1)
            names = {int(t): self.piece(int(t)) for t in np.unique(word["token"][..., :1])}
        best = [[names[int(t)] for t in row] for row in word["token"][..., 0]] if k else []
        return Lens([self.piece(int(t)) for t in token], token, cell["neff"].copy(), cell["kl_final"].copy(),
                    cell["rank_final"].copy(), word["token"].copy(), word["p"].copy(), best)

    # ---- text

    def generate(self, prompt: Union[str, Sequence[int]], *, vectors: Optional[Mapping[int, Any]] = None,
                 edits: Sequence[Edit] = (), max_tokens: Optional[int] = None,
                 temperature: Optional[float] = None, top_p: Optional[float] = None, seed: Optional[int] = None,
                 stop: Sequence[str] = (), system: Optional[str] = None, chat: bool = False,
                 exact: bool = False) -> Text:
        """Continues a prompt, greedily unless a temperature is given.

        vectors  {layer: v or (v, scale)}: added at all positions, as control vectors are
        edits    other edits, applied in the order given
        chat     the prompt is a user's message in the model's template; system: the message before it
        """
        words = [stop] if isinstance(stop, str) else list(stop)
        options = {"max_tokens": max_tokens, "temperature": temperature, "top_p": top_p, "seed": seed,
                   "exact": exact}
        with self._lock:
            if (chat or system is not None) and isinstance(prompt, str):
                prompt = self.chat(prompt, system=system)
            text, tokens, end = _core.generate(self._handle, self._prompt(prompt), options, tuple(words),
                                               self._edits(edits, vectors))
            drawn = [Token(i, self.piece(i), log_p, neff) for i, log_p, neff in tokens]
        return Text(bytes(text).decode("utf-8", "replace"), drawn, end)

    def _follows(self, prompt: Union[str, Sequence[int]], before: NDArray[np.int32],
                 continuation: Union[str, Sequence[int]]) -> NDArray[np.int32]:
        """Tokens of a continuation as tokenized after the prompt, not alone."""
        if not isinstance(prompt, str) or not isinstance(continuation, str):
            return self._prompt(self.tokenize(continuation, begin=False) if isinstance(continuation, str)
                                else continuation)
        whole = self._prompt(prompt + continuation)
        if len(whole) <= len(before) or np.any(whole[:len(before)] != before):
            raise ValueError(f"continuation {continuation!r}: it has no tokens of its own, or merges with the prompt's last token")
        return np.ascontiguousarray(whole[len(before):])

    def score(self, prompt: Union[str, Sequence[int]], continuations: Sequence[Union[str, Sequence[int]]], *,
              exact: bool = False) -> Array:
        """Log-probability of each continuation as a whole, (continuations,).

        A text is appended to the prompt unchanged: after "Once" comes " upon", with its blank. If the prompt is given
        as tokens, a text is tokenized as the beginning of a text; continuations may be tokens too."""
        out = np.empty(len(continuations))
        with self._lock:
            before = self._prompt(prompt)
            parts = [self._follows(prompt, before, c) for c in continuations]
            if not parts:
                raise ValueError("continuations: the list is empty")
            for at in range(0, len(parts), _TOGETHER):
                _core.score(self._handle, before, parts[at:at + _TOGETHER], exact, out[at:at + _TOGETHER])
        return out

    # ---- memories and directions

    def bank(self, lens: str = "raw", dtype: str = "f32") -> Bank:
        """The unembedding as a bank, (vocab, width); "gain": rows times the final norm's weights."""
        bank = Bank.__new__(Bank)
        with self._lock:
            bank._take(_core.model_bank(self._handle, lens, dtype))
        return bank

    def vectors(self, pairs: Sequence[Tuple[str, str]], *, kind: str = "mean", exact: bool = False) -> F32:
        """A direction for each layer, (layers + 1, width), from the state of the last token of the first text of a
        pair minus that of the second; kind "mean" or "pca"."""
        if not pairs:
            raise ValueError("pairs: the list is empty")
        plus = self.states([a for a, _ in pairs], exact=exact)
        minus = self.states([b for _, b in pairs], exact=exact)
        assert isinstance(plus, np.ndarray) and isinstance(minus, np.ndarray)
        return _vectors(_core.contrast(len(pairs), self.layers + 1, self.width, plus - minus, kind))


def _vectors(found: Tuple[int, int, bytes]) -> F32:
    rows, width, data = found
    return np.frombuffer(data, np.float32).reshape(rows, width).copy()


def load_vectors(path: Path) -> F32:
    """Directions from .gguf (llama.cpp's control vectors), .npy or .safetensors: (layers + 1, width)."""
    return _vectors(_core.vector_load(os.fspath(path)))


def save_vectors(path: Path, vectors: Any, *, architecture: Optional[str] = None) -> int:
    """Writes directions; the extension of path selects the format. Returns the number of nonzero layers that it
    cannot store (.gguf cannot store layers 0 and 1)."""
    v = f32(vectors, "vectors")
    if v.ndim != 2:
        raise ValueError(f"vectors: shape {v.shape}, expected (layers + 1, width)")
    return int(_core.vector_save(os.fspath(path), v.shape[0], v.shape[1], v, architecture))
