"""Estimators of tables: from the columns of X and a label to a model, and from columns to predictions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from dp import _arguments, _columns, _dp, _fits, _schema
from dp._certified import Certified, numbered, refuse_keywords
from dp.errors import CuratorWarning, DataError, DpError, UselessModelWarning

# Arguments that go to the training under their own names.
_OPTIONS = (
    "epsilon",
    "delta",
    "algorithm",
    "settings",
    "coordinate",
    "fourier",
    "adjacency",
    "unit",
    "max_rows",
    "scale",
    "noise",
    "dtype",
)

_EXPECTED = {
    "csv.missing_value": "a value in every row",
    "csv.unknown_category": "one of the categories of the column",
    "label.unknown": "one of the classes",
}

# What to do about a record, by the code of its error.
_HELP_OF_FIT = {
    "csv.missing_value": "mend the record, or say missing='neutral': it has no influence then",
    "csv.unknown_category": "mend the record, or add the category to those in bounds if it is publicly possible",
    "label.unknown": "mend the record, or add the class to classes if it is publicly possible",
}
_HELP_OF_PREDICT = {
    "csv.missing_value": "mend the record",
    "csv.unknown_category": "mend the record, or say on_unknown='other'",
}


@dataclass(eq=False, repr=False, kw_only=True)
class TableEstimator(Certified):
    """What the estimators of tables share."""

    bounds: Any = None
    schema: Any = None
    assume_public: Any = None
    missing: str = "error"
    algorithm: str = "auto"
    settings: dict[str, Any] | None = None
    curves: Any = "auto"
    coordinate: str | None = None
    fourier: int | dict[str, Any] | None = None
    adjacency: str | None = None
    unit: str | None = None
    max_rows: int | None = None
    scale: str = "unit-rows"
    noise: str = "exact"
    dtype: str = "float64"
    n_jobs: int | None = None

    # True for the model of a file, which knows the columns that it uses and no others.
    _is_loaded = False

    # The argument that says what the label may be.
    _label_argument: ClassVar[str]

    # What subclasses know of the label ---------------------------------------------------------------------------------

    def _target(self, y: NDArray[Any]) -> NDArray[Any]:
        """Returns the labels, checked."""
        raise NotImplementedError

    def _label_of_schema(self, kind: str, texts: list[str], y: NDArray[Any]) -> Any:
        """Returns the classes of the schema's label, if it has any; refuses a label of another kind."""
        raise NotImplementedError

    def _label_section(self, name: str, y: NDArray[Any]) -> tuple[str, bool, Any]:
        """Returns the label of a schema, False if it was taken from y, and the classes, if it has any."""
        raise NotImplementedError

    def _label_options(self, classes: Any) -> dict[str, Any]:
        """Returns the options of the training that depend on the label."""
        raise NotImplementedError

    # Training ----------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, **refused: Any) -> Any:
        """Trains on the rows of X, an array or a frame, and their labels y. Spends ``epsilon`` and ``delta``.

        Raises:
            DpError: for arguments that are not usable; DataError for records; PrivacyError for a fit that is not allowed.
        """
        refuse_keywords(refused)
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None")
        self._check_budget()
        options = self._options()
        with self._keeping_columns():
            self._fit(X, y, options)
        return self

    def _fit(self, X: Any, y: Any, options: dict[str, Any]) -> None:
        columns = self._read(X, reset=True)
        name = _free_name(getattr(y, "name", None), columns)
        y = self._target(column_or_1d(y, warn=True))
        if self.schema is not None:
            for argument in ("bounds", self._label_argument):
                if getattr(self, argument) is not None:
                    message = f"{argument} is given beside a schema, which states it"
                    raise DpError(message, "usage.conflict", argument, "one of them")
            schema, assumed = self._schema_text(), self._declared_public()
            name, kind, texts = _dp.label_of_schema(schema)
            classes = self._label_of_schema(kind, texts, y)
        else:
            if self.assume_public is not None:
                message = "assume_public is given without a schema: bounds say what was taken from the data"
                raise DpError(message, "usage.conflict", "assume_public", "nothing beside bounds")
            label, is_reviewed, classes = self._label_section(name, y)
            used = [column for column in columns if column.name != self.unit]
            named = getattr(self, "feature_names_in_", None) is not None
            section, assumed = _schema.columns_section(used, self.bounds, self.missing, named)
            schema = f"{label}\n{section}"
            assumed += [] if is_reviewed else [name]
        options.update(self._label_options(classes))
        self._train(columns, _columns.of_array(name, y), schema, classes, {**options, "assume_public": assumed})

    def _read(self, X: Any, reset: bool) -> list[_columns.Column]:
        """Returns the columns of X; ``reset`` records their number and names."""
        if _columns.is_frame(X):
            if X.shape[0] == 0 or X.shape[1] == 0:
                raise ValueError(f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s): at least 1 is required")
            if self._is_loaded and not reset:
                X = _columns.selected(X, getattr(self, "feature_names_in_", []))
            columns = _columns.of_frame(X)
            validate_data(self, X, reset=reset, skip_check_array=True)
            if getattr(self, "feature_names_in_", None) is None:
                # Names that are not texts count as none.
                columns = [column.named(name) for column, name in zip(columns, numbered(len(columns)))]
            return columns
        may_miss = self.missing != "error" or self.schema is not None
        X = validate_data(self, X, reset=reset, ensure_all_finite="allow-nan" if may_miss else True)
        names = getattr(self, "feature_names_in_", None)
        return _columns.of_matrix(X, numbered(X.shape[1]) if names is None else [str(name) for name in names])

    def _schema_text(self) -> str:
        schema = self.schema
        if isinstance(schema, os.PathLike) or (isinstance(schema, str) and "\n" not in schema and "=" not in schema):
            return Path(schema).read_text(encoding="utf-8")
        if isinstance(schema, str):
            return schema
        raise DpError(f"schema is a {type(schema).__name__}", "usage.value", "schema", "the path of a schema, or its text")

    def _declared_public(self) -> list[str]:
        names = self.assume_public if self.assume_public is not None else []
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise DpError(f"assume_public is {names!r}", "usage.value", "assume_public", "a list of columns")
        return list(names)

    def _options(self) -> dict[str, Any]:
        for argument in ("curves", "fourier"):
            value = getattr(self, argument)
            if isinstance(value, bool):
                raise DpError(f"{argument} is {value}", "usage.value", argument, "a number of functions")
        if self.curves is not None and not isinstance(self.curves, (str, int, np.integer)):
            shown = _schema.shown(self.curves)
            raise DpError(f"curves is {shown}", "usage.value", "curves", "'auto', 'none', or a number of cosines")
        options = {name: getattr(self, name) for name in _OPTIONS}
        if self.curves != "auto":
            options["curves"] = 0 if self.curves in (None, "none") else self.curves
        if isinstance(self.fourier, dict):
            unknown = set(self.fourier) - {"features", "bandwidth", "seed", "if_better"}
            if unknown or self.fourier.get("features") is None:
                raise DpError(
                    f"fourier is {self.fourier!r}",
                    "usage.value",
                    "fourier",
                    "features; bandwidth, seed, if_better if they matter",
                )
            named = {f"fourier_{name}": value for name, value in self.fourier.items()}
            options.update(named, fourier=named.pop("fourier_features"))
        options["threads"] = _arguments.threads(self.n_jobs)
        return options

    def _train(
        self, columns: list[_columns.Column], label: _columns.Column, schema: str, classes: Any, options: dict[str, Any]
    ) -> None:
        rows = columns[0].rows
        if label.rows != rows:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[rows, label.rows]}")
        if any(column.name == label.name for column in columns):
            raise DpError(f"X has a column with the name of the label: {label.name!r}", "csv.duplicate_column", "X")
        for text in (schema, *(column.name for column in columns)):
            if any("\ud800" <= character <= "\udfff" for character in text):
                message = "a name, a category or a class has half of a surrogate pair"
                raise DpError(message, "usage.value", None, "text that UTF-8 can hold")
        options["seed"] = _arguments.seed(self.random_state, stacklevel=5)
        # Those of a search.
        options.update(getattr(self, "_choice", {}))
        named = [(column.name, column.chunk) for column in (*columns, label)]
        with _fits.counted(self, self.allow_refit), self._helping(_HELP_OF_FIT):
            model, notes, advice = _dp.train(schema, named, rows, options)
        self.model_ = model
        self._is_loaded = False
        if classes is not None:
            self.classes_ = classes
        reason, useless = advice or (None, None)
        self.advice_: str | None = reason
        for note in notes:
            warnings.warn(note, CuratorWarning, stacklevel=4)
        if useless:
            warnings.warn(useless, UselessModelWarning, stacklevel=4)

    @contextmanager
    def _helping(self, helps: dict[str, str]) -> Iterator[None]:
        """Says what to do about a record by the name of an argument, unless a schema says it."""
        try:
            yield
        except DataError as error:
            if self.schema is None and error.code in helps:
                raise DataError(error.message, error.code, error.field, _EXPECTED[error.code], helps[error.code]) from None
            raise

    # After the training ------------------------------------------------------------------------------------------------

    def _linear_form(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        form: tuple[NDArray[np.float64], NDArray[np.float64]] | None = self._fitted(name).linear_form
        if form is None:
            raise AttributeError(
                f"the model has no `{name}`: it is not a model of lines. `weights_` holds the weights of the features; "
                "curves='none', without fourier, makes a model of lines"
            )
        coefficients, constants = form
        # A column that was left out has the coefficient 0. Categories have several, and columns that read one source have each
        # their own: those stay in the order of the features.
        given = getattr(self, "feature_names_in_", None)
        names = numbered(self.n_features_in_) if given is None else [str(name) for name in given]
        used = self.model_.columns
        if names != used and set(used) <= set(names) and coefficients.shape[1] == len(used):
            of_used = coefficients
            coefficients = np.zeros((len(of_used), len(names)))
            coefficients[:, [names.index(name) for name in used]] = of_used
        return coefficients, constants

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Returns the names of the features, in the order of ``weights_``; the intercept is last."""
        check_is_fitted(self)
        return np.array(self.model_.features, dtype=object)

    def _predicted(
        self, X: Any, probabilities: bool, on_unknown: str | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns scores or probabilities, and predictions."""
        check_is_fitted(self)
        if on_unknown is not None and not isinstance(on_unknown, str):
            expected = "'other', 'error' or 'skip'"
            raise DpError(f"on_unknown is {on_unknown!r}", "usage.value", "on_unknown", expected)
        columns = self._read(X, reset=False)
        named = [(column.name, column.chunk) for column in columns]
        with self._helping(_HELP_OF_PREDICT):
            values, predictions = self.model_.predict(
                named, columns[0].rows, probabilities, on_unknown, _arguments.threads(self.n_jobs)
            )
        return np.asarray(values), np.asarray(predictions)

    def _known(self, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Refuses records without a prediction."""
        unknown = np.isnan(predictions)
        if unknown.any():
            first = int(np.flatnonzero(unknown)[0])
            raise DpError(
                f"{int(unknown.sum())} records have missing or undeclared cells, the first in row {first}: no prediction",
                "predict.unknown",
                "X",
                "records whose cells are known",
                "the scores of these records are NaN: decision_function",
            )
        return predictions

    def as_sklearn(self) -> Any:
        """Returns a fitted pipeline of scikit-learn with the same predictions, for a model of lines.

        Such a model has ``curves='none'`` and no ``fourier``. The pipeline holds none of our classes; where categories are
        numbers or Booleans, it calls a function of this package. Scores agree to rounding errors; those of
        ``threshold='base-rate'`` are without the threshold.
        """
        from dp import _export

        check_is_fitted(self)
        return _export.pipeline(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.target_tags.required = True
        return tags


def _free_name(name: Any, columns: list[_columns.Column]) -> str:
    """Returns the name of y, or another that no column has."""
    free: str = name if isinstance(name, str) and name else "y"
    taken = {column.name for column in columns}
    while free in taken:
        free += "_"
    return free


def check_finite(y: NDArray[Any]) -> None:
    """Refuses labels that are missing, or numbers and not finite.

    Raises:
        DataError: ``label.missing``.
    """
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        first = int(np.flatnonzero(~np.isfinite(y))[0])
        raise DataError(f"Input y contains NaN or infinity, first in row {first}", "label.missing", "y", "finite numbers")
    if y.dtype.kind == "O":
        first = next((row for row, label in enumerate(y.tolist()) if _schema.is_missing(label)), -1)
        if first >= 0:
            raise DataError(f"Input y has missing values, first in row {first}", "label.missing", "y", "a label for each row")
