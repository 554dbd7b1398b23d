"""Noise, batches and certificates for a training whose gradients are computed elsewhere."""

import copy
import hashlib
import itertools
import math
import os
import pickle
import threading
import warnings

import numpy as np
import pytest

from dp import accounting, steps
from dp.errors import DpError, NotPrivateWarning, PrivacyError, VerificationError
from dp.steps import Plan, weights_sha256

WEIGHTS = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.zeros(2, dtype=np.float32)}


def plan(**arguments):
    usual = {"batch_size": 100, "steps": 30, "max_grad_norm": 0.5, "epsilon": 2.0, "delta": 1e-6}
    return Plan(arguments.pop("records", 2000), **{**usual, **arguments})


def seeded(seed, **arguments):
    with pytest.warns(NotPrivateWarning):
        return plan(random_state=seed, **arguments)


def noise(seed, shape, dtype=np.float32, total=None, **arguments):
    """The noise of all steps of a plan, or their noisy sums."""
    of_steps = seeded(seed, **arguments)
    total = np.zeros(shape, dtype=dtype) if total is None else total
    return of_steps, [of_steps.add(total) for _ in of_steps.batches()]


def test_the_cost_is_that_of_dpsgd():
    for adjacency in ("add-remove", "replace-one"):
        made = plan(adjacency=adjacency)
        release = made.finish(WEIGHTS, clipped_by="mine 1.0")
        assert 1.999 < release.epsilon <= 2.0 and release.delta == 1e-6
        assert release.verify() == release.verify(WEIGHTS) == (release.epsilon, 1e-6)
        if adjacency == "add-remove":
            rate = -math.expm1(-100 / 2000)
            answer = accounting.dpsgd(noise_multiplier=made.noise_multiplier, sampling_rate=rate, steps=30, delta=1e-6)
            assert math.isclose(answer.epsilon, release.epsilon, rel_tol=1e-6)
    given = plan(epsilon=None, noise_multiplier=1.5)
    assert math.isclose(given.std_dev, 1.5 * 0.5 * 1.01, rel_tol=1e-12) and math.isclose(given.noise_multiplier, 1.5)
    assert math.isclose(given.mean_batch_size, 2000 * -math.expm1(-100 / 2000))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_noise_is_normal(dtype):
    stats = pytest.importorskip("scipy.stats")
    made, drawn = noise(3, (20, 1000), dtype, steps=10)
    assert all(one.shape == (20, 1000) and one.dtype == dtype for one in drawn)
    cells = np.concatenate([one.reshape(-1) for one in drawn]).astype(float) / made.std_dev
    # The seed decides; another one fails once in 10,000.
    assert stats.kstest(cells, "norm").pvalue > 1e-4
    # No step has the noise of another.
    assert len(np.unique(cells)) > 0.99 * cells.size


def test_noise_and_batches_do_not_depend_on_threads():
    def all_of(n_jobs):
        made = seeded(4, steps=3, n_jobs=n_jobs)
        return [(batch.tolist(), made.add(np.zeros(100_000, np.float32)).tolist()) for batch in made.batches()]

    assert all_of(1) == all_of(2)


def test_batches_hold_each_record_with_the_same_probability():
    made = seeded(5, records=500, batch_size=50, steps=2000)
    counts, sizes = np.zeros(500), []
    while True:
        try:
            for batch in made.batches():
                assert len(set(batch.tolist())) == len(batch)
                counts[batch] += 1
                sizes.append(len(batch))
        except PrivacyError:
            break
    rate = -math.expm1(-0.1)
    assert len(sizes) == 2000 and math.isclose(made.mean_batch_size, 500 * rate)
    # Five standard errors of 500 records: the seed decides, and another one fails once in 3,000.
    assert np.all(np.abs(counts / 2000 - rate) < 5 * math.sqrt(rate / 2000))
    # The size of a sample of each record by itself varies.
    assert 0.8 < np.var(sizes) / (500 * rate * (1 - rate)) < 1.2
    epochs = plan(steps=None, epochs=2, batch_size=300)
    assert [len(list(epochs.batches())) for _ in range(2)] == [epochs.steps_per_epoch] * 2 == [7, 7]
    assert len(list(plan(steps=8, batch_size=300).batches())) == 7


def last_digits(noisy):
    """The share of small numbers that have no digit below 2^-24, as sums with numbers of about 1 in floating point."""
    small = noisy[np.abs(noisy) < 1 / 16]
    assert len(small) > 1000
    return np.mean(small * 2.0**24 == np.round(small * 2.0**24))


