"""The classifier, with scikit-learn where it is present."""
import pickle
import unittest
import warnings

import numpy as np
import pytest

import cgam


@pytest.fixture
def data(rng):
    centres = 3 * rng.standard_normal((3, 6))
    y = rng.integers(0, 3, 120)
    return centres, centres[y] + rng.standard_normal((120, 6)), np.array(["a", "b", "c"])[y]


def test_probabilities_are_sums_over_memories(data, rng):
    _, X, y = data
    clf = cgam.Classifier(beta=1.5).fit(X[:80], y[:80])
    p = clf.predict_proba(X[80:])
    assert p.shape == (40, 3) and np.allclose(p.sum(1), 1)
    w = np.exp(1.5 * X[80:] @ X[:80].T)
    want = np.stack([w[:, y[:80] == k].sum(1) for k in "abc"], 1) / w.sum(1, keepdims=True)
    np.testing.assert_allclose(p, want, atol=1e-9)
    assert (clf.predict(X[80:]) == y[80:]).mean() > 0.9


def test_a_context_decides(data):
    centres, X, y = data
    clf = cgam.Classifier(beta=1.0, lam=5.0).fit(X, y)
    middle = np.zeros((1, 6))
    for k, name in enumerate("abc"):
        assert clf.predict(middle, context=centres[k])[0] == name
        assert clf.predict(np.zeros((2, 6)), context=np.stack([centres[k]] * 2))[1] == name


def test_parameters_and_errors(data):
    _, X, y = data
    clf = cgam.Classifier(beta=2.0)
    assert clf.get_params()["beta"] == 2.0 and clf.set_params(beta=3.0).beta == 3.0
    with pytest.raises(ValueError, match="fitted"):
        clf.predict(X)
    with pytest.raises(ValueError):
        clf.fit(X, y[:3])
    with pytest.raises(ValueError):
        clf.fit(X, y).predict(X[0])
    with pytest.raises(ValueError, match="context: shape"):
        clf.predict(X[:2], context=X[:3])


def test_a_copy_by_pickle(data):
    _, X, y = data
    clf = cgam.Classifier(beta=1.0, normalize=True).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert pickle.loads(pickle.dumps(cgam.Classifier(beta=3.0))).beta == 3.0


@pytest.mark.parametrize("learn", ["memories", "projection"])
def test_it_learns_memories_or_a_projection(data, rng, learn):
    _, X, y = data
    near = X[:, :2] + rng.standard_normal((120, 2))
    clf = cgam.Classifier(learn=learn, per_class=2).fit(near[:80], y[:80])
    assert clf.bank_.n == 6 and clf.classes_.tolist() == ["a", "b", "c"]

    def loss(p):
        return -np.log(p[np.arange(80), np.searchsorted(clf.classes_, y[:80])]).mean()

    means = np.stack([near[:80][y[:80] == k].mean(0) for k in "abc"])
    start = cgam.Classifier().fit(means, clf.classes_).predict_proba(near[:80])
    p = clf.predict_proba(near[:80])
    assert np.allclose(p.sum(1), 1) and loss(p) < 0.9 * loss(start)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clf)).predict_proba(near), clf.predict_proba(near))
    assert cgam.Classifier(fit=learn).learn == learn and clf.get_params()["learn"] == learn


def test_a_projection_learns_what_contexts_mean(data, rng):
    _, X, y = data
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    weak = 0.05 * X + 0.3 * rng.standard_normal((120, 6))
    clf = cgam.Classifier(learn="projection").fit(weak[:80], y[:80], context=X[:80] @ turn)
    assert (clf.predict(weak[80:], context=X[80:] @ turn) == y[80:]).mean() > 0.9
    assert (clf.predict(weak[80:]) == y[80:]).mean() < 0.8


def test_what_cannot_be_learned(data):
    _, X, y = data
    for words, options, given in [("learn: invalid value 'W'", {"learn": "W"}, {}), ("per_class is 0", {"learn": "memories", "per_class": 0}, {}),
                                  ("per_class is 99", {"learn": "memories", "per_class": 99}, {}), ("context: a Classifier that", {}, {"context": X})]:
        with pytest.raises(ValueError, match=words):
            cgam.Classifier(**options).fit(X, y, **given)
    with pytest.raises(TypeError, match="no parameter 'depth'"):
        cgam.Classifier(depth=3)


@pytest.mark.parametrize("learn", [None, "memories", "projection"])
def test_what_scikit_learn_asks_of_a_classifier(learn):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator, check in checks.check_estimator(cgam.Classifier(learn=learn), generate_only=True):
            try:
                check(estimator)
            except unittest.SkipTest:  # pandas
                pass


def test_with_scikit_learn(data):
    selection = pytest.importorskip("sklearn.model_selection")
    from sklearn.base import clone, is_classifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    _, X, y = data
    clf = cgam.Classifier(beta=1.0)
    assert is_classifier(clf) and clone(clf).beta == 1.0
    assert selection.cross_val_score(make_pipeline(StandardScaler(), clf), X, y).mean() > 0.9
    found = selection.GridSearchCV(clf, {"beta": [0.1, 1.0]}).fit(X, y)
    assert found.best_score_ > 0.9
