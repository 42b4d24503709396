"""Language models through Python, on a tiny model with random weights: against the program and itself."""
import os
import subprocess
import threading

import numpy as np
import pytest

import cgam
from cgam.lm import Edit, Model, load_vectors, save_vectors

TEXT = "The capital of France is"


@pytest.fixture(scope="module")
def path(tiny_model):
    return tiny_model


@pytest.fixture(scope="module")
def model(path):
    return Model(path)


def test_states_have_their_shapes(model):
    tokens = model.tokenize(TEXT)
    rows = model.layers + 1
    every = model.states(TEXT, tokens="all", exact=True)
    assert every.shape == (rows, len(tokens), model.width) and every.dtype == np.float32
    last = model.states(TEXT, exact=True)
    np.testing.assert_allclose(last, every[:, -1], rtol=1e-4, atol=1e-5)
    two = model.states([TEXT, "of"], exact=True)
    assert two.shape == (2, rows, model.width)
    np.testing.assert_allclose(two[0], last, rtol=1e-4, atol=1e-5)
    some = model.states([tokens], layers=[0, model.layers], exact=True)
    np.testing.assert_allclose(some[0], last[[0, -1]], rtol=1e-4, atol=1e-5)
    apart = np.frombuffer(b"x" + np.array(tokens, np.int32).tobytes(), np.int32, offset=1)  # between addresses
    np.testing.assert_array_equal(model.states([apart], exact=True), model.states([tokens], exact=True))
    parts = model.states([TEXT, "of"], tokens="all", exact=True)
    assert [p.shape[1] for p in parts] == [len(tokens), len(model.tokenize("of"))]


def test_states_are_the_programs(model, path, program, tmp_path):
    if "lm states" not in cgam.verbs():
        pytest.skip("the program has no lm states")
    saved = tmp_path / "h.npy"
    program("lm", "states", "--model", path, "--prompt", TEXT, "--tokens", "all", "--exact", "--save", saved)
    np.testing.assert_array_equal(np.load(saved), model.states(TEXT, tokens="all", exact=True))