def test_last_digits_do_not_tell_the_sum():
    # What the noise of a library in single precision tells: a sum of 1 leaves its traces, a sum of 0 does not.
    drawn = np.random.default_rng(0).standard_normal(200_000).astype(np.float32)
    zero, one = np.float32(0) + drawn, np.float32(1) + drawn
    assert last_digits(zero) < 0.1 and last_digits(one) == 1
    # Ours is rounded to the same grid whatever the sum.
    shares = []
    for total in (0, 1):
        sums = np.full(200_000, total, dtype=np.float32)
        # Noise of about one, and a clipping norm that admits the sum.
        scale = {"max_grad_norm": 10.0, "noise_multiplier": 0.1}
        _, (noisy,) = noise(6, None, total=sums, steps=1, epsilon=None, **scale)
        shares.append(last_digits(noisy))
    # Five standard errors of shares near 0.05 of 10,000.
    assert abs(shares[0] - shares[1]) < 0.015


def test_the_membership_of_a_record_is_as_hard_to_tell_as_claimed():
    # One step in which the record, if it is there and drawn, adds a gradient of the largest norm along a known direction.
    runs = 4000
    made = seeded(7, records=400, batch_size=200, steps=2 * runs, epsilon=None, noise_multiplier=0.6, max_grad_norm=1.0)
    scores = {True: [], False: []}
    for i in range(2 * runs):
        batch = next(made.batches())
        is_there = i % 2 == 0
        total = np.zeros(4, dtype=np.float32)
        total[0] = 1.0 if is_there and 0 in batch else 0.0
        scores[is_there].append(float(made.add(total)[0]))
    rate = -math.expm1(-0.5)
    claimed = accounting.dpsgd(noise_multiplier=0.6, sampling_rate=rate, steps=1, delta=1e-3).epsilon
    threshold = 1.6
    caught, wrongly = (np.mean(np.array(scores[which]) > threshold) for which in (True, False))
    # Lower and upper ends at five standard errors.
    low, high = caught - 5 * math.sqrt(caught / runs), wrongly + 5 * math.sqrt(wrongly / runs)
    found = math.log((low - 1e-3) / high)
    assert 1.0 < found <= claimed


def test_steps_without_a_batch_or_a_plan_are_refused():
    made = plan(steps=2)
    total = np.zeros(3, dtype=np.float32)
    with pytest.raises(PrivacyError, match="without a batch"):
        made.add(total)
    batches = made.batches()
    next(batches)
    made.add(total)
    with pytest.raises(PrivacyError, match="without a batch"):
        made.add(total)
    assert made.steps_left == 1
    next(batches)
    with pytest.raises(DpError, match="4 coordinates, expected 3"):
        made.add(np.zeros(4, dtype=np.float32))
    made.add(total)
    with pytest.raises(PrivacyError, match="all 2 steps are used up"):
        made.add(total)
    with pytest.raises(PrivacyError, match="all 2 steps") as caught:
        next(made.batches())
    assert caught.value.code == "privacy.steps"
    release = made.finish(WEIGHTS, clipped_by="mine 1.0")
    assert release.steps_taken == 2
    for more in (lambda: made.add(total), lambda: made.finish(WEIGHTS, clipped_by="mine 1.0")):
        with pytest.raises(PrivacyError, match="has ended"):
            more()
    assert made.steps_left == 0


@pytest.mark.parametrize(
    ("total", "message"),
    [
        (np.array([0.0, np.nan], dtype=np.float32), "finite"),
        (np.array([0.0, np.inf]), "finite"),
        (np.zeros(0), "no coordinate"),
        (np.zeros(3, dtype=np.float16), "float16"),
        (np.zeros(3, dtype=np.int64), "int64"),
        (np.zeros(3, dtype=object), "object"),
        ("text", "<U4"),
        (None, "object"),
        ([[1.0], [1.0, 2.0]], "a list that numpy cannot read"),
    ],
)
def test_sums_that_are_refused(total, message):
    made = plan()
    next(made.batches())
    with pytest.raises(DpError, match=message):
        made.add(total)
    assert made.steps_left == 30


