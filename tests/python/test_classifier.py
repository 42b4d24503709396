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


def test_what_scikit_learn_asks_of_a_classifier():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator, check in checks.check_estimator(cgam.Classifier(), generate_only=True):
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
