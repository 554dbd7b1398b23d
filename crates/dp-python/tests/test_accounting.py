"""Questions to the accountant: against its own program's answers, arrays, and everything that is refused."""

import copy
import json
import pickle
import signal
import threading
import time

import numpy as np
import pytest

from dp import accounting, events
from dp.errors import DpError, PrivacyError, VerificationError

DPSGD = {"sampling_rate": 0.01, "steps": 1000, "delta": 1e-6}

QUESTIONS = [
    (accounting.dpsgd, {"noise_multiplier": 1.1, **DPSGD}),
    (accounting.dpsgd, {"noise_multiplier": 1.1, "sampling_rate": 0.01, "steps": 1000, "epsilon": 2.0}),
    (accounting.dpsgd, {"epsilon": 2.0, **DPSGD}),
    (accounting.dpsgd, {"epsilon": 2.0, "noise_multiplier": 1.0, "steps": 1000, "delta": 1e-6}),
    (accounting.dpsgd, {"epsilon": 2.0, "noise_multiplier": 1.0, "sampling_rate": 0.01, "delta": 1e-6}),
    (
        accounting.dpsgd,
        {"noise_multiplier": 1.1, "batch_size": 256, "records": 60_000, "epochs": 15.0, "delta": 1e-6},
    ),
    (accounting.dpsgd, {"noise_multiplier": 2.0, **DPSGD, "sampling": "without-replacement"}),
    (accounting.dpsgd, {"noise_multiplier": 2.0, **DPSGD, "adjacency": "replace-one"}),
    (accounting.dpsgd, {"noise_multiplier": 2.0, **DPSGD, "n_public": False}),
    (accounting.gaussian, {"noise_multiplier": 4.0, "steps": 12, "delta": 1e-6}),
    (accounting.gaussian, {"noise_multiplier": 4.0, "steps": 12, "delta": 1e-6, "accountant": "zcdp"}),
    (accounting.gaussian, {"noise_multiplier": 4.0, "delta": 1e-6, "group": 3}),
    (accounting.laplace, {"noise_multiplier": 2.0}),
    (accounting.laplace, {"noise_multiplier": 2.0, "steps": 10, "delta": 1e-6}),
    (accounting.laplace_ball, {"noise_multiplier": 2.0, "dim": 50, "steps": 2, "delta": 1e-6}),
    (accounting.randomized_response, {"buckets": 3, "noise": 0.5}),
    (accounting.pure, {"step_epsilon": 0.1, "steps": 100, "delta": 1e-6}),
    (accounting.approximate, {"step_epsilon": 0.1, "step_delta": 1e-9, "steps": 100, "delta": 1e-6}),
    (accounting.zcdp, {"rho": 0.1, "delta": 1e-6}),
    (accounting.gdp, {"mu": 0.5, "delta": 1e-6}),
]


def test_answers_are_those_of_the_program(program):
    lines = []
    for job, arguments in QUESTIONS:
        lines.append(json.dumps({"job": job.__name__.replace("_", "-"), **arguments}))
    answers = [json.loads(line) for line in program("account", "batch", "-", input="\n".join(lines)).splitlines()]
    assert len(answers) == len(QUESTIONS)
    for (job, arguments), expected in zip(QUESTIONS, answers):
        answer = job(**arguments)
        for name, value in expected.items():
            if name in ("schema", "job", "group", "note", "sampling", "target_epsilon"):
                continue
            found = getattr(answer, name)
            assert found == (float("inf") if value == "inf" else value), (job.__name__, arguments, name)


@pytest.mark.parametrize(("job", "arguments"), QUESTIONS)
def test_certified_ends_enclose_what_is_promised(job, arguments):
    answer = job(**arguments)
    assert 0.0 <= answer.epsilon_lower <= answer.epsilon == answer.epsilon_upper
    if answer.solved == "delta":
        assert 0.0 <= answer.delta_lower <= answer.delta == answer.delta_upper
    assert isinstance(answer.epsilon, float)
    assert isinstance(answer.steps, int)


