"""Private estimators with the interface of scikit-learn.

>>> import numpy as np
>>> from dp import DPLogisticRegression
>>> ages = np.arange(3000) % 90
>>> model = DPLogisticRegression(epsilon=1.0, delta=1e-6, bounds=(0, 120), classes=[0, 1])
>>> model = model.fit(ages.reshape(-1, 1), (ages > 45).astype(int))
>>> model.predict([[20], [80]])
array([0, 1])
>>> model.epsilon_ <= 1.0
True

What is not known is not guessed: without the ranges of the columns and the classes, ``fit`` refuses and prints the line to
write. Every fit spends privacy: a second one of the same estimator, or of a clone of it, is refused unless it is allowed.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import threading
import uuid
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from dp import _columns, _dp, _schema
from dp.errors import CuratorWarning, DpError, NotPrivateWarning, PrivacyError, UselessModelWarning

__all__ = ["DPGridSearch", "DPLinearSVC", "DPLogisticRegression", "DPRanker", "DPRidge", "load"]

_USELESS = 0.5

# Arguments that go to the training under their own names.
_OPTIONS = (
    "epsilon",
    "delta",
    "algorithm",
    "coordinate",
    "adjacency",
    "unit",
    "max_rows",
    "noise",
    "float",
    "scale",
    "settings",
)


class _Lineage:
    """The fits of an estimator and of its clones in this process."""

    def __init__(self, token: str | None = None) -> None:
        self.token = token or uuid.uuid4().hex
        self.fits = 0
        # Fits that run.
        self.running = 0
        self.was_cloned = False
        # True for a clone that came from another process, which does not know of the fits there.
        self.is_from_elsewhere = False


_lineages: weakref.WeakKeyDictionary[Any, _Lineage] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def _after_fork() -> None:
    # Another thread may have held it.
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _lineage(estimator: Any) -> _Lineage:
    with _lock:
        return _lineages.setdefault(estimator, _Lineage())


def _publish(part: Path, target: Path) -> None:
    """Gives a file its name, and replaces none."""
    try:
        # Unlike a rename, a link does not replace a file.
        os.link(part, target)
    except FileExistsError:
        raise
    except OSError:
        # This file system has no links.
        if target.exists():
            raise FileExistsError(f"{target} exists already") from None
        part.rename(target)


class _Counted(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fits are counted, and whose model has a certificate."""

    epsilon: float | None
    random_state: Any
    allow_refit: bool

    model_: Any

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        lineage = _lineage(self)
        with _lock:
            lineage.was_cloned = True
            _lineages[copy] = lineage
        return copy

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        lineage = _lineage(self)
        state["_lineage"] = (lineage.token, lineage.fits, lineage.was_cloned, os.getpid())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        token, fits, was_cloned, process = state.pop("_lineage", (None, 0, False, None))
        super().__setstate__(state)
        lineage = _Lineage(token)
        lineage.fits, lineage.was_cloned = fits, was_cloned
        lineage.is_from_elsewhere = was_cloned and process != os.getpid()
        with _lock:
            known = next((one for one in _lineages.values() if one.token == token), None)
            _lineages[self] = known or lineage

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Counts a fit, unless it raises: then nothing was released."""
        lineage = _lineage(self)
        with _lock:
            self._check_refit(lineage)
            lineage.running += 1
        try:
            yield
        except BaseException:
            with _lock:
                lineage.running -= 1
            raise
        with _lock:
            lineage.running -= 1
            lineage.fits += 1

    def _check_refit(self, lineage: _Lineage) -> None:
        if self.allow_refit:
            return
        help = (
            "every fit on the same people adds to what is spent, and selection by their data is not free: choose settings by "
            "DPGridSearch, or say allow_refit=True and account for the sum of all fits"
        )
        fits = lineage.fits + lineage.running
        if fits > 0:
            raise PrivacyError(
                f"this estimator, or one that it was cloned from or to, was fitted already ({fits} in all)",
                "privacy.refit",
                "allow_refit",
                None,
                help,
            )
        if lineage.is_from_elsewhere:
            message = "this estimator is a clone from another process, which may have fitted it already"
            raise PrivacyError(message, "privacy.refit", "allow_refit", None, help)

    def _seed(self, stacklevel: int) -> int | None:
        """Returns the seed, and warns if there is one."""
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(2**31))
        elif isinstance(seed, np.random.Generator):
            seed = int(seed.integers(2**31))
        if seed is None:
            return None
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise DpError(f"random_state is {seed!r}", "usage.value", "random_state", "None, or an int of at least 0")
        warnings.warn(
            "random_state makes the noise reproducible, so that anyone who guesses it can subtract the noise: the "
            "certificate claims nothing. Omit it for a model to be published",
            NotPrivateWarning,
            stacklevel=stacklevel,
        )
        return int(seed)

    def _check_epsilon(self) -> None:
        if self.epsilon is None:
            raise DpError(
                "epsilon is missing: how much privacy to spend",
                "usage.missing",
                "epsilon",
                "a number greater than 0; 1 is a common choice, smaller is more private",
                "add epsilon=1.0",
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    @property
    def certificate_(self) -> dict[str, Any]:
        """The certificate, as in the model file."""
        return dict(json.loads(self._fitted("certificate_").certificate))

    @property
    def epsilon_(self) -> float:
        """Epsilon of the guarantee; infinite if there is none."""
        reached = self._fitted("epsilon_").reached
        return reached[0] if reached else math.inf

    @property
    def delta_(self) -> float:
        """Delta of the guarantee."""
        reached = self._fitted("delta_").reached
        return reached[1] if reached else 0.0

    def _fitted(self, name: str) -> Any:
        # An `AttributeError` before `fit`, so that `hasattr` works.
        try:
            return self.model_
        except AttributeError:
            raise AttributeError(f"{type(self).__name__} has no `{name}` before it is fitted") from None

    def verify(self) -> tuple[float, float]:
        """Recomputes the guarantee from the model and its certificate alone; returns epsilon and delta.

        Raises:
            VerificationError: if the guarantee does not follow, or none is claimed.
        """
        check_is_fitted(self)
        epsilon, delta = self.model_.verify()
        return float(epsilon), float(delta)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a model file, which ``dp verify``, ``dp predict`` and :func:`load` read. An existing file is not replaced."""
        check_is_fitted(self)
        text = self.model_.text()
        target = Path(path)
        part = target.with_name(f"{target.name}.{uuid.uuid4().hex}.part")
        try:
            with open(part, "x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            _publish(part, target)
        finally:
            part.unlink(missing_ok=True)


class _Private(_Counted):
    """What the estimators of tables share."""

    delta: float | None
    bounds: Any
    schema: Any
    assume_public: Any
    missing: str
    curves: Any
    n_jobs: int | None

    model_: _dp.Model

    # Input -------------------------------------------------------------------------------------------------------------

    def _read(self, X: Any, reset: bool) -> list[_columns.Column]:
        """Returns the columns of X; ``reset`` records their number and names."""
        if _columns.is_frame(X):
            if X.shape[0] == 0 or X.shape[1] == 0:
                raise ValueError(f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s): at least 1 is required")
            columns = _columns.of_frame(X)
            validate_data(self, X, reset=reset, skip_check_array=True)
            if getattr(self, "feature_names_in_", None) is None:
                # Names that are not texts count as none.
                columns = [
                    _columns.Column(f"x{i}", column.kind, column.rows, column.chunk, column.values)
                    for i, column in enumerate(columns)
                ]
            return columns
        may_miss = self.missing != "error" or self.schema is not None
        X = validate_data(self, X, reset=reset, ensure_all_finite="allow-nan" if may_miss else True)
        names = getattr(self, "feature_names_in_", None)
        names = _numbered(X.shape[1]) if names is None else [str(name) for name in names]
        return _columns.of_matrix(X, names)

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

    def _refuse_with_schema(self, *names: str) -> None:
        for name in names:
            if getattr(self, name) is not None:
                raise DpError(f"{name} is given beside a schema, which states it", "usage.conflict", name, "one of them")

    def _label_name(self, y: Any, columns: list[_columns.Column]) -> str:
        name = getattr(y, "name", None)
        name = name if isinstance(name, str) and name else "y"
        taken = {column.name for column in columns}
        while name in taken:
            name += "_"
        return name

    # Training ----------------------------------------------------------------------------------------------------------

    def _options(self) -> dict[str, Any]:
        options = {name: getattr(self, name, None) for name in _OPTIONS}
        self._check_epsilon()
        if self.curves != "auto":
            options["curves"] = 0 if self.curves in (None, "none") else self.curves
        if self.n_jobs is not None:
            if isinstance(self.n_jobs, bool) or not isinstance(self.n_jobs, (int, np.integer)) or self.n_jobs == 0:
                raise DpError(f"n_jobs is {self.n_jobs!r}", "usage.value", "n_jobs", "a number of threads, -1 for all, or None")
            cores = os.cpu_count() or 1
            options["threads"] = int(self.n_jobs) if self.n_jobs > 0 else max(1, cores + 1 + int(self.n_jobs))
        return options

    def _train(
        self,
        columns: list[_columns.Column],
        label: _columns.Column,
        schema: str,
        assumed: list[str],
        options: dict[str, Any],
    ) -> None:
        rows = columns[0].rows
        if label.rows != rows:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[rows, label.rows]}")
        if any(column.name == label.name for column in columns):
            raise DpError(f"X has a column with the name of the label: {label.name!r}", "csv.duplicate_column", "X")
        options["seed"] = self._seed(stacklevel=4)
        options.update(getattr(self, "_choice", {}))
        named = [(column.name, column.chunk) for column in (*columns, label)]
        with self._fitting():
            model, notes, advice = _dp.train(schema, named, rows, {**options, "assume_public": assumed})
        self.model_ = model
        self.advice_ = advice[0] if advice else None
        for note in notes:
            warnings.warn(note, CuratorWarning, stacklevel=3)
        if advice and advice[1] >= _USELESS:
            warnings.warn(
                f"expect a useless model: {advice[1]:.0%} of the possible gain are lost ({advice[2]:.0%} to {advice[3]:.0%}), "
                "by public numbers alone; use more records, a larger epsilon or fewer columns",
                UselessModelWarning,
                stacklevel=3,
            )

    # After the training ------------------------------------------------------------------------------------------------

    @property
    def weights_(self) -> NDArray[np.float64]:
        """The released weights of the features that ``get_feature_names_out`` names: one row for each score."""
        return np.asarray(self._fitted("weights_").weights)

    def _linear_form(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        form: tuple[NDArray[np.float64], NDArray[np.float64]] | None = self._fitted(name).linear_form
        if form is None:
            raise AttributeError(
                f"the model has no `{name}`: its columns are mapped by curves. `weights_` holds the weights of the features, "
                "and curves='none' makes a model of lines"
            )
        return form

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Returns the names of the features, in the order of ``weights_``; the intercept is last."""
        check_is_fitted(self)
        return np.array(self.model_.features, dtype=object)

    def _predicted(
        self, X: Any, probabilities: bool, on_unknown: str | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        check_is_fitted(self)
        columns = self._read(X, reset=False)
        options = self._options_of_threads()
        named = [(column.name, column.chunk) for column in columns]
        return self.model_.predict(named, columns[0].rows, probabilities, on_unknown, options)

    def _options_of_threads(self) -> int | None:
        return None if self.n_jobs is None or self.n_jobs <= 0 else int(self.n_jobs)

    def _known(self, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
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
        """Returns a fitted pipeline of scikit-learn with the same predictions, for a model of lines (``curves='none'``).

        It holds none of our classes. Scores agree to rounding errors.
        """
        from dp import _export

        check_is_fitted(self)
        return _export.pipeline(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.target_tags.required = True
        return tags


def _check_finite(y: NDArray[Any]) -> None:
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        first = int(np.flatnonzero(~np.isfinite(y))[0])
        raise DpError(f"Input y contains NaN or infinity, first in row {first}", "label.missing", "y", "finite numbers")


def _refuse_weights(keywords: dict[str, Any]) -> None:
    if "sample_weight" in keywords:
        raise TypeError(
            "sample_weight is refused: a weight multiplies the influence of a person, which the noise would have to cover"
        )
    if keywords:
        raise TypeError(f"fit() got an unexpected keyword argument {next(iter(keywords))!r}")


class _PrivateClassifier(ClassifierMixin, _Private):  # type: ignore[misc]
    """What the classifiers share."""

    classes: Any
    one_vs_rest: str | None
    threshold: str
    classes_: NDArray[Any]

    def _loss(self, classes: int) -> str:
        raise NotImplementedError

    def fit(self, X: Any, y: Any, **refused: Any) -> Any:
        """Trains on the rows of X, an array or a frame, and their classes y. Spends ``epsilon`` and ``delta``.

        Raises:
            DpError: for arguments that are not usable; DataError for records; PrivacyError for a fit that is not allowed.
        """
        _refuse_weights(refused)
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None")
        self._check_refit(_lineage(self))
        options = self._options()
        columns = self._read(X, reset=True)
        name = self._label_name(y, columns)
        y = column_or_1d(y, warn=True)
        _check_finite(y)
        check_classification_targets(y)
        if self.schema is not None:
            self._refuse_with_schema("bounds", "classes")
            assumed = self._declared_public()
            schema = self._schema_text()
            name, kind, texts, _ = _dp.label_of_schema(schema)
            if kind == "number":
                raise DpError("the label of the schema is a number", "usage.value", "schema", "classes", "use DPRidge")
            classes = _values_of(texts, y)
        else:
            classes, reviewed = self._classes(y)
            named = getattr(self, "feature_names_in_", None) is not None
            section, assumed = _schema.columns_section(self._used(columns), self.bounds, self.missing, named)
            schema = f"{_schema.classes_section(name, list(classes), reviewed)}\n{section}"
            assumed += [] if reviewed else [name]
        options["loss"] = self._loss(len(classes))
        options["one_vs_rest"] = self._shared(len(classes))
        options["threshold"] = self.threshold
        self._train(columns, _columns.of_array(name, y), schema, assumed, options)
        self.classes_ = classes
        return self

    def _used(self, columns: list[_columns.Column]) -> list[_columns.Column]:
        unit = getattr(self, "unit", None)
        return [column for column in columns if column.name != unit]

    def _shared(self, classes: int) -> str | None:
        return self.one_vs_rest

    def _classes(self, y: NDArray[Any]) -> tuple[NDArray[Any], bool]:
        if self.classes is None:
            raise DpError(
                "the classes are not known",
                "usage.missing",
                "classes",
                "all classes that may occur, known without looking at this data",
                "add classes=[0, 1], say; or classes='from-y', which the certificate states as an assumption",
            )
        if isinstance(self.classes, str):
            if self.classes != "from-y":
                raise DpError(f"classes is {self.classes!r}", "usage.value", "classes", "a list of classes, or 'from-y'")
            classes, reviewed = np.unique(y), False
        else:
            given = np.asarray(self.classes)
            classes, reviewed = np.unique(given), True
            if given.ndim != 1 or len(classes) < len(given):
                raise DpError(f"classes is {self.classes!r}", "usage.value", "classes", "a list of classes that differ")
        if len(classes) < 2:
            what = "'from-y' found one class" if not reviewed else f"names {len(classes)} class"
            raise DpError(f"classes {what}", "usage.value", "classes", "two classes or more")
        return classes, reviewed

    def decision_function(self, X: Any, on_unknown: str | None = None) -> NDArray[np.float64]:
        """Returns the scores: one for each row if there are two classes, one for each row and class if there are more.

        ``on_unknown`` says what becomes of a category that was not declared: ``"other"``, ``"error"``, or ``"skip"``, which
        gives no score (NaN); by default as in training.
        """
        scores, _ = self._predicted(X, False, on_unknown)
        if scores.shape[1] == 1:
            return scores[:, 0] - self.model_.threshold
        return scores

    def predict(self, X: Any, on_unknown: str | None = None) -> NDArray[Any]:
        """Returns the class of each row; ``on_unknown`` is that of :meth:`decision_function`."""
        _, predictions = self._predicted(X, False, on_unknown)
        return self.classes_[self._known(predictions).astype(np.intp)]

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The coefficients in the units of the columns; ``X @ coef_.T + intercept_`` has the sign, or the order, of the scores.

        One row if there are two classes, otherwise one for each class. A score is this sum divided by the norm of the row's
        features, which is the same for all classes. Only a model of lines has them (``curves='none'``).
        """
        return self._linear_form("coef_")[0]

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """The constants that belong to ``coef_``."""
        return self._linear_form("intercept_")[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # On the few rows of a test, noise decides.
        tags.classifier_tags.poor_score = True
        return tags


def _values_of(texts: list[str], y: NDArray[Any]) -> NDArray[Any]:
    """Returns the classes of a schema in the type of y."""
    if y.dtype.kind == "b":
        return np.array([text in ("true", "1") for text in texts])
    if y.dtype.kind in "iuf":
        try:
            return np.array([float(text) for text in texts]).astype(y.dtype)
        except ValueError:
            pass
    return np.array(texts, dtype=object if y.dtype.kind == "O" else None)


class DPLogisticRegression(_PrivateClassifier):
    """Logistic regression of two classes, or softmax regression of several, with differential privacy.

    Args:
        epsilon: epsilon of the guarantee; there is no default.
        delta: delta of the guarantee, far below 1/n. By default that which ``algorithm="auto"`` suggests for the number of
            records (1e-6 or less), and 0 for the other algorithms.
        bounds: public ranges of the columns: one ``(min, max)`` for all, one for each, or a dictionary by column of ``(min,
            max)`` for numbers, a list of categories for texts, and None to leave a column out. Values outside are clamped.
            ``"from-data"`` takes them from X, which the certificate states as an assumption.
        classes: all classes that may occur, or ``"from-y"``, which the certificate states as an assumption.
        schema: the path or the text of a schema of the program ``dp``, in place of bounds and classes.
        assume_public: names of the schema's columns that were taken from the data and are declared public all the same.
        missing: ``"error"``, or ``"neutral"``: a record with a missing value has no influence.
        algorithm: ``"auto"`` or any other of ``dp explain algorithms``.
        settings: settings of the algorithm by name, such as ``{"batch_size": 200}``.
        curves: ``"auto"``: the algorithm chooses curves or lines for numeric columns; ``"none"``: lines; or the number of
            cosines of each column.
        coordinate: ``"linear"``, ``"log"`` or ``"by-range"``: what the curves are functions of.
        one_vs_rest: ``"joint"``, ``"composed"`` or ``"split"``: one model for each of several classes, and how they share the
            budget; by default one softmax regression.
        threshold: ``"half"``, or ``"base-rate"``: the model decides at a noisy base rate, which costs a part of epsilon.
        adjacency: ``"add-remove"`` or ``"replace-one"``; by default that of the algorithm.
        unit: a column of X that names what is protected, such as a patient with several rows.
        max_rows: the most rows of a unit that are used.
        scale: ``"unit-rows"``, or ``"unit"``: numbers in [0, 1], long rows clipped.
        noise: ``"exact"`` or ``"rounded"``.
        float: ``"f64"`` or ``"f32"``.
        random_state: None draws noise from the system's generator. An int makes the fit reproducible and not private.
        allow_refit: True allows a further fit of this estimator and its clones: each spends the budget again.
        n_jobs: number of threads; all by default. The model does not depend on it.

    After ``fit``: ``classes_``, ``coef_``, ``intercept_``, ``weights_``, ``epsilon_``, ``delta_``, ``certificate_``,
    ``n_features_in_``, ``feature_names_in_``, ``advice_``.
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        bounds: Any = None,
        classes: Any = None,
        schema: Any = None,
        assume_public: Any = None,
        missing: str = "error",
        algorithm: str = "auto",
        settings: dict[str, Any] | None = None,
        curves: Any = "auto",
        coordinate: str | None = None,
        one_vs_rest: str | None = None,
        threshold: str = "half",
        adjacency: str | None = None,
        unit: str | None = None,
        max_rows: int | None = None,
        scale: str = "unit-rows",
        noise: str = "exact",
        float: str = "f64",
        random_state: Any = None,
        allow_refit: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.schema = schema
        self.assume_public = assume_public
        self.missing = missing
        self.algorithm = algorithm
        self.settings = settings
        self.curves = curves
        self.coordinate = coordinate
        self.one_vs_rest = one_vs_rest
        self.threshold = threshold
        self.adjacency = adjacency
        self.unit = unit
        self.max_rows = max_rows
        self.scale = scale
        self.noise = noise
        self.float = float
        self.random_state = random_state
        self.allow_refit = allow_refit
        self.n_jobs = n_jobs

    def _loss(self, classes: int) -> str:
        return "logistic" if classes == 2 or self.one_vs_rest is not None else f"softmax:{classes}"

    def predict_proba(self, X: Any, on_unknown: str | None = None) -> NDArray[np.float64]:
        """Returns the probability of each class, in the order of ``classes_``.

        ``on_unknown`` is that of :meth:`decision_function`.
        """
        check_is_fitted(self)
        if not self.model_.has_probabilities:
            raise AttributeError("models of one class against the rest have no probabilities: use decision_function")
        return self._predicted(X, True, on_unknown)[0]

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Returns the logarithm of ``predict_proba``."""
        return np.log(self.predict_proba(X))


class DPLinearSVC(_PrivateClassifier):
    """A linear support vector machine with a smooth hinge loss, and with differential privacy.

    Several classes are told apart by one model for each (``one_vs_rest``, ``"composed"`` by default).

    Args:
        width: half of the width of the hinge's quadratic part.

    The other arguments are those of :class:`DPLogisticRegression`.
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        bounds: Any = None,
        classes: Any = None,
        schema: Any = None,
        assume_public: Any = None,
        missing: str = "error",
        width: float | None = None,
        algorithm: str = "auto",
        settings: dict[str, Any] | None = None,
        curves: Any = "auto",
        coordinate: str | None = None,
        one_vs_rest: str | None = None,
        adjacency: str | None = None,
        unit: str | None = None,
        max_rows: int | None = None,
        scale: str = "unit-rows",
        noise: str = "exact",
        float: str = "f64",
        random_state: Any = None,
        allow_refit: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.schema = schema
        self.assume_public = assume_public
        self.missing = missing
        self.width = width
        self.algorithm = algorithm
        self.settings = settings
        self.curves = curves
        self.coordinate = coordinate
        self.one_vs_rest = one_vs_rest
        self.adjacency = adjacency
        self.unit = unit
        self.max_rows = max_rows
        self.scale = scale
        self.noise = noise
        self.float = float
        self.random_state = random_state
        self.allow_refit = allow_refit
        self.n_jobs = n_jobs

    threshold = "half"

    def _loss(self, classes: int) -> str:
        return "huber-svm" if self.width is None else f"huber-svm:{self.width!r}"

    def _shared(self, classes: int) -> str | None:
        return None if classes == 2 else self.one_vs_rest or "composed"


class DPRidge(RegressorMixin, _Private):  # type: ignore[misc]
    """Linear regression with an L2 penalty and with differential privacy.

    Args:
        y_bounds: the public range ``(min, max)`` of y; values outside are clamped. ``"from-y"`` takes it from y, which the
            certificate states as an assumption.
        loss: ``"log-cosh"``, whose gradients are bounded, ``"squared"`` or ``"huber-regression"``.

    The coefficient of the penalty is ``settings={"lambda": ...}``, by default from public numbers. The other arguments are
    those of :class:`DPLogisticRegression`.
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        bounds: Any = None,
        y_bounds: Any = None,
        schema: Any = None,
        assume_public: Any = None,
        missing: str = "error",
        loss: str = "log-cosh",
        algorithm: str = "auto",
        settings: dict[str, Any] | None = None,
        curves: Any = "auto",
        coordinate: str | None = None,
        adjacency: str | None = None,
        unit: str | None = None,
        max_rows: int | None = None,
        scale: str = "unit-rows",
        noise: str = "exact",
        float: str = "f64",
        random_state: Any = None,
        allow_refit: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.y_bounds = y_bounds
        self.schema = schema
        self.assume_public = assume_public
        self.missing = missing
        self.loss = loss
        self.algorithm = algorithm
        self.settings = settings
        self.curves = curves
        self.coordinate = coordinate
        self.adjacency = adjacency
        self.unit = unit
        self.max_rows = max_rows
        self.scale = scale
        self.noise = noise
        self.float = float
        self.random_state = random_state
        self.allow_refit = allow_refit
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, **refused: Any) -> DPRidge:
        """Trains on the rows of X, an array or a frame, and their numbers y. Spends ``epsilon`` and ``delta``.

        Raises:
            DpError: for arguments that are not usable; DataError for records; PrivacyError for a fit that is not allowed.
        """
        _refuse_weights(refused)
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None")
        self._check_refit(_lineage(self))
        options = self._options()
        columns = self._read(X, reset=True)
        name = self._label_name(y, columns)
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "O":
            y = y.astype(np.float64)
        if y.dtype.kind not in "iufb":
            raise DpError(f"y is of type {y.dtype}", "usage.value", "y", "numbers")
        y = np.asarray(y, dtype=np.float64)
        _check_finite(y)
        if self.schema is not None:
            self._refuse_with_schema("bounds", "y_bounds")
            assumed = self._declared_public()
            schema = self._schema_text()
            name, kind, _, _ = _dp.label_of_schema(schema)
            if kind != "number":
                raise DpError("the label of the schema is a class", "usage.value", "schema", "a number")
        else:
            bounds, reviewed = self._range(y)
            named = getattr(self, "feature_names_in_", None) is not None
            used = [column for column in columns if column.name != self.unit]
            section, assumed = _schema.columns_section(used, self.bounds, self.missing, named)
            schema = f"{_schema.range_section(name, bounds, reviewed)}\n{section}"
            assumed += [] if reviewed else [name]
        options["loss"] = self.loss
        self._train(columns, _columns.of_array(name, y), schema, assumed, options)
        return self

    def _range(self, y: NDArray[np.float64]) -> tuple[tuple[float, float], bool]:
        if self.y_bounds is None:
            raise DpError(
                "the range of y is not known",
                "usage.missing",
                "y_bounds",
                "a range that holds for everyone, known without looking at this data",
                "add y_bounds=(0, 100), say; or y_bounds='from-y', which the certificate states as an assumption",
            )
        if isinstance(self.y_bounds, str):
            if self.y_bounds != "from-y":
                raise DpError(f"y_bounds is {self.y_bounds!r}", "usage.value", "y_bounds", "(min, max), or 'from-y'")
            bounds, reviewed = (float(y.min()), float(y.max())), False
        else:
            bounds, reviewed = _schema.range_of(self.y_bounds, "y_bounds"), True
        if not bounds[0] < bounds[1]:
            what = f"y holds one value ({len(y)} sample)" if not reviewed else f"y_bounds is {bounds!r}"
            raise DpError(what, "usage.value", "y_bounds", "a range of some width")
        return bounds, reviewed

    def predict(self, X: Any, on_unknown: str | None = None) -> NDArray[np.float64]:
        """Returns the number of each row, within ``y_bounds``.

        ``on_unknown`` says what becomes of a category that was not declared: ``"other"`` or ``"error"``.
        """
        return self._known(self._predicted(X, False, on_unknown)[1])

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The coefficients in the units of the columns. The score of a row is ``(X @ coef_ + intercept_)`` over the norm of its
        features. Only a model of lines has them (``curves='none'``)."""
        return np.asarray(self._linear_form("coef_")[0][0])

    @property
    def intercept_(self) -> float:
        """The constant that belongs to ``coef_``."""
        return float(self._linear_form("intercept_")[1][0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class DPGridSearch(BaseEstimator):  # type: ignore[misc]
    """A private choice among settings: the choice and the training together spend the estimator's epsilon and delta.

    Args:
        estimator: a :class:`DPLogisticRegression` or :class:`DPLinearSVC`, not fitted. For ``algorithm="auto"``, which
            chooses by public numbers already, ``bolt-on-convex`` is tuned.
        param_grid: values of ``lambda``, ``passes`` and ``batch_size``; all combinations are candidates.
        method: ``"portions"``: each combination is trained on its own part of the records, and one more part compares them;
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

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        method: str = "portions",
        trials: float | None = None,
        trial_law: str = "logarithmic",
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.method = method
        self.trials = trials
        self.trial_law = trial_law

    def fit(self, X: Any, y: Any) -> DPGridSearch:
        """Chooses and trains on the rows of X and their classes y.

        Raises:
            DpError: for arguments that are not usable; DataError for records; PrivacyError for a fit that is not allowed.
        """
        if not isinstance(self.estimator, _PrivateClassifier):
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
        self.best_estimator_ = estimator
        self.best_index_ = None if chosen is False or chosen is None else int(chosen)
        self.best_params_ = None if self.best_index_ is None else grid[self.best_index_]
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Returns the class of each row."""
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.predict(X))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


class DPRanker(_Counted):
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

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        largest_grade: int = 2,
        protect: str = "grades",
        adjacency: str | None = None,
        loss: str = "bayesrank",
        k: int | None = None,
        scorer: str = "linear",
        hidden: int | None = None,
        activation: str | None = None,
        normalise: str | None = None,
        normalise_features: bool = False,
        updates: int | None = None,
        batch_size: int | None = None,
        step: float | None = None,
        clip: float | None = None,
        scaling: str = "clip",
        thin: bool = False,
        random_state: Any = None,
        allow_refit: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.largest_grade = largest_grade
        self.protect = protect
        self.adjacency = adjacency
        self.loss = loss
        self.k = k
        self.scorer = scorer
        self.hidden = hidden
        self.activation = activation
        self.normalise = normalise
        self.normalise_features = normalise_features
        self.updates = updates
        self.batch_size = batch_size
        self.step = step
        self.clip = clip
        self.scaling = scaling
        self.thin = thin
        self.random_state = random_state
        self.allow_refit = allow_refit

    def _matrix(self, X: Any, reset: bool) -> NDArray[np.float64]:
        return np.ascontiguousarray(validate_data(self, X, reset=reset, dtype=np.float64))

    def fit(self, X: Any, y: Any, group: Any = None, qid: Any = None, **refused: Any) -> DPRanker:
        """Trains on documents X with grades y. Spends ``epsilon`` and ``delta``.

        Args:
            group: the number of documents of each list, one after another; or
            qid: the identifier of each document's list; the documents of a list follow one another.

        Raises:
            DpError: for arguments that are not usable; PrivacyError where no guarantee is possible, or a fit is not allowed.
        """
        _refuse_weights(refused)
        self._check_refit(_lineage(self))
        self._check_epsilon()
        matrix = self._matrix(X, reset=True)
        sizes = _sizes(len(matrix), group, qid)
        grades = column_or_1d(y)
        if len(grades) != len(matrix):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(matrix), len(grades)]}")
        if grades.dtype.kind not in "iufb" or np.any((grades < 0) | (np.trunc(grades) != grades) | (grades > 2**31)):
            raise DpError("y holds something else than grades", "usage.value", "y", "whole numbers of at least 0")
        names = [str(name) for name in getattr(self, "feature_names_in_", _numbered(matrix.shape[1]))]
        options = {name: value for name, value in self.get_params().items() if name not in ("random_state", "allow_refit")}
        options["seed"] = self._seed(stacklevel=3)
        with self._fitting():
            ranker = _dp.train_ranker(matrix, grades.astype(np.uint32), sizes, names, options)
        self.model_ = ranker
        return self

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

    @property
    def weights_(self) -> NDArray[np.float64]:
        """The released weights."""
        return np.asarray(self._fitted("weights_").weights)


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
    starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    if len(set(ids[starts].tolist())) < len(starts):
        raise DpError(
            "the documents of a list do not follow one another",
            "usage.value",
            "qid",
            "all documents of a list in one place: two people may share an identifier",
        )
    return np.diff(np.append(starts, rows)).astype(np.uint64)


def load(path: str | os.PathLike[str]) -> DPLogisticRegression | DPLinearSVC | DPRidge | DPRanker:
    """Reads a model file of the program ``dp`` or of ``save`` as a fitted estimator, which predicts and cannot be fitted again.

    Raises:
        VerificationError: for a file that is no model, or whose seals are broken.
    """
    content = Path(path).read_bytes()
    if b'"dp.ranker/' in content:
        return _loaded_ranker(_dp.Ranker.parse(content))
    model = _dp.Model.parse(content)
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
    names = model.columns
    _name(estimator, names)
    if not isinstance(estimator, DPRidge):
        estimator.classes_ = np.array(model.classes)
    _lineage(estimator).fits += 1
    return estimator


def _numbered(columns: int) -> list[str]:
    """Returns the names of columns that have none."""
    return [f"x{i}" for i in range(columns)]


def _name(estimator: Any, names: list[str]) -> None:
    """Sets the columns of a loaded estimator."""
    estimator.n_features_in_ = len(names)
    if names != _numbered(len(names)):
        estimator.feature_names_in_ = np.array(names, dtype=object)


def _loaded_ranker(ranker: _dp.Ranker) -> DPRanker:
    reached = ranker.reached
    estimator = DPRanker(*(reached if reached else (None, None)))
    estimator.model_ = ranker
    _name(estimator, ranker.features or _numbered(ranker.width))
    _lineage(estimator).fits += 1
    return estimator
