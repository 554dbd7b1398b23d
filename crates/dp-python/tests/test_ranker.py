"""Rankers: those of the program, and what is refused."""

import json
import math
import pickle
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")
pandas = pytest.importorskip("pandas")

from sklearn.base import clone

import dp
from dp import DPRanker
from dp.errors import DataError, DpError, NotPrivateWarning, PrivacyError


@pytest.fixture(scope="module")
def lists():
    rng = np.random.default_rng(2)
    sizes = rng.integers(2, 9, 400)
    X = rng.uniform(size=(int(sizes.sum()), 3)).round(6)
    grades = np.digitize(X[:, 0] - 0.5 * X[:, 1] + 0.05 * rng.normal(size=len(X)), [0.2, 0.6])
    return X, grades, sizes


def ranker(**arguments):
    return DPRanker(**{"epsilon": 2.0, "delta": 1e-5, **arguments})


def seeded(estimator, *arguments, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return estimator.fit(*arguments, **keywords)


@pytest.mark.parametrize(
    ("flags", "arguments"),
    [
        (["--loss", "bayesrank", "--model", "linear"], {}),
        (
            ["--loss", "bayesrank", "--model", "linear", "--k", "3", "--thin", "--scaling", "public"],
            {"k": 3, "thin": True, "scaling": "public"},
        ),
        (
            ["--loss", "listnet", "--model", "linear", "--clip", "0.5", "--updates", "50", "--batch-size", "20"],
            {"loss": "listnet", "clip": 0.5, "updates": 50, "batch_size": 20},
        ),
        (
            ["--loss", "listmle", "--model", "linear", "--normalise-features", "--step", "0.2"],
            {"loss": "listmle", "normalise_features": True, "step": 0.2},
        ),
        (
            ["--loss", "bayesrank", "--model", "mlp", "--hidden", "4", "--activation", "tanh", "--normalise", "always"],
            {"scorer": "mlp", "hidden": 4, "activation": "tanh", "normalise": "always"},
        ),
        (["--loss", "bayesrank", "--model", "linear", "--protect", "lists", "--features", "3"], {"protect": "lists"}),
        (
            ["--loss", "bayesrank", "--model", "linear", "--protect", "lists", "--features", "3", "--adjacency", "replace-one"],
            {"protect": "lists", "adjacency": "replace-one"},
        ),
        (["--loss", "bayesrank", "--model", "linear", "--protect", "documents", "--features", "3"], {"protect": "documents"}),
    ],
)
def test_rankers_are_those_of_the_program(flags, arguments, program, lists, tmp_path):
    X, grades, sizes = lists
    data, out = tmp_path / "lists.csv", tmp_path / "ranker.json"
    query = np.repeat(np.arange(len(sizes)), sizes)
    rows = [f"{q},{g},{','.join(map(repr, x))}" for q, g, x in zip(query, grades, X.tolist())]
    data.write_text("query,grade,x0,x1,x2\n" + "\n".join(rows) + "\n")
    common = ["--data", data, "--query", "query", "--label", "grade", "--epsilon", 2, "--delta", 1e-5, "--seed", 4]
    program("rank", "train", *common, *flags, "--out", out)
    ours = seeded(ranker(random_state=4, **arguments), X, grades, group=sizes)
    theirs = json.loads(out.read_text())
    text = json.loads(ours.model_.text())
    assert text["model"] == theirs["model"]
    for name in ("event", "derivation", "assumptions", "adjacency"):
        assert text["certificate"][name] == theirs["certificate"][name]
    # The program's file is read, and its scores are ours.
    loaded = dp.load(out)
    assert isinstance(loaded, DPRanker)
    scores = loaded.predict(X, group=sizes) if ours.normalise_features else loaded.predict(X)
    assert np.array_equal(scores, ours.predict(X, group=sizes))
    assert np.array_equal(ours.predict(X, qid=query), ours.predict(X, group=sizes))
    saved, predicted = tmp_path / "ours.json", tmp_path / "scores.csv"
    ours.save(saved)
    program("rank", "predict", "--model", saved, "--data", data, "--out", predicted)
    of_program = [float(line.split(",")[-1]) for line in predicted.read_text().splitlines()[1:]]
    assert of_program == ours.predict(X, group=sizes).tolist()


def test_a_ranker_ranks_and_verifies(lists):
    X, grades, sizes = lists
    estimator = ranker().fit(X, grades, group=sizes)
    assert estimator.coef_.shape == (3,) and estimator.coef_[0] > abs(estimator.coef_[2])
    assert estimator.verify() == (estimator.epsilon_, estimator.delta_) and estimator.epsilon_ <= 2.0
    copy = pickle.loads(pickle.dumps(estimator))
    assert np.array_equal(copy.predict(X), estimator.predict(X))
    assert len(pickle.dumps(estimator)) < 10_000
    network = ranker(scorer="mlp", hidden=4).fit(X, grades, group=sizes)
    assert not hasattr(network, "coef_") and network.weights_.size > 4
    with pytest.raises(PrivacyError, match="fitted already"):
        clone(estimator).fit(X, grades, group=sizes)
    with pytest.warns(NotPrivateWarning):
        assert ranker(random_state=1).fit(X, grades, group=sizes).epsilon_ == math.inf


@pytest.mark.parametrize(
    ("arguments", "fit", "message"),
    [
        ({"epsilon": None}, {}, "epsilon is missing"),
        ({"delta": None}, {}, "delta is missing"),
        ({"delta": 0.0}, {}, "the noise is Gaussian"),
        ({"epsilon": float("nan")}, {}, "epsilon"),
        ({"largest_grade": 0}, {}, "largest_grade is 0"),
        ({"largest_grade": 1}, {}, "grade"),
        ({"loss": "lambdarank"}, {}, "expected 'bayesrank', 'listnet', 'listmle'"),
        ({"loss": "listmle", "k": 2}, {}, "all positions"),
        ({"k": 0}, {}, "k is 0"),
        ({"protect": "users"}, {}, "'documents'"),
        ({"protect": "lists", "adjacency": "change-list-labels"}, {}, "another neighbouring relation"),
        ({"scaling": "public", "loss": "listnet"}, {}, "bayesrank"),
        ({"scaling": "public", "protect": "lists"}, {}, "grades"),
        ({"scorer": "mlp", "hidden": 0}, {}, "hidden is 0"),
        ({"hidden": 4}, {}, "the scorer is linear"),
        ({"activation": "tanh"}, {}, "the scorer is linear"),
        ({"clip": -1.0}, {}, "clip = -1.0 is out of range"),
        ({"updates": 0}, {}, "updates = 0 is out of range"),
        ({}, {"group": None}, "the lists are not known"),
        ({}, {"qid": [1]}, "say the same"),
        ({}, {"group": [3, 4]}, "adds up to 7"),
        ({}, {"group": [0.5]}, "sizes"),
        ({}, {"group": None, "qid": [1, 2]}, "one identifier for each"),
        ({}, {"y": "text"}, "something else than grades"),
        ({}, {"y": -1}, "something else than grades"),
    ],
)
def test_what_is_refused_says_what_was_expected(arguments, fit, message, lists):
    X, grades, sizes = lists
    y = np.full(len(X), fit.pop("y")) if "y" in fit else grades
    with pytest.raises(DpError) as caught:
        ranker(**arguments).fit(X, y, **{"group": sizes, **fit})
    assert message in str(caught.value)
    # Such a message may quote a record.
    assert isinstance(caught.value, DataError) == (message == "grade")


def test_lists_in_two_places_are_refused(lists):
    X, grades, _ = lists
    with pytest.raises(DpError, match="do not follow one another"):
        ranker().fit(X[:4], grades[:4], qid=["a", "a", "b", "a"])
    for missing in (np.nan, None, pandas.NA, pandas.NaT):
        with pytest.raises(DataError, match="qid has missing values"):
            ranker().fit(X[:4], grades[:4], qid=np.array(["a", "a", missing, missing], dtype=object))
    with pytest.raises(DataError, match="qid has missing values"):
        ranker().fit(X[:4], grades[:4], qid=[1.0, 1.0, np.nan, np.nan])
    with pytest.raises(DataError, match="two columns are named `f`"):
        ranker().fit(pandas.DataFrame(X[:4, :2], columns=["f", "f"]), grades[:4], group=[4])
    with pytest.raises(ValueError, match="NaN"):
        ranker().fit(np.full((4, 2), np.nan), [0, 1, 0, 1], group=[4])
    with pytest.raises(TypeError, match="influence"):
        ranker().fit(X[:4], grades[:4], group=[4], sample_weight=[1] * 4)
