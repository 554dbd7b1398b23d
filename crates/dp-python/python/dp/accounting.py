"""Questions to the accountant: one of epsilon, delta, noise multiplier, sampling rate and steps from the others.

The number that is left out is computed. All numbers may be arrays, which are broadcast; the answer then holds arrays of the
common shape. ``epsilon_lower`` and ``epsilon_upper`` are certified: the true epsilon at ``delta`` is between them.

>>> answer = dpsgd(noise_multiplier=[1.0, 1.1], sampling_rate=0.01, steps=1000, delta=1e-6)
>>> answer.epsilon.round(3)
array([2.125, 1.753])
>>> float(dpsgd(epsilon=2, delta=1e-6, sampling_rate=0.01, steps=1000).noise_multiplier) < 1.1
True

The interpreter lock is released, and elements are answered on all cores (``threads``). Ctrl-C ends a call.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, Union

import numpy as np
from numpy.typing import NDArray

from dp import _dp
from dp.errors import DpError, PrivacyError
from dp.events import Event

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "Answer",
    "Curve",
    "Meaning",
    "Question",
    "approximate",
    "certificate",
    "compare",
    "dpsgd",
    "event",
    "gaussian",
    "gdp",
    "laplace",
    "laplace_ball",
    "pure",
    "randomized_response",
    "zcdp",
]

Floats = Union[float, Sequence[Any], NDArray[Any]]
"""A number, or numbers that numpy makes an array of."""

Counts = Union[int, Sequence[Any], NDArray[Any]]
"""An integer, or integers that numpy makes an array of; floating-point numbers without a fraction count."""


@dataclass(frozen=True)
class Meaning:
    """What a guarantee means to an attacker: bounds on every attack."""

    advantage: float
    """The true-positive rate minus the false-positive rate of the best attack, at most."""
    true_positive_rates: dict[float, float]
    """The largest true-positive rate at each false-positive rate."""
    text: str
    """The whole meaning in sentences."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False)
class Curve:
    """The trade-off curve of the best attack."""

    false_positive_rate: NDArray[np.float64]
    """Type I errors, increasing."""
    false_negative_rate: NDArray[np.float64]
    """The least type II error at each of them."""


class Question(TypedDict, total=False):
    """The arguments of every function of this module, besides those of its release.

    epsilon, delta:
        the guarantee. Delta is 0, or in [1e-300, 1).
    steps:
        number of steps or releases, 1 to 1e9; by default 1, unless it is computed. DP-SGD has no default.
    group:
        number of records that the guarantee covers at once.
    solve:
        the number to compute; by default the one that is left out.
    adjacency:
        ``"add-remove"``, ``"replace-one"`` or ``"change-list-labels"``; by default that of the theorem.
    n_public:
        False if the number of records is secret (add-remove only); otherwise a record is replaced by a null record.
    accountant:
        ``"auto"`` (the tightest, the default), ``"exact"``, ``"rdp"``, ``"zcdp"`` or ``"gdp"``.
    limit:
        limit on the work for each element, in [1e-3, 1e6]; 1, the default, is about a second, None is no limit. Where it is
        reached, the certified interval is wider.
    threads:
        number of threads; by default all cores.
    """

    epsilon: Floats | None
    delta: Floats | None
    steps: Counts | None
    group: Counts | None
    solve: str | None
    adjacency: str | None
    n_public: bool | None
    accountant: str
    limit: float | None
    threads: int | None


