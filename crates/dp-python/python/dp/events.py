"""Releases as trees of events, which the accountant reads.

Each class has the name and the members of an event of the Rust crate ``dp-accountant``; ``to_json`` gives the text that
``dp account event`` reads. Numbers are checked when an event is used.

>>> step = PoissonSampled(0.01, Gaussian(std_dev=1.1, sensitivity=1.0))
>>> event = SelfComposed(step, 1000)
>>> Event.from_json(event.to_json()) == event
True
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from dp import _dp
from dp.errors import DpError

__all__ = [
    "AboveThresholdGaussian",
    "AboveThresholdLaplace",
    "AddRemoveTwice",
    "AmplifiedByIteration",
    "ApproximateDp",
    "BoundedRange",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DominatingPair",
    "Event",
    "Gaussian",
    "GaussianMixture",
    "Gdp",
    "Group",
    "Laplace",
    "LaplaceBall",
    "MarginLoss",
    "NoOp",
    "NonPrivate",
    "ObjectivePerturbation",
    "OneOf",
    "Parallel",
    "ParallelByValue",
    "PoissonSampled",
    "PoissonSampledReplacement",
    "PureDp",
    "RandomStopping",
    "RandomizedResponse",
    "RenyiDp",
    "Repetitions",
    "SampledWithoutReplacement",
    "SelfComposed",
    "Shuffled",
    "Zcdp",
    "from_dp_accounting",
    "from_opacus",
]


def _plain(value: Any) -> Any:
    """Returns a member as JSON."""
    if isinstance(value, (Event, Repetitions, MarginLoss)):
        return value.to_dict()
    if isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return _plain(value.tolist())
    if isinstance(value, Iterable):
        return [_plain(item) for item in value]
    raise DpError(f"a member of an event cannot be {value!r}", "account.event", "event")


def _members(value: Any) -> dict[str, Any]:
    """Returns the members of an event; None and False stand for one that is left out."""
    members = {one.name: getattr(value, one.name) for one in fields(value)}
    return {name: _plain(member) for name, member in members.items() if member is not None and member is not False}


class Event:
    """An event; its subclasses are the kinds of events."""

    type: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Returns the event as an object of JSON."""
        if not hasattr(self, "type"):
            raise DpError("the base class of events is no event", "account.event", "event", "one of its subclasses")
        return {"type": self.type, **_members(self)}

    def to_json(self) -> str:
        """Returns the event as JSON."""
        try:
            return json.dumps(self.to_dict(), allow_nan=False)
        except ValueError as error:
            message = f"a number of the event is not finite: {error}"
            raise DpError(message, "account.event", "event") from None
        except RecursionError:
            raise DpError("the event is nested too deep", "account.event", "event") from None

    @staticmethod
    def from_json(text: str) -> Event:
        """Reads an event from JSON.

        Raises:
            DpError: for text that is not an event.
        """
        return _event(json.loads(_dp.canonical_event(text)))


def _event(value: dict[str, Any]) -> Event:
    members = dict(value)
    kind = _KINDS[members.pop("type")]
    for name, member in members.items():
        if name == "event":
            members[name] = _event(member)
        elif name == "events":
            members[name] = tuple(_event(one) for one in member)
        elif name == "repetitions":
            members[name] = Repetitions(**member)
        elif name == "loss":
            members[name] = MarginLoss(**member)
        elif isinstance(member, list):
            members[name] = tuple(member)
    return kind(**members)


@dataclass(frozen=True)
class NoOp(Event):
    """Nothing that depends on the data was released."""

    type: ClassVar[str] = "no-op"


@dataclass(frozen=True)
class NonPrivate(Event):
    """Something was released without any guarantee."""

    type: ClassVar[str] = "non-private"


@dataclass(frozen=True)
class Gaussian(Event):
    """Gaussian noise of standard deviation ``std_dev`` on a value of L2 sensitivity ``sensitivity``."""

    std_dev: float
    sensitivity: float = 1.0
    type: ClassVar[str] = "gaussian"


@dataclass(frozen=True)
class Laplace(Event):
    """Laplace noise of scale ``scale`` on a value of L1 sensitivity ``sensitivity``."""

    scale: float
    sensitivity: float
    type: ClassVar[str] = "laplace"


