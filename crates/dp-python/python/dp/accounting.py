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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from dp import _dp
from dp.errors import DpError, PrivacyError
from dp.events import Event

__all__ = [
    "Answer",
    "Curve",
    "Meaning",
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

FloatResult = Union[float, NDArray[np.float64]]
"""A float for scalar arguments, otherwise an array of their common shape."""


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


@dataclass(frozen=True)
class Curve:
    """The trade-off curve of the best attack."""

    false_positive_rate: NDArray[np.float64]
    """Type I errors, increasing."""
    false_negative_rate: NDArray[np.float64]
    """The least type II error at each of them."""


@dataclass(frozen=True)
class _Asked:
    """A question, ready to be passed on."""

    job: str
    event: str | None
    floats: dict[str, NDArray[np.float64]]
    counts: dict[str, NDArray[np.uint64]]
    words: dict[str, Any]
    shape: tuple[int, ...]

    def passed(
        self,
    ) -> tuple[
        str,
        str | None,
        dict[str, NDArray[np.float64]],
        dict[str, NDArray[np.uint64]],
        dict[str, Any],
        tuple[int, ...],
    ]:
        return self.job, self.event, self.floats, self.counts, self.words, self.shape


@dataclass(frozen=True)
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
    _asked: _Asked = field(repr=False, compare=False)

    def meaning(self) -> Meaning | list[Meaning]:
        """Returns what the guarantee means to an attacker; a list for arrays, in their order.

        >>> print(gaussian(noise_multiplier=4, delta=1e-6).meaning().text.splitlines()[1].strip())
        Where both answers are equally likely beforehand, a guess is right with probability at most 0.55.
        """
        found = []
        for text, sentences in _dp.meaning(*self._asked.passed()):
            members = json.loads(text)
            rates = {rate["false_positive_rate"]: rate["at_most"] for rate in members["true_positive_rates"]}
            found.append(Meaning(members["advantage"], rates, sentences))
        return found[0] if self._asked.shape == () else found

    def trade_off(self, points: int = 45) -> Curve | list[Curve]:
        """Returns the trade-off curve of the best attack; a list for arrays, in their order.

        >>> gaussian(noise_multiplier=4, delta=1e-6).trade_off(points=3).false_positive_rate
        array([0. , 0.5, 1. ])
        """
        if not 2 <= points <= 10_000:
            raise DpError(f"points = {points!r} is out of range", "usage.value", "points", "a whole number from 2 to 10000")
        found = [
            Curve(np.array(type_one), np.array(type_two)) for type_one, type_two in _dp.trade_off(*self._asked.passed(), points)
        ]
        return found[0] if self._asked.shape == () else found


_COUNTS = {"steps", "batch_size", "records", "group", "dim", "buckets"}

_LARGEST_EXACT = 2**53


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
        array = array.astype(np.float64)
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


_LIMITS = (1e-3, 1e6)


def _asked(job: str, numbers: dict[str, Any], words: dict[str, Any], event: Event | str | None = None) -> _Asked:
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
    limit, threads = words.get("limit"), words.get("threads")
    if limit is not None and not _LIMITS[0] <= limit <= _LIMITS[1]:
        raise DpError(f"limit = {limit!r} is out of range", "usage.value", "limit", "a number in [0.001, 1e6], or None")
    if threads is not None and (isinstance(threads, bool) or int(threads) != threads or threads < 1):
        raise DpError(f"threads = {threads!r} cannot be used", "usage.value", "threads", "a number of threads, or None")
    text = event.to_json() if isinstance(event, Event) else event
    return _Asked(
        job=job,
        event=text,
        floats={name: array for name, array in flat.items() if name not in _COUNTS},
        counts={name: array for name, array in flat.items() if name in _COUNTS},
        words={name: word for name, word in words.items() if word is not None},
        shape=shape,
    )


def _answer(asked: _Asked) -> Answer:
    found = _dp.answer(*asked.passed())

    def shaped(name: str) -> Any:
        values = found.get(name)
        if values is None:
            return None
        array = np.asarray(values).reshape(asked.shape)
        if array.dtype == np.uint64:
            array = array.astype(np.int64)
        return array.item() if asked.shape == () else array

    words = ("solved", "adjacency", "n_public")
    empty = {"solved": "", "adjacency": "", "n_public": True}
    return Answer(
        **{name: shaped(name) for name in Answer.__dataclass_fields__ if name not in (*words, "_asked")},
        **{name: found.get(name, empty[name]) for name in words},
        _asked=asked,
    )


_Numbers = dict[str, Any]
_Words = dict[str, Any]


def _own(arguments: dict[str, Any], numbers: tuple[str, ...]) -> tuple[_Numbers, _Words]:
    common = ("epsilon", "delta", "steps", "group")
    names = (*numbers, *common)
    words = ("sampling", "accountant", "solve", "adjacency", "n_public", "limit", "threads")
    return (
        {name: arguments[name] for name in names if name in arguments},
        {name: arguments[name] for name in words if name in arguments},
    )


def dpsgd(
    *,
    noise_multiplier: Floats | None = None,
    sampling_rate: Floats | None = None,
    steps: Counts | None = None,
    batch_size: Counts | None = None,
    records: Counts | None = None,
    epochs: Floats | None = None,
    sampling: str = "poisson",
    epsilon: Floats | None = None,
    delta: Floats | None = None,
    solve: str | None = None,
    adjacency: str | None = None,
    n_public: bool | None = None,
    group: Counts | None = None,
    accountant: str = "auto",
    limit: float | None = 1.0,
    threads: int | None = None,
) -> Answer:
    """Accounts for DP-SGD: noisy sums of clipped gradients over random batches.

    Args:
        noise_multiplier: standard deviation of the noise over the sensitivity of the sum: the clipping norm under add-remove,
            twice that under replace-one. In [0.01, 1e4].
        sampling_rate: probability that a record takes part in a step, in [1e-9, 1].
        steps: number of steps, 1 to 1e9.
        batch_size: expected batch size; with ``records``, in place of the sampling rate.
        records: number of records, which is then public.
        epochs: number of epochs, in place of the steps.
        sampling: ``"poisson"`` or ``"without-replacement"``.
        epsilon: epsilon of the guarantee.
        delta: delta of the guarantee; 0, or in [1e-300, 1).
        solve: the number to compute; by default the one that is left out.
        adjacency: ``"add-remove"``, ``"replace-one"`` or ``"change-list-labels"``; by default that of the theorem.
        n_public: False if the number of records is secret (add-remove only); otherwise a record is replaced by a null record.
        group: number of records that the guarantee covers at once.
        accountant: ``"auto"`` (the tightest), ``"exact"``, ``"rdp"``, ``"zcdp"`` or ``"gdp"``.
        limit: limit on the work for each element, 1 is about a second; where it is reached, the certified interval is wider.
        threads: number of threads; by default all cores.

    Raises:
        DpError: for a number out of range, missing or contradicting another; names the argument and the index.
        PrivacyError: where no theorem gives the guarantee.
    """
    numbers = ("noise_multiplier", "sampling_rate", "batch_size", "records", "epochs")
    return _answer(_asked("dpsgd", *_own(locals(), numbers)))


def gaussian(
    *,
    noise_multiplier: Floats | None = None,
    steps: Counts | None = None,
    epsilon: Floats | None = None,
    delta: Floats | None = None,
    solve: str | None = None,
    adjacency: str | None = None,
    n_public: bool | None = None,
    group: Counts | None = None,
    accountant: str = "auto",
    limit: float | None = 1.0,
    threads: int | None = None,
) -> Answer:
    """Accounts for Gaussian noise: ``noise_multiplier`` is its standard deviation over the L2 sensitivity.

    The other arguments are those of :func:`dpsgd`; ``steps`` is 1 by default.
    """
    return _answer(_asked("gaussian", *_own(locals(), ("noise_multiplier",))))


def laplace(
    *,
    noise_multiplier: Floats | None = None,
    steps: Counts | None = None,
    epsilon: Floats | None = None,
    delta: Floats | None = None,
    solve: str | None = None,
    adjacency: str | None = None,
    n_public: bool | None = None,
    group: Counts | None = None,
    accountant: str = "auto",
    limit: float | None = 1.0,
    threads: int | None = None,
) -> Answer:
    """Accounts for Laplace noise: ``noise_multiplier`` is its scale over the L1 sensitivity. ``delta`` is 0 by default.

    The other arguments are those of :func:`dpsgd`; ``steps`` is 1 by default.
    """
    return _answer(_asked("laplace", *_own(locals(), ("noise_multiplier",))))


def laplace_ball(
    *,
    dim: Counts,
    noise_multiplier: Floats | None = None,
    steps: Counts | None = None,
    epsilon: Floats | None = None,
    delta: Floats | None = None,
    solve: str | None = None,
    adjacency: str | None = None,
    n_public: bool | None = None,
    group: Counts | None = None,
    accountant: str = "auto",
    limit: float | None = 1.0,
    threads: int | None = None,
) -> Answer:
    """Accounts for noise of density ``exp(-|z|/scale)`` in ``dim`` dimensions.

    ``noise_multiplier`` is the scale over the L2 sensitivity. The other arguments are those of :func:`laplace`.
    """
    return _answer(_asked("laplace-ball", *_own(locals(), ("noise_multiplier", "dim"))))


def randomized_response(
    *,
    noise: Floats,
    buckets: Counts = 2,
    steps: Counts | None = None,
    epsilon: Floats | None = None,
    delta: Floats | None = None,
    solve: str | None = None,
    adjacency: str | None = None,
    n_public: bool | None = None,
    group: Counts | None = None,
    accountant: str = "auto",
    limit: float | None = 1.0,
    threads: int | None = None,
) -> Answer:
    """Accounts for randomised response: each record reports one of ``buckets`` values, with probability ``noise`` a random one.

    The other arguments are those of :func:`laplace`.
    """
    return _answer(_asked("randomized-response", *_own(locals(), ("noise", "buckets"))))


def pure(
    *,
    step_epsilon: Floats,
    steps: Counts | None = None,
    epsilon: Floats | None = None,
    delta: Floats | None = None,
    solve: str | None = None,
    adjacency: str | None = None,
    n_public: bool | None = None,
    group: Counts | None = None,
    accountant: str = "auto",
    limit: float | None = 1.0,
    threads: int | None = None,
) -> Answer:
    """Accounts for any ``step_epsilon``-DP releases. The other arguments are those of :func:`laplace`."""
    return _answer(_asked("pure", *_own(locals(), ("step_epsilon",))))


def approximate(
    *,
    step_epsilon: Floats,
    step_delta: Floats,
    steps: Counts | None = None,
    epsilon: Floats | None = None,
    delta: Floats | None = None,
    solve: str | None = None,
    adjacency: str | None = None,
    n_public: bool | None = None,
    group: Counts | None = None,
    accountant: str = "auto",
    limit: float | None = 1.0,
    threads: int | None = None,
) -> Answer:
    """Accounts for any ``(step_epsilon, step_delta)``-DP releases. The other arguments are those of :func:`gaussian`."""
    return _answer(_asked("approximate", *_own(locals(), ("step_epsilon", "step_delta"))))


def zcdp(
    *,
    rho: Floats,
    steps: Counts | None = None,
    epsilon: Floats | None = None,
    delta: Floats | None = None,
    solve: str | None = None,
    adjacency: str | None = None,
    n_public: bool | None = None,
    group: Counts | None = None,
    accountant: str = "auto",
    limit: float | None = 1.0,
    threads: int | None = None,
) -> Answer:
    """Accounts for any ``rho``-zCDP releases. The other arguments are those of :func:`gaussian`."""
    return _answer(_asked("zcdp", *_own(locals(), ("rho",))))


def gdp(
    *,
    mu: Floats,
    steps: Counts | None = None,
    epsilon: Floats | None = None,
    delta: Floats | None = None,
    solve: str | None = None,
    adjacency: str | None = None,
    n_public: bool | None = None,
    group: Counts | None = None,
    accountant: str = "auto",
    limit: float | None = 1.0,
    threads: int | None = None,
) -> Answer:
    """Accounts for any ``mu``-Gaussian-DP releases. The other arguments are those of :func:`gaussian`."""
    return _answer(_asked("gdp", *_own(locals(), ("mu",))))


def event(
    event: Event,
    *,
    steps: Counts | None = None,
    epsilon: Floats | None = None,
    delta: Floats | None = None,
    solve: str | None = None,
    adjacency: str | None = None,
    n_public: bool | None = None,
    group: Counts | None = None,
    accountant: str = "auto",
    limit: float | None = 1.0,
    threads: int | None = None,
) -> Answer:
    """Accounts for any tree of events: see :mod:`dp.events`. The other arguments are those of :func:`gaussian`.

    >>> from dp.events import from_opacus
    >>> round(event(from_opacus([(1.1, 0.01, 1000)]), delta=1e-6).epsilon, 3)
    1.753
    """
    if not isinstance(event, Event):
        raise DpError(f"event is a {type(event).__name__}", "usage.value", "event", "an event of dp.events")
    return _answer(_asked("event", *_own(locals(), ()), event=event))


def certificate(
    model: str | os.PathLike[str],
    *,
    steps: Counts | None = None,
    epsilon: Floats | None = None,
    delta: Floats | None = None,
    solve: str | None = None,
    group: Counts | None = None,
    accountant: str = "auto",
    limit: float | None = 1.0,
    threads: int | None = None,
) -> Answer:
    """Accounts for the event in the certificate of a model file, under its neighbouring relation.

    Whether the event follows from the recipe is what ``dp verify`` checks. Without epsilon and delta, delta is the
    certificate's. The other arguments are those of :func:`gaussian`.
    """
    with open(model, "rb") as file:
        text, adjacency, n_public, reached = _dp.certificate(file.read())
    if epsilon is None and delta is None:
        delta = reached
    numbers, words = _own(locals(), ())
    return _answer(_asked("event", numbers, words, event=text))


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