@dataclass(frozen=True, eq=False)
class Answer:
    """The numbers of one question, or arrays of many."""

    solved: str
    """The computed number: ``epsilon``, ``delta``, ``noise_multiplier``, ``sampling_rate`` or ``steps``."""
    epsilon: Any
    """The promised epsilon at ``delta``: the upper end of the certified interval."""
    epsilon_lower: Any
    """Certified lower bound on the true epsilon at ``delta``; 0 if nothing is known."""
    epsilon_upper: Any
    """Certified upper bound on the true epsilon at ``delta``."""
    delta: Any
    """The promised delta."""
    delta_lower: Any
    """Certified lower bound on the true delta at ``epsilon``, if delta was computed; otherwise None."""
    delta_upper: Any
    """Certified upper bound on the true delta at ``epsilon``, if delta was computed; otherwise None."""
    noise_multiplier: Any
    """Noise over sensitivity; None for a release that has none."""
    sampling_rate: Any
    """The probability that a record takes part in a step; None for a release without sampling."""
    steps: Any
    """The number of steps or releases."""
    theorem: Any
    """The theorem behind each promise."""
    accountant: Any
    """The accountant that answered."""
    is_short: Any
    """True where the limit on work was reached: the certified interval is valid but wider."""
    adjacency: str
    """The neighbouring relation: ``add-remove``, ``replace-one`` or ``change-list-labels``."""
    n_public: bool
    """True if the number of records is public."""
    _asked: tuple[Any, ...] = field(repr=False)
    _shape: tuple[int, ...] = field(repr=False)

    def meaning(self) -> Meaning | list[Meaning]:
        """Returns what the guarantee means to an attacker; a list for arrays, in their order.

        >>> print(gaussian(noise_multiplier=4, delta=1e-6).meaning().text.splitlines()[1].strip())
        Where both answers are equally likely beforehand, a guess is right with probability at most 0.55.
        """
        found = []
        for text, sentences in _dp.Questions(*self._asked).meaning():
            members = json.loads(text)
            rates = {rate["false_positive_rate"]: rate["at_most"] for rate in members["true_positive_rates"]}
            found.append(Meaning(members["advantage"], rates, sentences))
        return found[0] if self._shape == () else found

    def trade_off(self, points: int = 45) -> Curve | list[Curve]:
        """Returns the trade-off curve of the best attack; a list for arrays, in their order.

        >>> gaussian(noise_multiplier=4, delta=1e-6).trade_off(points=3).false_positive_rate
        array([0. , 0.5, 1. ])

        Raises:
            DpError: ``usage.value`` for fewer than two points, or more than a million.
        """
        if isinstance(points, bool) or not isinstance(points, (int, np.integer)) or not 2 <= points <= _MOST_POINTS:
            raise DpError(f"points is {points!r}", "usage.value", "points", f"a whole number from 2 to {_MOST_POINTS}")
        curves = _dp.Questions(*self._asked).trade_off(points)
        found = [Curve(np.array(type_one), np.array(type_two)) for type_one, type_two in curves]
        return found[0] if self._shape == () else found


_COUNTS = {"steps", "batch_size", "records", "group", "dim", "buckets"}

_LARGEST_EXACT = 2**53

_MOST_POINTS = 1_000_000


def _index(array: NDArray[Any], flat: int) -> str:
    if array.ndim == 0:
        return ""
    return "[" + ", ".join(str(i) for i in np.unravel_index(flat, array.shape)) + "]"


def _refused(name: str, array: NDArray[Any], bad: NDArray[np.bool_], expected: str) -> DpError:
    flat = int(np.flatnonzero(bad.ravel())[0])
    place = name + _index(array, flat)
    return DpError(f"{place} = {array.ravel()[flat]!s} cannot be used", "usage.value", place, expected)


def _array(name: str, value: Any) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        raise DpError(f"{name} is no array of numbers", "usage.value", name, "numbers in rows of one length") from None
    if array.dtype.kind == "O" and array.size:
        usable = np.array([isinstance(item, (int, float)) and not isinstance(item, bool) for item in array.ravel()])
        if not usable.all():
            raise _refused(name, array, ~usable, "a number")
        try:
            array = array.astype(np.float64)
        except OverflowError:
            raise DpError(f"{name} holds a number beyond 1e308", "usage.value", name, "finite numbers") from None
    if array.dtype.kind not in "iuf" and array.size:
        raise DpError(
            f"{name} holds {array.dtype} in place of numbers", "usage.value", name, "a number, or an array of numbers"
        )
    return array


def _floats(name: str, value: Any) -> NDArray[np.float64]:
    return _array(name, value).astype(np.float64)