def test_edits(model, rng):
    """What is added after a layer is there, and later layers see it."""
    v = rng.standard_normal(model.width).astype(np.float32)
    plain = model.states(TEXT, tokens="all", exact=True)
    edited = model.states(TEXT, tokens="all", exact=True, edits=[Edit(1, v, 2.0, positions="last")])
    np.testing.assert_array_equal(edited[0], plain[0])
    np.testing.assert_allclose(edited[1, -1], plain[1, -1] + 2 * v, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(edited[1, :-1], plain[1, :-1])
    assert np.abs(edited[2, -1] - plain[2, -1]).max() > 1e-3
    replaced = model.states(TEXT, tokens="all", exact=True, edits=[Edit(1, v, kind="replace", positions=(1, 2))])
    np.testing.assert_allclose(replaced[1, 1:3], np.stack([v, v]), rtol=1e-6)


def test_defaults_of_edits_are_the_librarys(model, rng):
    """Once, added, at the prompt's last token; and as many edits as one likes."""
    v = rng.standard_normal(model.width).astype(np.float32)
    plain = model.states(TEXT, tokens="all", exact=True)
    edited = model.states(TEXT, tokens="all", exact=True, edits=[Edit(1, v)])
    np.testing.assert_allclose(edited[1, -1], plain[1, -1] + v, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(edited[1, :-1], plain[1, :-1])
    many = model.states(TEXT, tokens="all", exact=True, edits=[Edit(1, v, 1 / 64)] * 64)
    np.testing.assert_allclose(many, edited, rtol=1e-3, atol=1e-4)


def test_text(model, rng):
    """By the plain pass: libllama's threads wait for each other on a busy machine."""
    def write(**options):
        return model.generate(TEXT, max_tokens=4, exact=True, **options)

    text = write()
    assert len(text.tokens) <= 4 and text.text == write().text and text.stop in ("length", "eos")
    assert all(t.log_p <= 0 and t.neff >= 1 for t in text.tokens)
    v = 50 * rng.standard_normal(model.width).astype(np.float32)
    assert [t.id for t in write(vectors={1: (v, 0.0)}).tokens] == [t.id for t in text.tokens]
    assert [t.log_p for t in write(vectors={1: (v, 1.0)}).tokens] != [t.log_p for t in text.tokens]
    sampled = [write(temperature=2.0, seed=s).text for s in (1, 1, 2, 3)]
    assert sampled[0] == sampled[1] and len(set(sampled)) > 1
    assert len(model.generate(model.tokenize(TEXT), max_tokens=1).tokens) == 1


def final_log_p(model, text):
    """Log-probabilities of what follows, by hand: final norm, unembedding, softmax."""
    h = model.states(text, exact=True).astype(float)[-1]
    scores = model.bank("gain").score(h / np.sqrt((h * h).mean() + 1e-5))
    return scores - scores.max() - np.log(np.exp(scores - scores.max()).sum())


def test_scores_by_hand(model):
    log_p = final_log_p(model, TEXT)
    before = model.tokenize(TEXT)
    behind = {c: model.tokenize(TEXT + c) for c in (" x", " y", "z", " x y")}
    assert all(tokens[:len(before)] == before for tokens in behind.values())
    tokens = {c: whole[len(before):] for c, whole in behind.items()}
    got = model.score(TEXT, list(tokens), exact=True)
    np.testing.assert_array_equal(got, model.score(TEXT, list(tokens.values()), exact=True))
    np.testing.assert_array_equal(got, model.score(before, list(tokens.values()), exact=True))
    for (c, ids), score in zip(tokens.items(), got):
        want = sum(final_log_p(model, before + ids[:k])[ids[k]] for k in range(len(ids)))
        assert score == pytest.approx(want, abs=2e-3 * len(ids))
    three = list(tokens.values())[:3]
    np.testing.assert_allclose(model.score(TEXT, three * 100, exact=True), np.tile(got[:3], 100), atol=1e-4)
    with pytest.raises(ValueError, match="is empty"):
        model.score(TEXT, [])
    with pytest.raises(ValueError, match="continuation ''"):
        model.score(TEXT, [""])
    first = model.generate(TEXT, max_tokens=1, exact=True).tokens[0]
    assert first.id == int(np.argmax(log_p)) and first.log_p == pytest.approx(log_p.max(), abs=2e-3)


def test_lens(model):
    seen = model.lens(TEXT, top=3, exact=True)
    shape = (model.layers + 1, len(seen.tokens))
    assert seen.neff.shape == seen.kl_final.shape == shape and seen.top_p.shape == (*shape, 3)
    assert np.all(seen.neff >= 1 - 1e-9) and np.all(seen.kl_final[-1] == pytest.approx(0, abs=1e-5))
    assert np.all(seen.rank_final[-1] == 0)
    # by hand: the unembedding as a bank, states through the final norm have the softmax of its scores
    bank = model.bank("gain")
    h = model.states(TEXT, tokens="all", exact=True).astype(float)[-1, -1]
    scores = bank.score(h / np.sqrt((h * h).mean() + 1e-5))
    p = np.exp(scores - scores.max())
    assert int(np.argmax(p)) == seen.top_ids[-1, -1, 0]
    assert seen.top_p[-1, -1, 0] == pytest.approx(p.max() / p.sum(), rel=1e-3)
    assert bank.shape == (model.vocab, model.width)


def test_vectors(model, tmp_path):
    pairs = [("good day", "bad day"), ("good food", "bad food")]
    v = model.vectors(pairs, exact=True)
    assert v.shape == (model.layers + 1, model.width)
    plus, minus = (model.states(list(side), exact=True) for side in zip(*pairs))
    np.testing.assert_allclose(v, (plus - minus).mean(0), rtol=1e-5, atol=1e-6)
    assert model.vectors(pairs, kind="pca", exact=True).shape == v.shape
    for name in ("v.npy", "v.safetensors"):
        assert save_vectors(tmp_path / name, v) == 0
        np.testing.assert_array_equal(load_vectors(tmp_path / name), v)
    save_vectors(tmp_path / "v.gguf", v, architecture=model.architecture)
    np.testing.assert_array_equal(load_vectors(tmp_path / "v.gguf")[2:], v[2:])


def test_threads_take_turns(model):
    want = model.states(TEXT, exact=True)
    got = [None] * 4

    def work(i):
        got[i] = model.states(TEXT, exact=True)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for h in got:
        np.testing.assert_array_equal(h, want)


def test_wrong_words(model, tmp_path):
    for call in (lambda: model.states([]), lambda: model.states([[]]), lambda: model.states([[10**6]]),
                 lambda: model.states(TEXT, layers=[99]), lambda: model.states(TEXT, layers=[2, 1]),
                 lambda: model.states(TEXT, tokens="first"), lambda: model.generate(TEXT, vectors={1: np.ones(3)}),
                 lambda: model.states(TEXT, edits=[Edit(1, np.ones(model.width), kind="x")]),
                 lambda: model.states(TEXT, edits=[Edit(99, np.ones(model.width))]),
                 lambda: model.states(TEXT, edits=[Edit(1, np.ones(model.width), positions="x")]),
                 lambda: model.generate(TEXT, temperature=-1.0), lambda: model.lens(TEXT, lens="x"),
                 lambda: model.vectors([]), lambda: model.bank("x"), lambda: model.piece(10**6),
                 lambda: model.states(TEXT, edits=[Edit(1, np.ones(model.width) * 1j)]),
                 lambda: model.states(TEXT, edits=[Edit(1, np.ones(model.width) * 1e300)]),
                 lambda: save_vectors(tmp_path / "x.npy", np.full((2, 3), "1")),
                 lambda: load_vectors(tmp_path / "x.bin"), lambda: save_vectors(tmp_path / "x.npy", np.ones(3))):
        with pytest.raises((ValueError, cgam.Error)):
            call()
    with pytest.raises(FileNotFoundError):
        Model(tmp_path / "none.gguf")
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(cgam.Error):
        Model(tmp_path / "bad.gguf")


def test_without_libllama(path, monkeypatch):
    """What is missing is said when a model is opened, not before."""
    script = ("import cgam\ntry:\n    cgam.lm.Model(%r)\n    print('opened')\nexcept FileNotFoundError as e:\n    print(e)"
              % str(path))
    environment = dict(os.environ, CGAM_LLAMA="/nonexistent", XDG_CACHE_HOME="/nonexistent", HOME="/nonexistent")
    import sys
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and ("libllama" in done.stdout or "opened" in done.stdout), done.stderr


def test_parts_sum_to_the_step_of_the_stream(model):
    stream = model.states(TEXT, tokens="all", exact=True)
    attention, mlp, heads = (model.states(TEXT, tokens="all", exact=True, part=p) for p in ("attention", "mlp", "heads"))
    assert heads.shape == (model.layers, stream.shape[1], model.heads, model.width)
    scale = np.abs(stream).max()
    np.testing.assert_allclose(heads.sum(2), attention, atol=4e-6 * scale)
    np.testing.assert_allclose(attention + mlp, np.diff(stream, axis=0), atol=4e-6 * scale)
    two = model.states([TEXT, "of"], part="heads", layers=[2], exact=True)
    assert two.shape == (2, 1, model.heads, model.width)
    np.testing.assert_allclose(two[0, 0], heads[1, -1], atol=4e-6 * scale)
    with pytest.raises(ValueError, match="part"):
        model.states(TEXT, part="stream")
    with pytest.raises(cgam.Error, match="layer 0"):
        model.states(TEXT, part="mlp", layers=[0, 1])