@dataclass(frozen=True)
class LaplaceBall(Event):
    """Noise of density proportional to ``exp(-|z|/scale)`` on a value of L2 sensitivity ``sensitivity``."""

    scale: float
    sensitivity: float
    dim: int
    type: ClassVar[str] = "laplace-ball"


@dataclass(frozen=True)
class PureDp(Event):
    """Anything that is ``epsilon``-DP."""

    epsilon: float
    type: ClassVar[str] = "pure-dp"


@dataclass(frozen=True)
class ApproximateDp(Event):
    """Anything that is ``(epsilon, delta)``-DP and has no other known guarantee."""

    epsilon: float
    delta: float
    type: ClassVar[str] = "approximate-dp"


@dataclass(frozen=True)
class Zcdp(Event):
    """Anything that is ``rho``-zCDP."""

    rho: float
    type: ClassVar[str] = "zcdp"


@dataclass(frozen=True)
class GaussianMixture(Event):
    """Gaussian noise, with sensitivity ``sensitivities[j]`` with probability ``weights[j]``, by a secret index."""

    std_dev: float
    sensitivities: Sequence[float]
    weights: Sequence[float]
    type: ClassVar[str] = "gaussian-mixture"


@dataclass(frozen=True)
class DiscreteGaussian(Event):
    """Noise on the integers with masses proportional to ``exp(-k^2/(2 scale^2))``, in each of ``dim`` coordinates."""

    scale: float
    sensitivity: float
    dim: int
    type: ClassVar[str] = "discrete-gaussian"


@dataclass(frozen=True)
class DiscreteLaplace(Event):
    """Noise on the integers with masses proportional to ``exp(-|k|/scale)``; the L1 sensitivity is an integer."""

    scale: float
    sensitivity: int
    type: ClassVar[str] = "discrete-laplace"


@dataclass(frozen=True)
class RandomizedResponse(Event):
    """Each record sends its own of ``buckets`` values, or with probability ``noise`` a uniformly random one."""

    buckets: int
    noise: float
    type: ClassVar[str] = "randomized-response"


@dataclass(frozen=True)
class BoundedRange(Event):
    """Anything whose privacy loss has a range of length ``epsilon`` for each pair, such as the exponential mechanism."""

    epsilon: float
    type: ClassVar[str] = "bounded-range"


@dataclass(frozen=True)
class Gdp(Event):
    """Anything that is ``mu``-Gaussian-DP."""

    mu: float
    type: ClassVar[str] = "gdp"


@dataclass(frozen=True)
class RenyiDp(Event):
    """Anything whose Renyi divergence is at most ``divergences[i]`` at ``orders[i]``."""

    orders: Sequence[float]
    divergences: Sequence[float]
    type: ClassVar[str] = "renyi-dp"


@dataclass(frozen=True)
class DominatingPair(Event):
    """Anything dominated by the pair of laws ``(p, q)`` on finitely many outcomes."""

    p: Sequence[float]
    q: Sequence[float]
    type: ClassVar[str] = "dominating-pair"


@dataclass(frozen=True)
class PoissonSampled(Event):
    """``event`` on a sample that holds each record independently with probability ``sampling_rate``. Add/remove only."""

    sampling_rate: float
    event: Event
    type: ClassVar[str] = "poisson-sampled"


@dataclass(frozen=True)
class PoissonSampledReplacement(Event):
    """Gaussian noise on a Poisson sample in which one record is replaced."""

    sampling_rate: float
    std_dev: float
    distance: float
    radius: float
    type: ClassVar[str] = "poisson-sampled-replacement"


@dataclass(frozen=True)
class SampledWithoutReplacement(Event):
    """``event`` on a uniformly random subset of fixed size. Only for relations that replace in place."""

    sampling_rate: float
    event: Event
    type: ClassVar[str] = "sampled-without-replacement"


@dataclass(frozen=True)
class Shuffled(Event):
    """``epsilon``-DP answers of ``records`` records, published in random order. Replace-one only."""

    epsilon: float
    records: int
    type: ClassVar[str] = "shuffled"


@dataclass(frozen=True)
class AmplifiedByIteration(Event):
    """The last iterate of noisy contractions, each of which reads its own records."""

    sensitivities: Sequence[float]
    std_devs: Sequence[float]
    contraction: float
    type: ClassVar[str] = "amplified-by-iteration"