def test_arrays_are_broadcast_and_equal_to_scalars():
    noise = np.array([[0.8], [1.0], [2.0]])
    steps = [100, 1000]
    answers = accounting.dpsgd(noise_multiplier=noise, sampling_rate=0.01, steps=steps, delta=1e-6)
    assert answers.epsilon.shape == answers.steps.shape == answers.theorem.shape == (3, 2)
    assert answers.epsilon.dtype == np.float64
    for i in range(3):
        for j in range(2):
            one = accounting.dpsgd(
                noise_multiplier=float(noise[i, 0]), sampling_rate=0.01, steps=steps[j], delta=1e-6, threads=1
            )
            assert answers.epsilon[i, j] == one.epsilon
            assert answers.epsilon_lower[i, j] == one.epsilon_lower
    assert np.all(np.diff(answers.epsilon, axis=0) < 0)
    assert np.all(np.diff(answers.epsilon, axis=1) > 0)


def test_any_kind_of_array_is_read():
    expected = accounting.gaussian(noise_multiplier=[2.0, 4.0], delta=1e-6).epsilon
    wide = np.array([2.0, 0.0, 4.0, 0.0])
    for values in (
        (2, 4),
        np.array([2, 4], dtype=np.int8),
        np.array([2, 4], dtype=np.float32),
        np.array([2.0, 4.0], dtype=object),
        wide[::2],
        np.array([[2.0, 0.0], [4.0, 0.0]], order="F")[:, 0],
        wide[::2][::-1][::-1],
    ):
        assert np.array_equal(accounting.gaussian(noise_multiplier=values, delta=1e-6).epsilon, expected)
    none = accounting.gaussian(noise_multiplier=np.empty((0, 3)), delta=1e-6)
    assert none.epsilon.shape == (0, 3)
    assert accounting.gaussian(noise_multiplier=2, steps=3.0, delta=1e-6).steps == 3


def test_the_lock_is_released():
    ran = []
    worker = threading.Thread(target=lambda: ran.extend(time.perf_counter() for _ in range(200)))
    rates = np.linspace(0.001, 0.9, 400)
    worker.start()
    accounting.dpsgd(noise_multiplier=1.0, sampling_rate=rates, steps=1000, delta=1e-6, threads=1)
    worker.join()
    assert len(ran) == 200


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarms here")
def test_an_interrupt_ends_a_call():
    def raise_interrupt(*_):
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, raise_interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            # Minutes of work.
            accounting.laplace_ball(
                noise_multiplier=np.linspace(1, 2, 100_000), dim=50, steps=100, delta=1e-6, threads=1, limit=None
            )
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def refused(job, kind=DpError, **arguments):
    with pytest.raises(kind) as caught:
        job(**arguments)
    return caught.value


@pytest.mark.parametrize(
    ("arguments", "field", "message"),
    [
        ({"noise_multiplier": [1.0, float("nan")]}, "noise_multiplier[1]", "noise_multiplier[1] = NaN is out of range"),
        ({"noise_multiplier": float("inf")}, "noise_multiplier", "noise_multiplier = inf is out of range"),
        ({"noise_multiplier": [[1.0], [-1.0]], "steps": [1, 2]}, "noise_multiplier[1, 0]", "-1.0 is out of range"),
        ({"noise_multiplier": 0}, "noise_multiplier", "= 0.0 is out of range"),
        ({"noise_multiplier": "1.1"}, "noise_multiplier", "in place of numbers"),
        ({"noise_multiplier": ["1.1", "a"]}, "noise_multiplier", "in place of numbers"),
        ({"noise_multiplier": True}, "noise_multiplier", "bool in place of numbers"),
        ({"noise_multiplier": [1.0, None]}, "noise_multiplier[1]", "noise_multiplier[1] = None"),
        ({"noise_multiplier": [[1.0], [1.0, 2.0]]}, "noise_multiplier", "no array of numbers"),
        ({"noise_multiplier": 1j}, "noise_multiplier", "complex128 in place of numbers"),
        ({"noise_multiplier": 1.0, "steps": 2.5}, "steps", "steps = 2.5"),
        ({"noise_multiplier": 1.0, "steps": [5, -1]}, "steps[1]", "steps[1] = -1"),
        ({"noise_multiplier": 1.0, "steps": 0}, "steps", "steps = 0"),
        ({"noise_multiplier": 1.0, "steps": 1e300}, "steps", "steps = 1e+300"),
        ({"noise_multiplier": 1.0, "delta": 1.0}, "delta", "delta = 1.0"),
        ({"noise_multiplier": 1.0, "delta": [1e-6, -1e-6]}, "delta[1]", "delta[1] = -1e-6"),
        ({"noise_multiplier": 1.0, "sampling_rate": 1.5}, "sampling_rate", "sampling_rate = 1.5"),
        ({"noise_multiplier": 1.0, "epsilon": 1.0}, "epsilon", "nothing is left"),
        ({}, "epsilon", "too much is left out: epsilon, noise_multiplier"),
        ({"noise_multiplier": 1.0, "sampling": "shuffle"}, "sampling", "sampling is"),
        ({"noise_multiplier": 1.0, "accountant": "pld"}, "accountant", "accountant is"),
        ({"noise_multiplier": 1.0, "solve": "mu"}, "solve", "solve is"),
        ({"noise_multiplier": 1.0, "adjacency": "bounded"}, "adjacency", "adjacency is"),
        ({"noise_multiplier": 1.0, "limit": 0.0}, "limit", "limit = 0.0"),
        ({"noise_multiplier": 1.0, "threads": 0}, "threads", "threads = 0"),
    ],
)
def test_what_is_refused_is_named_with_its_index(arguments, field, message):
    error = refused(accounting.dpsgd, **{**DPSGD, **arguments})
    assert error.field == field
    assert message in str(error)
    assert error.code.startswith("usage.")


