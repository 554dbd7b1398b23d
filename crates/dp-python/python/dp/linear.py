"""Private linear models of tables, with the interface of scikit-learn.

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

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dp import _schema
from dp._table import TableEstimator, check_finite
from dp.errors import DataError, DpError

__all__ = ["DPLinearSVC", "DPLogisticRegression", "DPRidge"]


@dataclass(eq=False, repr=False, kw_only=True)
class Classifier(ClassifierMixin, TableEstimator):  # type: ignore[misc]
    """What the classifiers share."""

    classes: Any = None
    one_vs_rest: str | None = None

    classes_: NDArray[Any] = field(init=False)

    _label_argument: ClassVar[str] = "classes"

    def _target(self, y: NDArray[Any]) -> NDArray[Any]:
        check_finite(y)
        check_classification_targets(y)
        return y

    def _label_of_schema(self, kind: str, texts: list[str], y: NDArray[Any]) -> NDArray[Any]:
        if kind == "number":
            raise DpError("the label of the schema is a number", "usage.value", "schema", "classes", "use DPRidge")
        return _values_of(texts, y)

    def _label_section(self, name: str, y: NDArray[Any]) -> tuple[str, bool, NDArray[Any]]:
        classes, is_reviewed = self._known_classes(y)
        return _schema.classes_section(name, list(classes), is_reviewed), is_reviewed, classes

    def _known_classes(self, y: NDArray[Any]) -> tuple[NDArray[Any], bool]:
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
            classes, is_reviewed = np.unique(y), False
        else:
            try:
                given = np.asarray(self.classes)
                classes, is_reviewed = np.unique(given), True
            except (TypeError, ValueError):
                raise self._refused_classes("a list of classes of one type") from None
            if given.ndim != 1 or len(classes) < len(given) or any(map(_schema.is_missing, given.tolist())):
                raise self._refused_classes("a list of classes that differ, none of them missing")
            of_classes, of_y = _are_texts(classes), _are_texts(y)
            if None not in (of_classes, of_y) and of_classes != of_y:
                what = "texts, and those of y are not" if of_classes else "no texts, and those of y are"
                raise DpError(f"the classes are {what}", "usage.value", "classes", "classes of the type of y")
        if len(classes) < 2:
            what = f"names {len(classes)} class" if is_reviewed else "'from-y' found one class"
            raise DpError(f"classes {what}", "usage.value", "classes", "two classes or more")
        return classes, is_reviewed

    def _refused_classes(self, expected: str) -> DpError:
        return DpError(f"classes is {_schema.shown(self.classes)}", "usage.value", "classes", expected)

    def decision_function(self, X: Any, on_unknown: str | None = None) -> NDArray[np.float64]:
        """Returns the scores: one for each row if there are two classes, one for each row and class if there are more.

        ``on_unknown`` says what becomes of a category that was not declared: ``"other"``, ``"error"``, or ``"skip"``, which
        gives no score (NaN); by default as in training.
        """
        scores, _ = self._predicted(X, False, on_unknown)
        return np.asarray(scores[:, 0] - self.model_.threshold) if scores.shape[1] == 1 else scores

    def predict(self, X: Any, on_unknown: str | None = None) -> NDArray[Any]:
        """Returns the class of each row; ``on_unknown`` is that of :meth:`decision_function`."""
        _, predictions = self._predicted(X, False, on_unknown)
        return np.asarray(self.classes_[self._known(predictions).astype(np.intp)])

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The coefficients in the units of the columns; ``X @ coef_.T + intercept_`` has the sign, or the order, of the scores.

        One row if there are two classes, otherwise one for each class. A score is this sum divided by the norm of the row's
        features, which is the same for all classes. Only a model of lines has them (``curves='none'``, no ``fourier``). With
        ``threshold="base-rate"`` the sign of ``decision_function`` is the class, and not that of the sum.
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


def _are_texts(labels: NDArray[Any]) -> bool | None:
    """Returns whether all labels are texts; None if only some are."""
    if labels.dtype.kind != "O":
        return labels.dtype.kind in "UT"
    found = {isinstance(label, str) for label in labels.tolist()}
    return found.pop() if len(found) == 1 else None


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


@dataclass(eq=False, repr=False, kw_only=True)
class DPLogisticRegression(Classifier):
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
        fourier: the number of random Fourier features of all columns together, with which the model learns interactions; by
            default none. A dictionary of ``features``, ``bandwidth`` (by default 2) and ``seed`` (public, by default 0) states
            all of their numbers. With ``"if_better": True`` in it, a model with them and one without share the budget, and the
            better one is chosen privately.
        one_vs_rest: ``"joint"``, ``"composed"`` or ``"split"``: one model for each of several classes, and how they share the
            budget; by default one softmax regression.
        threshold: ``"half"``, or ``"base-rate"``: the model decides at a noisy base rate, which costs a part of epsilon.
        adjacency: ``"add-remove"`` or ``"replace-one"``; by default that of the algorithm.
        unit: a column of X that names what is protected, such as a patient with several rows.
        max_rows: the most rows of a unit that are used.
        scale: ``"unit-rows"``, or ``"unit"``: numbers in [0, 1], long rows clipped.
        noise: ``"exact"`` or ``"rounded"``.
        dtype: the arithmetic of training: ``"float64"`` or ``"float32"``.
        random_state: None draws noise from the system's generator. An int makes the fit reproducible and not private.
        allow_refit: True allows a further fit of this estimator and its clones: each spends the budget again.
        n_jobs: number of threads; all by default. The model does not depend on it.

    After ``fit``: ``classes_``, ``coef_``, ``intercept_``, ``weights_``, ``epsilon_``, ``delta_``, ``certificate_``,
    ``n_features_in_``, ``feature_names_in_``, ``advice_``.
    """

    threshold: str = "half"

    def _label_options(self, classes: NDArray[Any]) -> dict[str, Any]:
        is_binary = len(classes) == 2 or self.one_vs_rest is not None
        loss = "logistic" if is_binary else f"softmax:{len(classes)}"
        return {"loss": loss, "one_vs_rest": self.one_vs_rest, "threshold": self.threshold}

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
        return np.asarray(np.log(self.predict_proba(X)))