def test_sums_of_any_layout():
    made = plan(records=20_000, batch_size=2000, max_grad_norm=20.0)
    total = np.asfortranarray(np.arange(12.0).reshape(3, 4) * 1000)
    for sums in (total, total[:, ::-1], total.T):
        next(made.batches())
        noisy = made.add(sums)
        assert noisy.shape == sums.shape and np.max(np.abs(noisy - sums)) < 20 * made.std_dev
    assert np.array_equal(total, np.arange(12.0).reshape(3, 4) * 1000)
    next(made.batches())
    assert made.add([0.5] * 12).shape == (12,)


@pytest.mark.parametrize(
    ("arguments", "field", "message"),
    [
        ({"records": 0}, "records", "records is 0"),
        ({"records": 2.5}, "records", "records is 2.5"),
        ({"records": 50}, "batch_size", "1 to the number of records"),
        ({"records": 2**33}, "records", r"2\^32"),
        ({"batch_size": True}, "batch_size", "batch_size is True"),
        ({"records": 10**6, "batch_size": 20_000}, "batch_size", "at most 16384"),
        ({"steps": 2**50}, "steps", r"below 2\^48"),
        ({"steps": None}, "steps", "steps or epochs"),
        ({"epochs": 3}, "steps", "both given"),
        ({"max_grad_norm": 0.0}, "max_grad_norm", "max_grad_norm = 0.0 must be greater than 0"),
        ({"max_grad_norm": math.nan}, "max_grad_norm", "max_grad_norm = NaN must be finite"),
        ({"max_grad_norm": "1"}, "max_grad_norm", "cannot be used"),
        ({"epsilon": None}, "epsilon", "epsilon or noise_multiplier"),
        ({"epsilon": 0.0}, "epsilon", "epsilon"),
        ({"epsilon": math.nan}, "epsilon", "epsilon"),
        ({"epsilon": "2"}, "epsilon", "cannot be used"),
        ({"noise_multiplier": 1.0}, "epsilon", "both given"),
        ({"epsilon": None, "noise_multiplier": 0.0}, "noise_multiplier", "noise multiplier"),
        ({"epsilon": None, "noise_multiplier": math.inf}, "noise_multiplier", "noise multiplier"),
        ({"delta": 0.0}, "delta", "delta > 0"),
        ({"delta": 0, "epsilon": None, "noise_multiplier": 1.0}, "delta", "delta > 0"),
        ({"delta": 1.0}, "delta", "delta"),
        ({"delta": None}, "delta", "delta is missing"),
        ({"adjacency": "swap"}, "adjacency", "'replace-one'"),
        ({"random_state": -1}, "random_state", "random_state is -1"),
        ({"n_jobs": 0}, "n_jobs", "n_jobs is 0"),
    ],
)
def test_plans_that_are_refused(arguments, field, message):
    with pytest.raises(DpError, match=message) as caught:
        plan(**arguments)
    assert caught.value.field == field


def test_weights_that_are_refused():
    made = plan()
    for given, arguments, message in (
        ({}, {}, "no arrays by name"),
        ([1.0], {}, "no arrays by name"),
        ({1: np.zeros(2)}, {}, "no arrays by name"),
        ({"w": np.array(["a"])}, {}, "type <U1"),
        (WEIGHTS, {"clipped_by": ""}, "clipped_by is ''"),
        (WEIGHTS, {"clipped_by": "x" * 101}, "clipped_by"),
        (WEIGHTS, {"public": ["embedding"]}, "public names 'embedding'"),
    ):
        with pytest.raises(DpError, match=message):
            made.finish(given, **{"clipped_by": "mine 1.0", **arguments})
    # Nothing was lost.
    assert made.finish(WEIGHTS, clipped_by="mine 1.0").epsilon <= 2.0


def test_files_go_to_the_program_and_back(program, tmp_path):
    file = tmp_path / "certificate.json"
    release = plan().finish(WEIGHTS, clipped_by="mine 1.0", public=["b"])
    release.save(file)
    said = program("verify", file)
    assert "holds" in said and "`mine 1.0` clipped" in said and "not trained" in said
    loaded = steps.load(file)
    assert loaded.verify(WEIGHTS) == release.verify() and loaded.weights_sha256 == release.weights_sha256
    assert loaded.certificate == release.certificate and loaded.steps_taken == 0
    with pytest.raises(VerificationError, match="not one of these weights"):
        loaded.verify({**WEIGHTS, "b": np.ones(2, dtype=np.float32)})
    with pytest.raises(FileExistsError):
        release.save(file)
    assert list(tmp_path.iterdir()) == [file]
    answer = accounting.certificate(file)
    assert answer.epsilon_lower <= answer.epsilon <= release.epsilon + 1e-12 and answer.delta == release.delta
    edited = tmp_path / "edited.json"
    edited.write_text(file.read_text().replace('"n": 2000', '"n": 3000'))
    with pytest.raises(VerificationError):
        steps.load(edited)
    edited.write_text("{}")
    with pytest.raises(VerificationError):
        steps.load(edited)