def test_shapes_that_do_not_fit_are_shown():
    error = refused(accounting.gaussian, noise_multiplier=[1.0, 2.0], delta=[1e-6] * 3)
    assert "noise_multiplier (2,), delta (3,)" in str(error)


def test_what_has_no_theorem_is_no_answer():
    error = refused(
        accounting.dpsgd,
        PrivacyError,
        noise_multiplier=[1.0, 2.0],
        **DPSGD,
        sampling="without-replacement",
        adjacency="add-remove",
    )
    assert error.code == "privacy.adjacency" and "replace-one" in str(error) and "element [0]" in str(error)
    assert refused(accounting.gaussian, PrivacyError, epsilon=0.1, delta=0.0).code == "account.unreachable"
    none = accounting.event(events.NonPrivate(), delta=1e-6)
    assert none.epsilon == float("inf")


def test_accountants_are_compared():
    answers = accounting.compare(accounting.dpsgd, noise_multiplier=1.0, **DPSGD)
    assert list(answers) == ["auto", "exact", "rdp", "zcdp", "gdp"]
    assert answers["auto"].epsilon <= answers["exact"].epsilon < answers["rdp"].epsilon
    assert isinstance(answers["gdp"], PrivacyError)
    with pytest.raises(TypeError, match="omit the argument"):
        accounting.compare(accounting.dpsgd, accountant="rdp")


def test_a_guarantee_has_a_meaning_and_a_curve():
    answer = accounting.gaussian(noise_multiplier=[1.0, 4.0], delta=1e-6)
    meanings, curves = answer.meaning(), answer.trade_off(points=11)
    assert meanings[0].advantage > meanings[1].advantage > 0
    assert all("An attacker sees what is released" in str(meaning) for meaning in meanings)
    for curve in curves:
        assert curve.false_positive_rate.shape == curve.false_negative_rate.shape == (11,)
        assert np.all(np.diff(curve.false_negative_rate) <= 0)
    assert np.all(curves[0].false_negative_rate <= curves[1].false_negative_rate)
    # N(0, 1) against N(1/4, 1): 1 - advantage is the least sum of both errors.
    assert min(curves[1].false_positive_rate + curves[1].false_negative_rate) >= 1.0 - meanings[1].advantage
    assert meanings[1].advantage == pytest.approx(0.09948, abs=1e-4)
    assert refused(answer.trade_off, points=1).field == "points"


def test_answers_can_be_copied():
    answer = accounting.dpsgd(noise_multiplier=[1.0, 1.1], sampling_rate=0.01, steps=100, delta=1e-6)
    for again in (copy.deepcopy(answer), pickle.loads(pickle.dumps(answer))):
        assert np.array_equal(again.epsilon, answer.epsilon) and again.meaning() == answer.meaning()
        assert np.array_equal(again.trade_off(3)[1].false_negative_rate, answer.trade_off(3)[1].false_negative_rate)


def test_files_that_are_no_models_are_refused(tmp_path):
    file = tmp_path / "model.json"
    file.write_text("{}")
    error = refused(lambda: accounting.certificate(file), VerificationError)
    assert error.code == "model.format"
    with pytest.raises(FileNotFoundError):
        accounting.certificate(tmp_path / "none.json")