@dataclass(eq=False, repr=False, kw_only=True)
class DPLinearSVC(Classifier):
    """A linear support vector machine with a smooth hinge loss, and with differential privacy.

    Several classes are told apart by one model for each (``one_vs_rest``, ``"composed"`` by default).

    Args:
        width: half of the width of the hinge's quadratic part.

    The other arguments are those of :class:`DPLogisticRegression`.
    """

    width: float | None = None

    def _label_options(self, classes: NDArray[Any]) -> dict[str, Any]:
        loss = "huber-svm" if self.width is None else f"huber-svm:{self._checked_width()!r}"
        return {"loss": loss, "one_vs_rest": None if len(classes) == 2 else self.one_vs_rest or "composed"}

    def _checked_width(self) -> float:
        width = _schema.number(self.width, "width")
        if width <= 0.0:
            raise DpError(f"width is {width!r}", "usage.value", "width", "a number above 0")
        return width


@dataclass(eq=False, repr=False, kw_only=True)
class DPRidge(RegressorMixin, TableEstimator):  # type: ignore[misc]
    """Linear regression with an L2 penalty and with differential privacy.

    Args:
        y_bounds: the public range ``(min, max)`` of y; values outside are clamped. ``"from-y"`` takes it from y, which the
            certificate states as an assumption.
        loss: ``"log-cosh"``, whose gradients are bounded, ``"squared"`` or ``"huber-regression"``.

    The coefficient of the penalty is ``settings={"lambda": ...}``, by default from public numbers. The other arguments are
    those of :class:`DPLogisticRegression`.
    """

    y_bounds: Any = None
    loss: str = "log-cosh"

    _label_argument: ClassVar[str] = "y_bounds"

    def _target(self, y: NDArray[Any]) -> NDArray[np.float64]:
        check_finite(y)
        if y.dtype.kind == "O":
            try:
                y = y.astype(np.float64)
            except (TypeError, ValueError, OverflowError):
                raise DataError("y holds something else than numbers", "usage.value", "y", "finite numbers") from None
        if y.dtype.kind not in "iufb":
            raise DpError(f"y is of type {y.dtype}", "usage.value", "y", "numbers")
        y = np.asarray(y, dtype=np.float64)
        check_finite(y)
        return y

    def _label_of_schema(self, kind: str, texts: list[str], y: NDArray[Any]) -> None:
        if kind != "number":
            raise DpError("the label of the schema is a class", "usage.value", "schema", "a number")

    def _label_section(self, name: str, y: NDArray[Any]) -> tuple[str, bool, None]:
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
            bounds, is_reviewed = (float(y.min()), float(y.max())), False
        else:
            bounds, is_reviewed = _schema.range_of(self.y_bounds, "y_bounds"), True
        if not bounds[0] < bounds[1]:
            what = f"y_bounds is {bounds!r}" if is_reviewed else f"y holds one value ({len(y)} sample)"
            raise DpError(what, "usage.value", "y_bounds", "a range of some width")
        return _schema.range_section(name, bounds, is_reviewed), is_reviewed, None

    def _label_options(self, classes: None) -> dict[str, Any]:
        return {"loss": self.loss}

    def predict(self, X: Any, on_unknown: str | None = None) -> NDArray[np.float64]:
        """Returns the number of each row, within ``y_bounds``.

        ``on_unknown`` says what becomes of a category that was not declared: ``"other"`` or ``"error"``.
        """
        return self._known(self._predicted(X, False, on_unknown)[1])

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The coefficients in the units of the columns. The score of a row is ``(X @ coef_ + intercept_)`` over the norm of its
        features. Only a model of lines has them (``curves='none'``, no ``fourier``)."""
        return np.asarray(self._linear_form("coef_")[0][0])

    @property
    def intercept_(self) -> float:
        """The constant that belongs to ``coef_``."""
        return float(self._linear_form("intercept_")[1][0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
