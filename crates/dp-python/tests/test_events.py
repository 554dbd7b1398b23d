"""Events: the same JSON as the program's, and histories of other libraries."""

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dp import accounting, events
from dp.errors import DpError

STEP = events.Gaussian(2.0, 1.0)

ONE_OF_EACH = [
    events.NoOp(),
    events.NonPrivate(),
    STEP,
    events.Laplace(2.0, 1.0),
    events.LaplaceBall(2.0, 1.0, 3),
    events.PureDp(0.1),
    events.ApproximateDp(0.1, 1e-9),
    events.Zcdp(0.1),
    events.GaussianMixture(2.0, (0.0, 1.0), (0.5, 0.5)),
    events.DiscreteGaussian(2.0, 1.0, 3),
    events.DiscreteLaplace(2.0, 1),
    events.RandomizedResponse(3, 0.5),
    events.BoundedRange(0.1),
    events.Gdp(0.5),
    events.RenyiDp((2.0, 4.0), (0.1, 0.2)),
    events.DominatingPair((0.6, 0.4), (0.4, 0.6)),
    events.PoissonSampled(0.1, STEP),
    events.PoissonSampledReplacement(0.1, 2.0, 1.0, 0.5),
    events.SampledWithoutReplacement(0.1, STEP),
    events.Shuffled(0.1, 1000),
    events.AmplifiedByIteration((1.0, 1.0), (2.0, 2.0), 1.0),
    events.AboveThresholdLaplace(2.0, 4.0, 1.0),
    events.AboveThresholdGaussian(2.0, 4.0, 1.0, 10),
    events.AboveThresholdGaussian(2.0, 4.0, 1.0, 10, True),
    events.Parallel((STEP, STEP)),
    events.ParallelByValue((STEP, STEP)),
    events.OneOf((STEP, events.NoOp())),
    events.Group(3, STEP),
    events.AddRemoveTwice(STEP),
    events.RandomStopping(events.Repetitions("poisson", mean=3.0), STEP),
    events.RandomStopping(events.Repetitions("truncated-negative-binomial", eta=1.0, gamma=0.5), STEP),
    events.ObjectivePerturbation(2.0, 1.0, events.MarginLoss("logistic")),
    events.ObjectivePerturbation(2.0, 1.0, events.MarginLoss("huber-svm", width=0.5)),
    events.ObjectivePerturbation(2.0, 1.0, events.MarginLoss("bounded-slope", slope=1.0, curvature=0.5)),
    events.ObjectivePerturbation(2.0, 1.0, events.MarginLoss("softmax", classes=3)),
    events.Composed((STEP, events.Laplace(2.0, 1.0))),
    events.SelfComposed(STEP, 10),
]


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: event.type)
def test_events_are_read_and_written_as_by_the_program(event):
    text = event.to_json()
    assert events.Event.from_json(text) == event
    # What the accountant writes is what we write.
    assert json.loads(events._dp.canonical_event(text)) == json.loads(text)


def test_there_is_one_of_each_kind_of_event():
    assert {event.type for event in ONE_OF_EACH} == set(events._KINDS)
    source = Path(__file__).parents[2] / "dp-accountant" / "src" / "event.rs"
    if source.exists():
        names = set(re.findall(r'Self::\w+(?: \{ \.\. \})? => "([a-z-]+)"', source.read_text()))
        assert names == set(events._KINDS)


def test_arrays_of_numpy_are_members():
    event = events.RenyiDp(np.array([2.0, 4.0]), np.array([0.1, 0.2]))
    assert events.Event.from_json(event.to_json()) == events.RenyiDp((2.0, 4.0), (0.1, 0.2))
    assert events.SelfComposed(STEP, np.int64(3)).to_dict()["count"] == 3


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"type": "magic"}', '{"type": "gaussian"}', '{"type": "gaussian", "std_dev": "2", "sensitivity": 1}'],
)
def test_other_text_is_refused(text):
    with pytest.raises(DpError) as caught:
        events.Event.from_json(text)
    assert caught.value.code == "account.event"


def test_members_that_are_not_numbers_are_refused():
    with pytest.raises(DpError, match="not finite"):
        events.Gaussian(float("nan")).to_json()
    with pytest.raises(DpError, match="cannot be"):
        events.Gaussian(object()).to_json()
    with pytest.raises(DpError, match="event is a dict"):
        accounting.event({"type": "no-op"}, delta=1e-6)
    with pytest.raises(DpError):
        accounting.event(events.Gaussian(-1.0), delta=1e-6)