@dataclass(frozen=True)
class AboveThresholdLaplace(Event):
    """The first of a stream of queries above a threshold; Laplace noise on both."""

    threshold_scale: float
    query_scale: float
    sensitivity: float
    type: ClassVar[str] = "above-threshold-laplace"


@dataclass(frozen=True)
class AboveThresholdGaussian(Event):
    """The first of at most ``max_queries`` queries above a threshold; Gaussian noise on both."""

    threshold_std_dev: float
    query_std_dev: float
    sensitivity: float
    max_queries: int
    range_bounded: bool = False
    type: ClassVar[str] = "above-threshold-gaussian"


@dataclass(frozen=True)
class Parallel(Event):
    """Each event reads its own part of the records; a pair of neighbours differs in one part only."""

    events: Sequence[Event]
    type: ClassVar[str] = "parallel"


@dataclass(frozen=True)
class ParallelByValue(Event):
    """Each event reads its own part of the records, chosen by the records' values, under replace-one.

    A replaced record moves to another part, or stays in its part.
    """

    events: Sequence[Event]
    type: ClassVar[str] = "parallel-by-value"


@dataclass(frozen=True)
class OneOf(Event):
    """One of ``events``, drawn at random from a law that does not depend on any record."""

    events: Sequence[Event]
    type: ClassVar[str] = "one-of"


@dataclass(frozen=True)
class Group(Event):
    """``event``, accounted for ``size`` records at once."""

    size: int
    event: Event
    type: ClassVar[str] = "group"


@dataclass(frozen=True)
class AddRemoveTwice(Event):
    """``event`` under replace-one, although its sensitivities and theorems are those of add/remove."""

    event: Event
    type: ClassVar[str] = "add-remove-twice"


@dataclass(frozen=True)
class Repetitions:
    """The law of a number: ``truncated-negative-binomial`` by ``eta`` and ``gamma``, or ``poisson`` by ``mean``."""

    law: str
    eta: float | None = None
    gamma: float | None = None
    mean: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the law as an object of JSON."""
        return _members(self)


@dataclass(frozen=True)
class RandomStopping(Event):
    """``event`` repeated a random number of times, with only the best outcome published."""

    repetitions: Repetitions
    event: Event
    type: ClassVar[str] = "random-stopping"


@dataclass(frozen=True)
class MarginLoss:
    """A loss: ``logistic``, ``huber-svm`` and ``log-cosh`` by ``width``, ``bounded-slope``, or ``softmax`` of ``classes``."""

    loss: str
    width: float | None = None
    slope: float | None = None
    curvature: float | None = None
    classes: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the loss as an object of JSON."""
        return _members(self)


@dataclass(frozen=True)
class ObjectivePerturbation(Event):
    """The minimiser of a convex objective with a random linear term. Add/remove only."""

    std_dev: float
    regularization: float
    loss: MarginLoss
    type: ClassVar[str] = "objective-perturbation"


@dataclass(frozen=True)
class Composed(Event):
    """All of ``events``. Later ones may depend on the outcomes of earlier ones; their parameters may not."""

    events: Sequence[Event]
    type: ClassVar[str] = "composed"


@dataclass(frozen=True)
class SelfComposed(Event):
    """``event``, ``count`` times on the same data."""

    event: Event
    count: int
    type: ClassVar[str] = "self-composed"


_KINDS: dict[str, type[Event]] = {kind.type: kind for kind in Event.__subclasses__()}


def _all(events: list[Event]) -> Event:
    return events[0] if len(events) == 1 else Composed(tuple(events))


