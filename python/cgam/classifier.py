"""A classifier: the bank is the training set, a context acts on the gates.

    clf = cgam.Classifier(beta=8.0).fit(X, y)
    clf.predict(X_new), clf.predict_proba(X_new, context=C)
    clf = cgam.Classifier(learn="memories").fit(X, y)           # a few learned memories instead

It follows scikit-learn's interface (clone, pipelines, cross-validation); scikit-learn is optional."""
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from ._arrays import Array, as_array, f64
from .bank import Bank
from .learn import fit
from .results import Recalls

if TYPE_CHECKING:
    class _Mixin:
        pass

    class _Base:
        def get_params(self, deep: bool = True) -> Dict[str, Any]: ...

        def set_params(self, **params: Any) -> "Classifier": ...

    _NotFitted = ValueError

    def _checked(X: Any) -> Any: ...

    def _checked_with_classes(X: Any, y: Any) -> Tuple[Any, Any]: ...
else:
    try:
        from sklearn.base import BaseEstimator as _Base
        from sklearn.base import ClassifierMixin as _Mixin
        from sklearn.exceptions import NotFittedError as _NotFitted
        from sklearn.utils.multiclass import check_classification_targets as _check_targets
        from sklearn.utils.validation import check_array as _checked
        from sklearn.utils.validation import check_X_y as _check_both

        def _checked_with_classes(X, y):
            X, y = _check_both(X, y, estimator="Classifier")
            _check_targets(y)
            return X, y
    except ImportError:
        _NotFitted = ValueError

        def _checked(X):
            return X

        def _checked_with_classes(X, y):
            return X, y

        class _Base:
            """get_params and set_params, as in scikit-learn."""

            _names = ("beta", "alpha", "lam", "mode", "normalize", "learn", "per_class")

            def get_params(self, deep=True):
                return {name: getattr(self, name) for name in self._names}

            def set_params(self, **params):
                for name, value in params.items():
                    if name not in self._names:
                        raise ValueError(f"no parameter '{name}'")
                    setattr(self, name, value)
                return self

        class _Mixin:
            _estimator_type = "classifier"


def _parts(X: Array, y: Any, classes: int, per_class: int) -> Tuple[Array, Any]:
    """Means of parts of each class, cut along its direction of largest variance, and the part of each row of X."""
    if per_class < 1:
        raise ValueError(f"per_class is {per_class}, it must be at least 1")
    means, part = np.zeros((classes * per_class, X.shape[1])), np.zeros(len(X), np.int64)
    for k in range(classes):
        own = np.flatnonzero(y == k)
        if len(own) < per_class:
            raise ValueError(f"per_class is {per_class}, class {k} has only {len(own)} rows")
        centred = X[own] - X[own].mean(0)
        along = centred @ np.linalg.eigh(centred.T @ centred)[1][:, -1] if per_class > 1 else np.zeros(len(own))
        for j, some in enumerate(np.array_split(own[np.argsort(along, kind="stable")], per_class)):
            part[some] = k * per_class + j
            means[k * per_class + j] = X[some].mean(0)
    return means, part


def _is_bfloat16(X: Any) -> bool:
    """True if X is bfloat16, which scikit-learn does not support."""
    return str(getattr(X, "dtype", "")).endswith("bfloat16")