def _counts(name: str, value: Any) -> NDArray[np.uint64]:
    array = _array(name, value)
    if array.dtype.kind == "f":
        whole = (array >= 0) & (array <= _LARGEST_EXACT) & (np.trunc(array) == array)
    else:
        whole = array >= 0
    if not np.all(whole):
        raise _refused(name, array, np.logical_not(whole), "a whole number")
    return array.astype(np.uint64)


_NUMBERS = ("epsilon", "delta", "steps", "group")


def _answer(
    job: str, release: Mapping[str, Any], question: Mapping[str, Any], sampling: str | None = None, event: str | None = None
) -> Answer:
    """Answers the questions about a job with these numbers."""
    unknown = [name for name in question if name not in Question.__annotations__]
    if unknown:
        raise TypeError(f"{job} got an unexpected keyword argument '{unknown[0]}'")
    numbers = {**release, **{name: question.get(name) for name in _NUMBERS}}
    words = {"limit": 1.0, "sampling": sampling, **{name: question[name] for name in question if name not in _NUMBERS}}
    arrays: dict[str, NDArray[Any]] = {
        name: _counts(name, value) if name in _COUNTS else _floats(name, value)
        for name, value in numbers.items()
        if value is not None
    }
    try:
        shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items() if array.ndim)
        raise DpError(f"the shapes cannot be broadcast: {shapes}", "usage.value") from None
    flat = {
        name: np.ascontiguousarray(array.reshape(1) if array.size == 1 else np.broadcast_to(array, shape).ravel())
        for name, array in arrays.items()
    }
    floats = {name: array for name, array in flat.items() if name not in _COUNTS}
    counts = {name: array for name, array in flat.items() if name in _COUNTS}
    asked = (job, event, floats, counts, words, shape)
    found = {"solved": "", "adjacency": "", "n_public": True, **_dp.Questions(*asked).answer()}

    def shaped(name: str) -> Any:
        values = found.get(name)
        if values is None or isinstance(values, (str, bool)):
            return values
        array = np.asarray(values).reshape(shape)
        if array.dtype == np.uint64:
            array = array.astype(np.int64)
        return array.item() if shape == () else array

    members = {name: shaped(name) for name in Answer.__dataclass_fields__ if not name.startswith("_")}
    return Answer(**members, _asked=asked, _shape=shape)


def dpsgd(
    *,
    noise_multiplier: Floats | None = None,
    sampling_rate: Floats | None = None,
    batch_size: Counts | None = None,
    records: Counts | None = None,
    epochs: Floats | None = None,
    sampling: str = "poisson",
    **question: Unpack[Question],
) -> Answer:
    """Accounts for DP-SGD: noisy sums of clipped gradients over random batches.

    Args:
        noise_multiplier: standard deviation of the noise over the sensitivity of the sum: the clipping norm under add-remove,
            twice that under replace-one. In [0.01, 1e4].
        sampling_rate: probability that a record takes part in a step, in [1e-9, 1].
        batch_size: expected batch size; with ``records``, in place of the sampling rate.
        records: number of records, which is then public.
        epochs: number of epochs, in place of the steps.
        sampling: ``"poisson"`` or ``"without-replacement"``.
        question: see :class:`Question`.

    Raises:
        DpError: for a number out of range, missing or contradicting another; names the argument and the index.
        PrivacyError: where no theorem gives the guarantee.
    """
    release = {
        "noise_multiplier": noise_multiplier,
        "sampling_rate": sampling_rate,
        "batch_size": batch_size,
        "records": records,
        "epochs": epochs,
    }
    return _answer("dpsgd", release, question, sampling)


def gaussian(*, noise_multiplier: Floats | None = None, **question: Unpack[Question]) -> Answer:
    """Accounts for Gaussian noise: ``noise_multiplier`` is its standard deviation over the L2 sensitivity."""
    return _answer("gaussian", {"noise_multiplier": noise_multiplier}, question)


def laplace(*, noise_multiplier: Floats | None = None, **question: Unpack[Question]) -> Answer:
    """Accounts for Laplace noise: ``noise_multiplier`` is its scale over the L1 sensitivity. ``delta`` is 0 by default."""
    return _answer("laplace", {"noise_multiplier": noise_multiplier}, question)