def test_certificates_can_be_copied():
    release = plan().finish(WEIGHTS, clipped_by="mine 1.0")
    for again in (copy.copy(release), copy.deepcopy(release), pickle.loads(pickle.dumps(release))):
        assert again.verify(WEIGHTS) == release.verify() and again.certificate == release.certificate


def test_another_reader_says_what_the_file_holds(tmp_path):
    pytest.importorskip("sklearn")
    import dp

    file = tmp_path / "certificate.json"
    plan().finish(WEIGHTS, clipped_by="mine 1.0", public=["b"]).save(file)
    with pytest.raises(VerificationError, match="training by another program"):
        dp.load(file)


def test_the_hash_of_weights_is_the_documented_one():
    digest = hashlib.sha256()
    digest.update(b'["b", "float32", [2]]\n' + bytes(8))
    digest.update(b'["w", "float32", [2, 3]]\n' + np.arange(6, dtype="<f4").tobytes())
    assert weights_sha256(WEIGHTS) == digest.hexdigest()
    assert weights_sha256({"w": np.asfortranarray(WEIGHTS["w"]).astype(">f4"), "b": WEIGHTS["b"]}) == digest.hexdigest()
    others = ({**WEIGHTS, "w": WEIGHTS["w"].reshape(3, 2)}, {**WEIGHTS, "w": WEIGHTS["w"].astype(float)}, {"w": WEIGHTS["w"]})
    assert len({weights_sha256(one) for one in (WEIGHTS, *others)}) == 4


def test_a_seed_gives_no_guarantee(tmp_path):
    first, second = (noise(8, 5, steps=2)[1] for _ in range(2))
    assert np.array_equal(first, second) and not np.array_equal(*first)
    release = seeded(8).finish(WEIGHTS, clipped_by="mine 1.0")
    assert release.epsilon == math.inf and not release.certificate["private"]
    with pytest.raises(VerificationError, match="seed"):
        release.verify()


def test_noise_without_a_seed_is_fresh():
    drawn = [plan() for _ in range(2)]
    for one in drawn:
        next(one.batches())
    assert not np.array_equal(*(one.add(np.zeros(4)) for one in drawn))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, 1e18, 0.5 * 2000])
def test_a_sum_that_cannot_have_been_clipped_ends_the_training(wrong):
    made = plan()
    batches = made.batches()
    next(batches)
    refused = (
        lambda: made.add(np.array([wrong, 0.0])),
        lambda: made.add(np.zeros(2)),
        lambda: next(batches),
        lambda: made.finish(WEIGHTS, clipped_by="mine 1.0"),
    )
    for use in refused:
        with pytest.raises(PrivacyError, match="ended the training"):
            use()


def test_a_loader_hands_out_no_batch_before_the_step_on_the_last():
    made = plan()
    turns = made._turns
    turns.start(0)
    for _ in itertools.islice(made.batches(), 3):
        turns.draw()
        turns.check_step()
        with pytest.raises(PrivacyError, match="the last batch had no step"):
            turns.check()
        made.add(np.zeros(2))
        turns.check()
        with pytest.raises(PrivacyError, match="a step without a batch"):
            turns.check_step()


def test_plans_cannot_be_copied():
    made = plan()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="must not exist twice"):
            copied(made)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_plans_are_of_one_process():
    made = plan()
    next(made.batches())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        refused = 0
        for use in (lambda: made.add(np.zeros(3)), lambda: next(made.batches()), lambda: made.finish(WEIGHTS, clipped_by="x")):
            try:
                use()
            except PrivacyError as error:
                refused += error.code == "privacy.fork"
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    made.add(np.zeros(3))


def test_threads_share_no_noise():
    made = seeded(9, steps=20)
    for _ in made.batches():
        pass
    drawn = []
    running = [threading.Thread(target=lambda: drawn.append(made.add(np.zeros(50_000, np.float32)))) for _ in range(20)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert len({one.tobytes() for one in drawn}) == 20 and made.steps_left == 0
