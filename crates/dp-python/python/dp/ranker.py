"""Private rankers of lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from dp import _arguments, _columns, _dp, _fits
from dp._certified import Certified, numbered, refuse_keywords
from dp.errors import DataError, DpError

__all__ = ["DPRanker"]


@dataclass(eq=False, repr=False, kw_only=True)
class DPRanker(Certified):
    """Learns to rank the documents of lists, with differential privacy.

    Args:
        epsilon: epsilon of the guarantee; there is no default.
        delta: delta of the guarantee, above 0 and far below one over the number of lists; there is no default.
        largest_grade: the largest possible grade, publicly known.
        protect: ``"grades"`` of one list (documents and features are public), ``"lists"`` or ``"documents"``.
        adjacency: ``"add-remove"`` or ``"replace-one"`` for lists; what else is protected has one relation.
        loss: ``"bayesrank"``, ``"listnet"`` or ``"listmle"``; ``k`` is the number of its top positions.
        scorer: ``"linear"``, or ``"mlp"``: a network of ``hidden`` units with an ``activation`` (``"relu"``, ``"tanh"``), whose
            spectral norm may be normalised (``normalise``: ``"always"``, ``"above-one"``).
        normalise_features: True maps each feature of a list to [0, 1] by its range in that list.
        updates, batch_size, step, clip, scaling, thin: as the flags of ``dp rank train``.
        random_state, allow_refit: as for :class:`DPLogisticRegression`.

    >>> import numpy as np
    >>> from dp import DPRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 3))
    >>> grades = (X[:, 0] > 0.6).astype(int)
    >>> ranker = DPRanker(epsilon=2.0, delta=1e-5, largest_grade=1).fit(X, grades, group=[5] * 400)
    >>> float(np.corrcoef(ranker.predict(X), X[:, 0])[0, 1]) > 0.9
    True
    """

    largest_grade: int = 2
    protect: str = "grades"
    adjacency: str | None = None
    loss: str = "bayesrank"
    k: int | None = None
    scorer: str = "linear"
    hidden: int | None = None
    activation: str | None = None
    normalise: str | None = None
    normalise_features: bool = False
    updates: int | None = None
    batch_size: int | None = None
    step: float | None = None
    clip: float | None = None
    scaling: str = "clip"
    thin: bool = False

    def _matrix(self, X: Any, reset: bool) -> NDArray[np.float64]:
        if _columns.is_frame(X):
            _columns.check_names(X)
        return np.ascontiguousarray(validate_data(self, X, reset=reset, dtype=np.float64))

    def fit(self, X: Any, y: Any, group: Any = None, qid: Any = None, **refused: Any) -> DPRanker:
        """Trains on documents X with grades y. Spends ``epsilon`` and ``delta``.

        Args:
            group: the number of documents of each list, one after another; or
            qid: the identifier of each document's list; the documents of a list follow one another.

        Raises:
            DpError: for arguments that are not usable; DataError for records; PrivacyError where no guarantee is possible, or a
                fit is not allowed.
        """
        refuse_keywords(refused)
        self._check_budget()
        with self._keeping_columns():
            self._fit(X, y, group, qid)
        return self

    def _fit(self, X: Any, y: Any, group: Any, qid: Any) -> None:
        matrix = self._matrix(X, reset=True)
        sizes = _sizes(len(matrix), group, qid)
        grades = column_or_1d(y)
        if len(grades) != len(matrix):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(matrix), len(grades)]}")
        if grades.dtype.kind not in "iufb" or np.any((grades < 0) | (np.trunc(grades) != grades) | (grades > 2**31)):
            raise DpError("y holds something else than grades", "usage.value", "y", "whole numbers of at least 0")
        names = [str(name) for name in getattr(self, "feature_names_in_", numbered(matrix.shape[1]))]
        options = {name: value for name, value in self.get_params().items() if name not in ("random_state", "allow_refit")}
        options["seed"] = _arguments.seed(self.random_state, stacklevel=4)
        with _fits.counted(self, self.allow_refit):
            ranker = _dp.train_ranker(matrix, grades.astype(np.uint32), sizes, names, options)
        self.model_ = ranker

    def predict(self, X: Any, group: Any = None, qid: Any = None) -> NDArray[np.float64]:
        """Returns the score of each document; the larger comes first.

        ``group`` or ``qid`` is needed where features are mapped to [0, 1] within each list.
        """
        check_is_fitted(self)
        matrix = self._matrix(X, reset=False)
        if group is None and qid is None and not self.model_.normalises_features:
            group = [len(matrix)]
        return np.asarray(self.model_.predict(matrix, _sizes(len(matrix), group, qid)))

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The weights of the features; a network has none of its own (``weights_``)."""
        model = self._fitted("coef_")
        if not model.is_linear:
            raise AttributeError("a network has no `coef_`: `weights_` holds all its weights")
        return np.asarray(model.weights)


def _is_missing(identifier: Any) -> bool:
    return identifier is None or type(identifier).__name__ in ("NAType", "NaTType") or bool(identifier != identifier)


def _sizes(rows: int, group: Any, qid: Any) -> NDArray[np.uint64]:
    """Returns the number of documents of each list."""
    if (group is None) == (qid is None):
        raise DpError(
            "the lists are not known" if group is None else "group and qid say the same",
            "usage.missing" if group is None else "usage.conflict",
            "group",
            "group: the number of documents of each list; or qid: the list of each document",
        )
    if group is not None:
        sizes = np.asarray(group)
        if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or np.any(sizes < 1):
            raise DpError("group holds something else than sizes", "usage.value", "group", "whole numbers of at least 1")
        if int(sizes.sum()) != rows:
            raise DpError(f"group adds up to {int(sizes.sum())}", "usage.value", "group", f"{rows}, the number of rows of X")
        return sizes.astype(np.uint64)
    ids = np.asarray(qid)
    if ids.shape != (rows,):
        raise DpError(f"qid is of shape {ids.shape}", "usage.value", "qid", f"one identifier for each of {rows} rows")
    if any(_is_missing(one) for one in ids.tolist()):
        raise DataError("qid has missing values", "usage.value", "qid", "an identifier for each row")
    starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    if len(set(ids[starts].tolist())) < len(starts):
        raise DpError(
            "the documents of a list do not follow one another",
            "usage.value",
            "qid",
            "all documents of a list in one place: two people may share an identifier",
        )
    return np.diff(np.append(starts, rows)).astype(np.uint64)
