"""Fitted pipelines of scikit-learn from released models of lines."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, OneHotEncoder, add_dummy_feature
from sklearn.svm import LinearSVC

from dp._certified import numbered
from dp._schema import is_missing, text_of
from dp.errors import DpError


def _refused(what: str) -> DpError:
    return DpError(
        f"{what} has no counterpart in scikit-learn",
        "usage.value",
        None,
        "a model of lines on numbers, Booleans and categories without missing values",
        "fit with curves='none' and without fourier, or score with `dp predict --sql` or the model file",
    )


def texts_of(columns: Any) -> NDArray[Any]:
    """Returns the cells of columns as the texts of a table; missing ones stay as they are."""
    cells = np.asarray(columns, dtype=object)
    texts = [cell if is_missing(cell) else text_of(cell) for cell in cells.ravel().tolist()]
    return np.array(texts, dtype=object).reshape(cells.shape)


def _may_be_other(text: str) -> bool:
    """Returns whether a text may stand for a number or a Boolean."""
    try:
        float(text)
    except ValueError:
        return text in ("false", "true")
    return True


def _transformer(column: dict[str, Any], encoding: dict[str, Any]) -> Any:
    """Returns the fitted transformer of a column; None for one that has no feature."""
    kind = column["kind"]
    if column.get("format") is not None or column["on_missing"] not in ("error", "neutral"):
        raise _refused(f"column `{column['name']}`")
    if kind["type"] == "categorical":
        if kind["on_unknown"] == "other":
            raise _refused(f"column `{column['name']}`")
        texts = np.array(kind["categories"], dtype=object).reshape(-1, 1)
        encoder = ("categories", OneHotEncoder(categories=[texts[:, 0]], sparse_output=False))
        # Numbers and Booleans are categories by their texts.
        of_texts = [("texts", FunctionTransformer(texts_of))] if any(map(_may_be_other, kind["categories"])) else []
        return Pipeline([*of_texts, encoder]).fit(texts)
    if kind["type"] == "indicator":
        low, high, ends = 0.0, 1.0, (0, 1)
    else:
        if kind.get("log1p") or kind.get("scale") not in (None, "linear") or kind.get("cosines"):
            raise _refused(f"column `{column['name']}`")
        low, high = kind["min"], kind["max"]
        ends = (-1, 1) if encoding["range"] == "symmetric" else (0, 1)
    if low == high:
        return None
    return MinMaxScaler(feature_range=ends, clip=True).fit(np.array([[low], [high]]))


def pipeline(estimator: Any) -> Any:
    """Returns a fitted pipeline with the predictions of a fitted estimator."""
    model = estimator.model_
    encoder = json.loads(model.text())["model"]["encoder"]
    encoding = encoder["encoding"]
    if model.linear_form is None:
        raise _refused("a model that is not one of lines")
    named = getattr(estimator, "feature_names_in_", None)
    place = {name: i for i, name in enumerate(named if named is not None else numbered(estimator.n_features_in_))}
    transformers: list[Any] = []
    kept: list[int] = []
    sources: set[str] = set()
    first = 0
    for column in encoder["input"]["table"]["columns"]:
        kind = column["kind"]["type"]
        if kind == "drop":
            continue
        source = column.get("source", column["name"])
        if source not in place or source in sources:
            raise _refused(f"column `{column['name']}`")
        sources.add(source)
        transformer = _transformer(column, encoding)
        width = len(column["kind"]["categories"]) if kind == "categorical" else 1
        if transformer is not None:
            selected = [source] if named is not None else [place[source]]
            transformers.append((column["name"], transformer, selected))
            kept += range(first, first + width)
        first += width
    weights = model.weights
    # The constant comes first there, and last here.
    coefficients = np.hstack([weights[:, -1:], weights[:, kept]])
    columns = ColumnTransformer(transformers, sparse_threshold=0.0)
    _fit(columns, transformers, estimator, place)
    steps = [
        ("columns", columns),
        ("constant", FunctionTransformer(add_dummy_feature).fit(np.zeros((1, len(kept))))),
        ("norm", Normalizer().fit(np.ones((1, coefficients.shape[1])))),
    ]
    if model.kind == "number":
        return _regression(steps, coefficients, model.label_range)
    if model.loss.startswith(("logistic", "softmax")) and model.has_probabilities:
        last: Any = LogisticRegression()
    else:
        last = LinearSVC()
    last.classes_ = estimator.classes_
    last.coef_ = coefficients
    last.intercept_ = np.zeros(len(coefficients))
    last.n_features_in_ = coefficients.shape[1]
    last.n_iter_ = np.zeros(1, dtype=np.int32)
    if model.threshold != 0.0:
        last = _at_threshold(last, model.threshold)
    return Pipeline([*steps, ("model", last)])


def _at_threshold(classifier: Any, threshold: float) -> Any:
    """Returns the classifier with another threshold of its scores."""
    at = FixedThresholdClassifier(classifier, threshold=threshold, response_method="decision_function")
    at.estimator_ = classifier
    return at


def _fit(columns: Any, transformers: list[Any], estimator: Any, place: dict[str, int]) -> None:
    """Fits the columns on made-up rows, so that each transformer learns what it knows already."""
    rows = max([2, *(len(one[-1].categories_[0]) for _, one, _ in transformers if isinstance(one, Pipeline))])
    values: dict[Any, Any] = {name: np.zeros(rows) for name in place}
    for _, transformer, selected in transformers:
        source = selected[0] if isinstance(selected[0], str) else list(place)[selected[0]]
        if isinstance(transformer, Pipeline):
            categories = transformer[-1].categories_[0]
            values[source] = np.array([categories[i % len(categories)] for i in range(rows)], dtype=object)
        else:
            ends = np.concatenate([transformer.data_min_, transformer.data_max_])
            values[source] = np.array([ends[min(i, 1)] for i in range(rows)])
    if getattr(estimator, "feature_names_in_", None) is None:
        columns.fit(np.column_stack(list(values.values())))
        return
    try:
        import pandas
    except ImportError:
        import polars

        columns.fit(polars.DataFrame({name: list(cells) for name, cells in values.items()}))
    else:
        columns.fit(pandas.DataFrame(values))


def _regression(steps: list[Any], coefficients: Any, bounds: tuple[float, float]) -> Any:
    last = Ridge()
    last.coef_ = coefficients[0]
    last.intercept_ = 0.0
    last.n_features_in_ = coefficients.shape[1]
    last.n_iter_ = None
    # From [-1, 1], to which scores are clamped, to the range of y.
    scaler = MinMaxScaler(feature_range=bounds, clip=True).fit(np.array([[-1.0], [1.0]]))
    regression = TransformedTargetRegressor(Pipeline([*steps, ("model", last)]), inverse_func=scaler.transform)
    regression.regressor_ = regression.regressor
    regression.transformer_ = FunctionTransformer(inverse_func=scaler.transform)
    regression._training_dim = 1
    return regression
