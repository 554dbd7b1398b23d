"""Private choices among settings."""

from __future__ import annotations

import itertools
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from dp.errors import DpError
from dp.linear import Classifier

__all__ = ["DPGridSearch"]


@dataclass(eq=False, repr=False)
class DPGridSearch(BaseEstimator):  # type: ignore[misc]
    """A private choice among settings: the choice and the training together spend the estimator's epsilon and delta.

    Args:
        estimator: a :class:`DPLogisticRegression` or :class:`DPLinearSVC`, not fitted. For ``algorithm="auto"``, which
            chooses by public numbers already, ``bolt-on-convex`` is tuned.
        param_grid: values of ``lambda``, ``passes`` and ``batch_size``; all combinations are candidates.
        method: ``"portions"``: each combination is trained on its own part of the records, and one more part compares them;
            ``"composition"``: each is trained on the same nine tenths of the records, and the others compare
            them; the costs of all trainings compose;
            ``"random-stopping"``: the best of a random number of trainings on all records.
        trials: the mean number of trainings of random stopping; by default twice the number of combinations.
        trial_law: ``"logarithmic"``, ``"geometric"`` or ``"poisson"``, which needs a delta.

    After ``fit``: ``best_estimator_``, ``best_params_`` and ``best_index_``; None where random stopping trained no model.

    >>> import numpy as np
    >>> from dp import DPGridSearch, DPLogisticRegression
    >>> ages = np.arange(6000) % 90
    >>> model = DPLogisticRegression(epsilon=3.0, bounds=(0, 120), classes=[0, 1], delta=0.0)
    >>> search = DPGridSearch(model, {"lambda": [0.001, 0.1]}).fit(ages.reshape(-1, 1), (ages > 45).astype(int))
    >>> search.best_params_ in ({"lambda": 0.001}, {"lambda": 0.1})
    True
    >>> search.best_estimator_.epsilon_ <= 3.0
    True
    """

    estimator: Any
    param_grid: Any
    _: KW_ONLY
    method: str = "portions"
    trials: float | None = None
    trial_law: str = "logarithmic"

    def fit(self, X: Any, y: Any) -> DPGridSearch:
        """Chooses and trains on the rows of X and their classes y.

        Raises:
            DpError: for arguments that are not usable; DataError for records; PrivacyError for a fit that is not allowed.
        """
        if not isinstance(self.estimator, Classifier):
            message = f"estimator is a {type(self.estimator).__name__}"
            raise DpError(message, "usage.value", "estimator", "a DPLogisticRegression or a DPLinearSVC: mistakes are counted")
        if not isinstance(self.param_grid, dict) or not all(np.ndim(values) == 1 for values in self.param_grid.values()):
            raise DpError(f"param_grid is {self.param_grid!r}", "usage.value", "param_grid", "lists of values by name")
        tuned = ("lambda", "passes", "batch_size")
        for name in self.param_grid:
            if name not in tuned:
                raise DpError(f"param_grid names {name!r}", "usage.value", "param_grid", f"one of {tuned}")
        names = list(self.param_grid)
        grid = [dict(zip(names, values)) for values in itertools.product(*self.param_grid.values())]
        estimator = clone(self.estimator)
        if estimator.algorithm == "auto":
            estimator.algorithm = "bolt-on-convex"
        fixed = dict(estimator.settings or {})
        estimator._choice = {
            "grid": [{**fixed, **{name: _plain(value) for name, value in one.items()}} for one in grid],
            "method": self.method,
            "trials": self.trials,
            "trial_law": self.trial_law,
        }
        try:
            estimator.fit(X, y)
        finally:
            del estimator._choice
        chosen = estimator.model_.chosen
        self.best_index_ = None if chosen is False or chosen is None else int(chosen)
        self.best_params_ = None if self.best_index_ is None else grid[self.best_index_]
        self.best_estimator_ = None if self.best_index_ is None else estimator
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Returns the class of each row."""
        check_is_fitted(self, "best_estimator_")
        if self.best_estimator_ is None:
            raise DpError(
                "no model was trained: random stopping made no training", "predict.unknown", None, "a search that trained"
            )
        return np.asarray(self.best_estimator_.predict(X))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
