"""Model files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dp import _dp, _fits
from dp._certified import numbered
from dp._schema import text_of
from dp.errors import DpError
from dp.linear import DPLinearSVC, DPLogisticRegression, DPRidge
from dp.ranker import DPRanker

__all__ = ["load"]


def load(
    path: str | os.PathLike[str], classes: Sequence[Any] | None = None
) -> DPLogisticRegression | DPLinearSVC | DPRidge | DPRanker:
    """Reads a model file of the program ``dp`` or of ``save`` as a fitted estimator, which predicts and cannot be fitted again.

    A frame may have further columns.

    Args:
        classes: the classes as they are in ``y``, such as ``[0, 1]``; otherwise the texts that the file holds.

    Raises:
        VerificationError: for a file that is no model, or whose seals are broken.
    """
    model = _dp.load(Path(path).read_bytes())
    if isinstance(model, _dp.Ranker):
        return _loaded_ranker(model)
    schema = model.schema
    if schema is not None:
        # Without the comments for whoever reviews it.
        schema = "".join(line for line in schema.splitlines(keepends=True) if not line.startswith("#"))
    else:
        raise DpError("the model is not one of a table", "model.format", None, "a model of a table with columns")
    estimator: DPLogisticRegression | DPLinearSVC | DPRidge
    reached = model.reached
    budget = reached if reached else (None, None)
    if model.kind == "number":
        estimator = DPRidge(*budget, schema=schema, loss=model.loss.split(":")[0])
    elif model.loss.startswith(("huber-svm", "hinge")):
        estimator = DPLinearSVC(*budget, schema=schema)
    else:
        estimator = DPLogisticRegression(*budget, schema=schema)
    estimator.model_ = model
    estimator._is_loaded = True
    names = model.columns
    _name(estimator, names)
    if not isinstance(estimator, DPRidge):
        estimator.classes_ = np.array(model.classes) if classes is None else _classes(classes, model.classes)
    _fits.lineage(estimator).fits += 1
    return estimator


def _classes(classes: Sequence[Any], texts: list[str]) -> Any:
    """Returns the classes in the order of the model."""
    by_text = {text_of(value): value for value in classes}
    if sorted(by_text) != sorted(texts) or len(classes) != len(texts):
        raise DpError(f"classes is {list(classes)!r}", "usage.value", "classes", f"those of the model: {texts}")
    return np.array([by_text[text] for text in texts])


def _name(estimator: Any, names: list[str]) -> None:
    """Sets the columns of a loaded estimator."""
    estimator.n_features_in_ = len(names)
    if names != numbered(len(names)):
        estimator.feature_names_in_ = np.array(names, dtype=object)


def _loaded_ranker(ranker: _dp.Ranker) -> DPRanker:
    reached = ranker.reached
    estimator = DPRanker(*(reached if reached else (None, None)))
    estimator.model_ = ranker
    _name(estimator, ranker.features or numbered(ranker.width))
    _fits.lineage(estimator).fits += 1
    return estimator