def from_opacus(history: Any) -> Event:
    """Returns the event of a run of Opacus, which is over or planned.

    Args:
        history: an accountant of Opacus, a ``PrivacyEngine``, or a history: tuples of noise multiplier, sample rate and
            number of steps.

    The guarantee is under add/remove. It is that of the noise and the Poisson sampling which Opacus claims: that gradients
    were clipped, that batches were drawn by Poisson sampling, and that the noise was exact, is on trust.

    >>> from_opacus([(1.1, 0.01, 1000)])
    SelfComposed(event=PoissonSampled(sampling_rate=0.01, event=Gaussian(std_dev=1.1, sensitivity=1.0)), count=1000)

    Raises:
        DpError: for anything else.
    """
    history = getattr(getattr(history, "accountant", history), "history", history)
    events: list[Event] = []
    try:
        for noise_multiplier, sample_rate, steps in history:
            noise, rate, count = float(noise_multiplier), float(sample_rate), int(steps)
            if count != steps:
                raise ValueError
            step: Event = Gaussian(noise) if rate == 1.0 else PoissonSampled(rate, Gaussian(noise))
            events.append(SelfComposed(step, count))
    except (TypeError, ValueError, OverflowError):
        raise DpError(
            f"entry {len(events)} of the history is not one of Opacus",
            "account.event",
            f"history[{len(events)}]",
            "(noise multiplier, sample rate, number of steps)",
        ) from None
    if not events:
        return NoOp()
    return _all(events)


def _repetitions(mean: float, shape: float) -> Repetitions:
    """Returns the law of a number of repetitions with this mean, rounded to a greater mean."""
    if math.isinf(shape):
        return Repetitions("poisson", mean=mean)

    def mean_of(gamma: float) -> float:
        if shape == 0.0:
            return (1.0 / gamma - 1.0) / -math.log(gamma)
        return shape * (1.0 - gamma) / (gamma * -math.expm1(shape * math.log(gamma)))

    low, high = 1e-300, 1.0 - 2.0**-53
    for _ in range(2000):
        middle = math.sqrt(low * high)
        if not low < middle < high:
            break
        if mean_of(middle) >= mean:
            low = middle
        else:
            high = middle
    return Repetitions("truncated-negative-binomial", eta=shape, gamma=low)


def from_dp_accounting(event: Any) -> Event:
    """Returns an event of Google's ``dp_accounting`` as one of ours.

    Sensitivities of 1 stand for the neighbouring relation that their accountant was given; name ours in ``accounting.event``.

    Raises:
        DpError: for a kind of event that has no counterpart here, named with its place in the tree.
    """
    return _converted(event, "event")


def _converted(event: Any, place: str) -> Event:
    kind = type(event).__name__
    match kind:
        case "NoOpDpEvent":
            return NoOp()
        case "NonPrivateDpEvent":
            return NonPrivate()
        case "GaussianDpEvent":
            return Gaussian(event.noise_multiplier)
        case "LaplaceDpEvent":
            return Laplace(event.noise_multiplier, 1.0)
        case "DiscreteLaplaceDpEvent":
            return DiscreteLaplace(1.0 / event.noise_parameter, event.sensitivity)
        case "RandomizedResponseDpEvent":
            return RandomizedResponse(event.num_buckets, event.noise_parameter)
        case "ZCDpEvent" if getattr(event, "xi", 0.0) == 0.0:
            return Zcdp(event.rho)
        case "SelfComposedDpEvent":
            return SelfComposed(_converted(event.event, f"{place}.event"), event.count)
        case "ComposedDpEvent":
            parts = [_converted(part, f"{place}.events[{i}]") for i, part in enumerate(event.events)]
            return _all(parts) if parts else NoOp()
        case "PoissonSampledDpEvent":
            return PoissonSampled(event.sampling_probability, _converted(event.event, f"{place}.event"))
        case "SampledWithoutReplacementDpEvent":
            rate = event.sample_size / event.source_dataset_size
            return SampledWithoutReplacement(rate, _converted(event.event, f"{place}.event"))
        case "RepeatAndSelectDpEvent":
            repetitions = _repetitions(event.mean, event.shape)
            return RandomStopping(repetitions, _converted(event.event, f"{place}.event"))
        case "SingleEpochTreeAggregationDpEvent":
            counts = event.step_counts
            deepest = max(counts if isinstance(counts, Iterable) else [counts])
            # A record takes part in one node of each level.
            sensitivity = math.nextafter(math.sqrt(int(deepest).bit_length()), math.inf)
            return Gaussian(event.noise_multiplier, sensitivity)
    raise DpError(
        f"a {kind} has no counterpart here",
        "account.event",
        place,
        "an event of dp_accounting with a theorem of ours",
        "describe the release by the classes of dp.events, or account for it by its own (epsilon, delta): ApproximateDp",
    )
