"""What all estimators share: a budget, a count of fits, a certificate, a file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dp import _fits
from dp._output import write_new
from dp.errors import DpError


@dataclass(eq=False, repr=False)
class Certified(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fits are counted, and whose model has a certificate."""

    epsilon: float | None = None
    delta: float | None = None
    _: KW_ONLY
    random_state: Any = None
    allow_refit: bool = False

    model_: Any = field(init=False)

    # Fits --------------------------------------------------------------------------------------------------------------

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        _fits.join(copy, self)
        return copy

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_fits": _fits.state(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        kept = state.pop("_fits")
        super().__setstate__(state)
        _fits.restore(self, kept)

    def _check_budget(self) -> None:
        """Refuses a fit without a budget, before anything is read."""
        if self.epsilon is None:
            raise DpError(
                "epsilon is missing: how much privacy to spend",
                "usage.missing",
                "epsilon",
                "a number greater than 0; 1 is a common choice, smaller is more private",
                "add epsilon=1.0",
            )

    @contextmanager
    def _keeping_columns(self) -> Iterator[None]:
        """Leaves the columns that belong to the model as they were, if no other model is released."""
        names = ("n_features_in_", "feature_names_in_")
        kept = {name: getattr(self, name) for name in names if hasattr(self, name)}
        model = getattr(self, "model_", None)
        try:
            yield
        except BaseException:
            if model is not None and self.model_ is model:
                for name in names:
                    if name in kept:
                        setattr(self, name, kept[name])
                    elif hasattr(self, name):
                        delattr(self, name)
            raise

    # After the training ------------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _fitted(self, name: str) -> Any:
        # An `AttributeError` before `fit`, so that `hasattr` works.
        try:
            return self.model_
        except AttributeError:
            raise AttributeError(f"{type(self).__name__} has no `{name}` before it is fitted") from None

    @property
    def certificate_(self) -> dict[str, Any]:
        """The certificate, as in the model file."""
        return dict(json.loads(self._fitted("certificate_").certificate))

    @property
    def epsilon_(self) -> float:
        """Epsilon of the guarantee; infinite if there is none."""
        reached = self._fitted("epsilon_").reached
        return float(reached[0]) if reached else math.inf

    @property
    def delta_(self) -> float:
        """Delta of the guarantee."""
        reached = self._fitted("delta_").reached
        return float(reached[1]) if reached else 0.0

    @property
    def weights_(self) -> NDArray[np.float64]:
        """The released weights: one row for each score, in the order of the features; of a ranker, all weights."""
        return np.asarray(self._fitted("weights_").weights)

    def verify(self) -> tuple[float, float]:
        """Recomputes the guarantee from the model and its certificate alone; returns epsilon and delta.

        Raises:
            VerificationError: if the guarantee does not follow, or none is claimed.
        """
        check_is_fitted(self)
        epsilon, delta = self.model_.verify()
        return float(epsilon), float(delta)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a model file, which ``dp verify``, ``dp predict`` and :func:`dp.load` read.

        Raises:
            FileExistsError: for a file that exists: none is replaced.
        """
        check_is_fitted(self)
        write_new(Path(path), self.model_.text())


def refuse_keywords(keywords: dict[str, Any]) -> None:
    """Refuses further arguments of ``fit``; says why of weights.

    Raises:
        TypeError: if there are any.
    """
    if "sample_weight" in keywords:
        raise TypeError(
            "sample_weight is refused: a weight multiplies the influence of a person, which the noise would have to cover"
        )
    if keywords:
        raise TypeError(f"fit() got an unexpected keyword argument {next(iter(keywords))!r}")


def numbered(columns: int) -> list[str]:
    """Returns the names of columns that have none."""
    return [f"x{i}" for i in range(columns)]