def laplace_ball(*, dim: Counts, noise_multiplier: Floats | None = None, **question: Unpack[Question]) -> Answer:
    """Accounts for noise of density ``exp(-|z|/scale)`` in ``dim`` dimensions.

    ``noise_multiplier`` is the scale over the L2 sensitivity. ``delta`` is 0 by default.
    """
    return _answer("laplace-ball", {"noise_multiplier": noise_multiplier, "dim": dim}, question)


def randomized_response(*, noise: Floats, buckets: Counts = 2, **question: Unpack[Question]) -> Answer:
    """Accounts for randomised response: each record reports its own of ``buckets`` values, or with probability ``noise`` a
    uniformly random one. ``delta`` is 0 by default."""
    return _answer("randomized-response", {"noise": noise, "buckets": buckets}, question)


def pure(*, step_epsilon: Floats, **question: Unpack[Question]) -> Answer:
    """Accounts for any ``step_epsilon``-DP releases. ``delta`` is 0 by default."""
    return _answer("pure", {"step_epsilon": step_epsilon}, question)


def approximate(*, step_epsilon: Floats, step_delta: Floats, **question: Unpack[Question]) -> Answer:
    """Accounts for any ``(step_epsilon, step_delta)``-DP releases."""
    return _answer("approximate", {"step_epsilon": step_epsilon, "step_delta": step_delta}, question)


def zcdp(*, rho: Floats, **question: Unpack[Question]) -> Answer:
    """Accounts for any ``rho``-zCDP releases."""
    return _answer("zcdp", {"rho": rho}, question)


def gdp(*, mu: Floats, **question: Unpack[Question]) -> Answer:
    """Accounts for any ``mu``-Gaussian-DP releases."""
    return _answer("gdp", {"mu": mu}, question)


def event(event: Event, **question: Unpack[Question]) -> Answer:
    """Accounts for any tree of events: see :mod:`dp.events`.

    >>> from dp.events import from_opacus
    >>> round(event(from_opacus([(1.1, 0.01, 1000)]), delta=1e-6).epsilon, 3)
    1.753
    """
    if not isinstance(event, Event):
        raise DpError(f"event is a {type(event).__name__}", "usage.value", "event", "an event of dp.events")
    return _answer("event", {}, question, event=event.to_json())


def certificate(model: str | os.PathLike[str], **question: Unpack[Question]) -> Answer:
    """Accounts for the event in the certificate of a model file, under its neighbouring relation.

    Whether the event follows from the recipe is what ``dp verify`` checks. Without epsilon and delta, delta is the
    certificate's.

    Raises:
        VerificationError: for a file that is no model, or a certificate that claims no guarantee.
    """
    stated = next((name for name in ("adjacency", "n_public") if name in question), None)
    if stated is not None:
        raise TypeError(f"certificate() takes '{stated}' from the certificate")
    with open(model, "rb") as file:
        text, adjacency, n_public, reached = _dp.certificate(file.read())
    if question.get("epsilon") is None and question.get("delta") is None:
        question["delta"] = reached
    return _answer("event", {}, {**question, "adjacency": adjacency, "n_public": n_public}, event=text)


def compare(job: Callable[..., Answer], **arguments: Any) -> dict[str, Answer | PrivacyError]:
    """Returns the answer of each accountant to ``job(**arguments)``, or the reason why it has none.

    >>> answers = compare(gaussian, noise_multiplier=4, steps=10, delta=1e-6)
    >>> answers["exact"].epsilon < answers["rdp"].epsilon <= answers["zcdp"].epsilon
    True
    """
    if "accountant" in arguments:
        raise TypeError("compare() asks all accountants: omit the argument 'accountant'")
    answers: dict[str, Answer | PrivacyError] = {}
    for accountant in ("auto", "exact", "rdp", "zcdp", "gdp"):
        try:
            answers[accountant] = job(**arguments, accountant=accountant)
        except PrivacyError as error:
            if accountant == "auto":
                raise
            answers[accountant] = error
    return answers