class Classifier(_Mixin, _Base):
    """The probability of a class is the sum of the probabilities of its memories.

    beta, alpha, lam, mode: of the recall; None = the library's defaults. normalize: divide memories by their norms.

    learn      None: the training set is the bank
               "memories": the bank is per_class memories a class, learned together with beta from parts of the class's mean
               "projection": the bank is those means; learned are beta and the projection P through which gates see the
               context, which is X itself if none is given
    per_class  memories of a class, if something is learned

    `fit` is a method in scikit-learn, so the parameter is called learn; fit="memories" is also accepted."""

    def __init__(self, beta: Optional[float] = None, alpha: Optional[float] = None, lam: Optional[float] = None,
                 mode: Optional[str] = None, normalize: bool = False, learn: Optional[str] = None,
                 per_class: int = 1, **also: Any) -> None:
        self.beta = beta
        self.alpha = alpha
        self.lam = lam
        self.mode = mode
        self.normalize = normalize
        self.learn = also.pop("fit", learn)
        self.per_class = per_class
        if also:
            raise TypeError(f"no parameter '{min(also)}'")

    def fit(self, X: Any, y: Any, context: Any = None) -> "Classifier":
        """Keeps X (n, d) as memories, without a copy if it is f16, f32 or f64; or learns, with contexts (d_c,) or (n, d_c)."""
        if not _is_bfloat16(X):
            X, y = _checked_with_classes(X, y)
        rows, labels = as_array(X, "X"), as_array(y, "y")
        if rows.dtype.kind != "f" and not _is_bfloat16(rows):
            rows = f64(rows, "X")
        if rows.ndim != 2 or labels.shape != (rows.shape[0],):
            raise ValueError(f"X has shape {rows.shape} and y {labels.shape}, expected (n, d) and (n,)")
        if not rows.flags.c_contiguous:
            rows = np.ascontiguousarray(rows)
        self.classes_, self._class = np.unique(labels, return_inverse=True)
        self._rows = rows
        self._learned: Dict[str, Any] = {}
        self._own_context = False
        if self.learn is not None:
            self._learn(f64(rows, "X"), context)
        elif context is not None:
            raise ValueError("context: a Classifier that learns nothing takes contexts in predict only")
        self._open()
        self.n_features_in_ = rows.shape[1]
        return self

    def _learn(self, X: Array, context: Any) -> None:
        if self.learn not in ("memories", "projection"):
            raise ValueError(f"learn: invalid value {self.learn!r} (valid: None, memories, projection)")
        starts, targets = _parts(X, self._class, len(self.classes_), self.per_class)
        self._class = np.repeat(np.arange(len(self.classes_)), self.per_class)
        self._own_context = self.learn == "projection" and context is None
        self._rows = starts
        if len(starts) > 1:
            found = fit(starts, X, targets, X if self._own_context else context, held_out=0.0,
                        learn=("Z" if self.learn == "memories" else "P", "beta"), beta=self.beta, alpha=self.alpha,
                        lam=self.lam, mode=self.mode, normalize=self.normalize)
            self._rows = starts if found.Z is None else found.Z
            self._learned = {"alpha": found.alpha, "beta": found.beta, "lam": found.lam, "projection": found.P}

    def _open(self) -> None:
        self.bank_ = Bank(self._rows, normalize=self.normalize)

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "bank_"}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_rows" in state:
            self._open()

    def predict_proba(self, X: Any, context: Any = None) -> Array:
        """(n, classes). context: (d,) for all, or (n, d)."""
        if not hasattr(self, "bank_"):
            raise _NotFitted("this Classifier is not fitted yet")
        q = f64(X if _is_bfloat16(X) else _checked(X), "X")
        if q.ndim != 2:
            raise ValueError(f"X: shape {q.shape}, expected (n, {self.bank_.d})")
        options: Dict[str, Any] = {"alpha": self.alpha, "beta": self.beta, "lam": self.lam, **self._learned}
        plan = self.bank_.plan(self.mode, top=0, **options)
        out = np.zeros((len(q), len(self.classes_)))
        step = max(1, 2**24 // self.bank_.n)  # queries whose p is kept at once
        c = q if context is None and self._own_context else None if context is None else f64(context, "context")
        if c is not None and c.shape not in ((plan._dc,), (len(q), plan._dc)):
            raise ValueError(f"context: shape {c.shape}, expected ({plan._dc},) or {(len(q), plan._dc)}")
        for at in range(0, len(q), step):
            part = slice(at, at + step)
            own = c[part] if c is not None and c.ndim == 2 else c
            found = plan.recall(q[part], own, vectors=True)
            assert isinstance(found, Recalls) and found.p_all is not None
            for k in range(len(self.classes_)):
                out[part, k] = found.p_all[:, self._class == k].sum(1)
        return out

    def predict(self, X: Any, context: Any = None) -> NDArray[Any]:
        """The most probable class, (n,)."""
        best = self.predict_proba(X, context).argmax(1)
        labels: NDArray[Any] = self.classes_[best]
        return labels