HISTORY = [(1.1, 0.01, 1000), (2.0, 1.0, 3)]


@pytest.mark.parametrize(
    "history",
    [HISTORY, SimpleNamespace(history=HISTORY), SimpleNamespace(accountant=SimpleNamespace(history=HISTORY))],
)
def test_a_run_of_opacus_is_accounted_for(history):
    event = events.from_opacus(history)
    epsilon = accounting.event(event, delta=1e-6).epsilon
    alone = accounting.dpsgd(noise_multiplier=1.1, sampling_rate=0.01, steps=1000, delta=1e-6).epsilon
    full = accounting.gaussian(noise_multiplier=2.0, steps=3, delta=1e-6).epsilon
    assert max(alone, full) < epsilon < alone + full


@pytest.mark.parametrize(
    "history", [3, "abc", [(1.1, 0.01)], [(1.1, 0.01, 2.5)], [(1.1, "x", 1)], [None], [(1.1, 0.1, float("inf"))]]
)
def test_what_is_no_history_is_refused(history):
    with pytest.raises(DpError) as caught:
        events.from_opacus(history)
    assert caught.value.field == "history[0]"


def test_no_steps_release_nothing():
    assert events.from_opacus([]) == events.NoOp()
    assert accounting.event(events.from_opacus([]), delta=1e-6).epsilon == 0.0


def test_events_of_dp_accounting_are_converted():
    pytest.importorskip("dp_accounting")
    from dp_accounting import dp_event as peer
    from dp_accounting.pld import PLDAccountant

    gaussian = peer.GaussianDpEvent(1.1)
    cases = [
        peer.SelfComposedDpEvent(peer.PoissonSampledDpEvent(0.01, gaussian), 100),
        peer.ComposedDpEvent([gaussian, peer.LaplaceDpEvent(2.0)]),
        peer.SelfComposedDpEvent(peer.DiscreteLaplaceDpEvent(0.5, 1), 4),
    ]
    for case in cases:
        theirs = PLDAccountant(value_discretization_interval=1e-3).compose(case).get_epsilon(1e-6)
        ours = accounting.event(events.from_dp_accounting(case), delta=1e-6)
        # Theirs is an upper bound on a grid of 1e-3.
        assert ours.epsilon_lower <= theirs + 1e-9
        assert ours.epsilon == pytest.approx(theirs, rel=0.02)
    tree = events.from_dp_accounting(peer.SingleEpochTreeAggregationDpEvent(2.0, [5, 3]))
    assert tree.sensitivity == pytest.approx(math.sqrt(3)) and tree.std_dev == 2.0
    assert events.from_dp_accounting(peer.NoOpDpEvent()) == events.NoOp()
    response = events.from_dp_accounting(peer.RandomizedResponseDpEvent(0.4, 3))
    # ln((0.6 + 0.4/3) / (0.4/3))
    assert accounting.event(response, delta=0.0).epsilon == pytest.approx(math.log(5.5), rel=1e-9)
    # Theirs hides the index; ours is a pair in which it is known.
    with pytest.raises(DpError):
        events.from_dp_accounting(peer.MixtureOfGaussiansDpEvent(1.5, [0.0, 1.0], [0.5, 0.5]))
    with pytest.raises(DpError) as caught:
        events.from_dp_accounting(peer.ComposedDpEvent([gaussian, peer.UnsupportedDpEvent()]))
    assert caught.value.field == "event.events[1]"


@pytest.mark.parametrize(("mean", "shape"), [(10.0, 1.0), (10.0, 0.5), (10.0, 0.0), (3.0, 2.0), (5.0, -0.5)])
def test_repetitions_have_the_mean_of_dp_accounting(mean, shape):
    law = events._repetitions(mean, shape)
    gamma, eta = law.gamma, law.eta
    if eta == 0.0:
        found = (1 / gamma - 1) / math.log(1 / gamma)
    else:
        found = eta * (1 - gamma) / (gamma * (1 - gamma**eta))
    assert found == pytest.approx(mean, rel=1e-9)
    assert events._repetitions(4.0, math.inf).mean == 4.0
