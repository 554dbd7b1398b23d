"""Estimators: the models of the program, what is read, what is refused, and what is kept."""

import csv
import gc
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("sklearn")
pandas = pytest.importorskip("pandas")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import dp
from conftest import BOUNDS, SCHEMA
from dp import DPGridSearch, DPLinearSVC, DPLogisticRegression, DPRidge, _dp
from dp.errors import (
    CuratorWarning,
    DataError,
    DpError,
    NotPrivateWarning,
    PrivacyError,
    UselessModelWarning,
    VerificationError,
)

COLUMNS = ["age", "income", "ward", "member"]


def frame_of(people):
    return pandas.DataFrame({name: people[name] for name in COLUMNS})


def logistic(**arguments):
    usual = {"epsilon": 3.0, "delta": 1e-6, "bounds": BOUNDS, "classes": ["no", "yes"]}
    return DPLogisticRegression(**{**usual, **arguments})


def numbers(rows=3000):
    """Rows of three numbers in [-1, 1], and two classes."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (rows, 3))
    return X, (X @ [2.0, -1.0, 0.0] + 0.3 * rng.logistic(size=rows) > 0).astype(int)


def of_numbers(**arguments):
    return DPLogisticRegression(**{"epsilon": 3.0, "delta": 1e-6, "bounds": (-1, 1), "classes": [0, 1], **arguments})


# The program and the package -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    lines = ["age,income,ward,member,buys"]
    for row in zip(*(people[name] for name in (*COLUMNS, "buys"))):
        age, income, ward, member, buys = row
        lines.append(f"{age},{float(income)!r},{ward},{int(member)},{buys}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    (folder / "schema.toml").write_text(SCHEMA)
    return folder


def model_of(text):
    return json.loads(text)["model"]


def seeded(estimator, frame, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        warnings.simplefilter("ignore", UselessModelWarning)
        return estimator.fit(frame, y)


@pytest.mark.parametrize("algorithm", _dp.algorithms())
def test_every_algorithm_trains_the_model_of_the_program(algorithm, program, files, people, tmp_path):
    common = ["--data", files / "people.csv", "--schema", files / "schema.toml", "--epsilon", 3, "--delta", 1e-6]
    out = tmp_path / "model.json"
    program("train", *common, "--algorithm", algorithm, "--seed", 5, "--anyway", "--out", out)
    estimator = DPLogisticRegression(3.0, 1e-6, schema=files / "schema.toml", algorithm=algorithm, random_state=5)
    seeded(estimator, frame_of(people), people["buys"])
    ours = json.loads(estimator.model_.text())
    theirs = json.loads(out.read_text())
    assert ours["model"] == theirs["model"]
    for name in ("event", "derivation", "adjacency", "assumptions", "private"):
        assert ours["certificate"][name] == theirs["certificate"][name]
    assert not estimator.certificate_["private"]
    assert estimator.epsilon_ == math.inf


@pytest.mark.parametrize(
    ("flags", "arguments"),
    [
        (["--float", "f32", "--algorithm", "bolt-on-convex"], {"dtype": "float32", "algorithm": "bolt-on-convex"}),
        (["--float", "f32"], {"dtype": "float32"}),
        (["--curves", "3"], {"curves": 3}),
        (["--curves", "none"], {"curves": "none"}),
        (["--curves", "2", "--coordinate", "log"], {"curves": 2, "coordinate": "log"}),
        (["--fourier", "20"], {"fourier": 20}),
        (["--fourier", "20:1.5", "--fourier-seed", "3"], {"fourier": {"features": 20, "bandwidth": 1.5, "seed": 3}}),
        (["--fourier", "20", "--fourier-if-better"], {"fourier": {"features": 20, "if_better": True}}),
        (["--scale", "unit"], {"scale": "unit"}),
        (["--threshold", "base-rate"], {"threshold": "base-rate"}),
        (["--adjacency", "replace-one"], {"adjacency": "replace-one"}),
        (["--noise", "rounded"], {"noise": "rounded"}),
        (
            ["--algorithm", "dp-sgd", "--batch-size", "100", "--passes", "3", "--clip", "0.5"],
            {"algorithm": "dp-sgd", "settings": {"batch_size": 100, "passes": 3, "clip": 0.5}},
        ),
        (
            ["--algorithm", "ss-admm", "--penalty", "l1:0.01"],
            {"algorithm": "ss-admm", "settings": {"penalty": "l1:0.01"}},
        ),
        (["--delta", "0"], {"delta": 0.0}),
    ],
)
def test_settings_have_the_meaning_of_the_flags(flags, arguments, program, files, people, tmp_path):
    common = ["--data", files / "people.csv", "--schema", files / "schema.toml", "--epsilon", 3]
    if "--delta" not in flags:
        common += ["--delta", 1e-6]
    out = tmp_path / "model.json"
    program("train", *common, *flags, "--seed", 5, "--anyway", "--out", out)
    estimator = DPLogisticRegression(
        **{"epsilon": 3.0, "delta": 1e-6, "schema": SCHEMA, "random_state": 5, "n_jobs": 2, **arguments}
    )
    seeded(estimator, frame_of(people), people["buys"])
    assert model_of(estimator.model_.text()) == model_of(out.read_text())


def test_units_and_choices_are_those_of_the_program(program, files, people, tmp_path):
    table = frame_of(people)
    table["patient"] = [f"p{i % 1500}" for i in range(len(table))]
    data = tmp_path / "visits.csv"
    table.assign(buys=people["buys"], member=table["member"].astype(int)).to_csv(data, index=False)
    common = ["--data", data, "--schema", files / "schema.toml", "--epsilon", 3, "--delta", 1e-6, "--seed", 7]
    out = tmp_path / "units.json"
    program("train", *common, "--unit", "patient", "--max-rows", 2, "--anyway", "--out", out)
    estimator = DPLogisticRegression(3.0, 1e-6, schema=SCHEMA, unit="patient", max_rows=2, random_state=7)
    with pytest.warns(CuratorWarning, match="1000 rows beyond the bound"):
        seeded(estimator, table, people["buys"])
    assert model_of(estimator.model_.text()) == model_of(out.read_text())
    for method in ("portions", "composition", "random-stopping"):
        out = tmp_path / f"{method}.json"
        program("tune", *common, "--lambda", "0.1,0.001", "--method", method, "--out", out)
        estimator = DPLogisticRegression(3.0, 1e-6, schema=SCHEMA, random_state=7)
        search = DPGridSearch(estimator, {"lambda": [0.1, 0.001]}, method=method)
        search = seeded(search, table[COLUMNS], people["buys"])
        assert model_of(search.best_estimator_.model_.text()) == model_of(out.read_text())
        derivation = search.best_estimator_.certificate_["derivation"]
        assert search.best_index_ == derivation["chosen"]
        assert search.best_index_ == 1
        assert search.best_params_ == {"lambda": derivation["each"][search.best_index_]["recipe"]["lambda"]}
        assert np.mean(search.predict(table[COLUMNS]) == people["buys"]) > 0.6


def test_several_classes_and_numbers_are_those_of_the_program(program, files, people, tmp_path):
    frame = frame_of(people)
    table = frame.assign(member=frame["member"].astype(int))
    level = np.where(people["score"] > 1, "high", np.where(people["score"] > -1, "mid", "low"))
    several = SCHEMA.replace('positive = "yes"\nnegative = "no"', 'classes = ["low", "mid", "high"]')
    number = SCHEMA.replace('positive = "yes"\nnegative = "no"', 'type = "numeric"\nmin = -4\nmax = 6')
    cases = [
        (several, level, [], DPLogisticRegression, {}),
        (several, level, ["--one-vs-all", "split"], DPLogisticRegression, {"one_vs_rest": "split"}),
        (several, level, ["--one-vs-all", "composed", "--loss", "huber-svm"], DPLinearSVC, {}),
        (number, people["score"], [], DPRidge, {}),
        (number, people["score"], ["--loss", "squared"], DPRidge, {"loss": "squared"}),
        (number, people["score"], ["--loss", "huber-regression"], DPRidge, {"loss": "huber-regression"}),
    ]
    for i, (schema, y, flags, kind, arguments) in enumerate(cases):
        data, out, toml = tmp_path / f"{i}.csv", tmp_path / f"{i}.json", tmp_path / f"{i}.toml"
        table.assign(buys=y).to_csv(data, index=False)
        toml.write_text(schema)
        common = ["--data", data, "--schema", toml, "--epsilon", 3, "--delta", 1e-6, "--seed", 5, "--anyway"]
        program("train", *common, *flags, "--out", out)
        estimator = kind(3.0, 1e-6, schema=schema, random_state=5, **arguments)
        seeded(estimator, frame, y)
        assert model_of(estimator.model_.text()) == model_of(out.read_text()), flags


def test_models_go_to_the_program_and_back(program, files, people, tmp_path):
    frame = frame_of(people)
    estimator = logistic(schema=SCHEMA, bounds=None, classes=None).fit(frame, people["buys"])
    saved = tmp_path / "model.json"
    estimator.save(saved)
    assert "holds" in program("verify", saved)
    scores = tmp_path / "scores.csv"
    program("predict", "--model", saved, "--data", files / "people.csv", "--out", scores)
    with open(scores, newline="") as file:
        theirs = list(csv.DictReader(file))
    assert [float(row["score"]) for row in theirs] == estimator.decision_function(frame).tolist()
    assert [float(row["probability"]) for row in theirs] == estimator.predict_proba(frame)[:, 1].tolist()
    assert [row["class"] for row in theirs] == estimator.predict(frame).tolist()
    loaded = dp.load(saved)
    assert isinstance(loaded, DPLogisticRegression)
    assert np.array_equal(loaded.predict(frame), estimator.predict(frame))
    assert loaded.epsilon_ == estimator.epsilon_ and loaded.verify() == estimator.verify()
    with pytest.raises(PrivacyError, match="fitted already"):
        loaded.fit(frame, people["buys"])
    with pytest.raises(FileExistsError):
        estimator.save(saved)
    assert [file.name for file in tmp_path.glob("*.part")] == []
    answer = dp.accounting.certificate(saved)
    assert answer.epsilon_lower <= answer.epsilon <= estimator.epsilon_ + 1e-12
    assert answer.delta == estimator.delta_
    # One edited digit is found.
    text = saved.read_text()
    (tmp_path / "edited.json").write_text(
        text.replace('"weights":[', '"weights":[1', 1).replace('"weights": [', '"weights": [1', 1)
    )
    with pytest.raises(VerificationError):
        dp.load(tmp_path / "edited.json")


# What is read ----------------------------------------------------------------------------------------------------------


def fitted_weights(X, y, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return of_numbers(random_state=1, **arguments).fit(X, y).weights_


def test_every_layout_of_an_array_gives_the_same_model():
    X, y = numbers()
    X = X.astype(np.float32).astype(np.float64)
    expected = fitted_weights(X, y)
    wide = np.zeros((2 * len(X), 6))
    wide[::2, ::2] = X
    for same in (np.asfortranarray(X), wide[::2, ::2], X.astype(np.float32), X.tolist(), X.astype(object)):
        assert np.array_equal(fitted_weights(same, y), expected)
    for labels in (y.tolist(), y.astype(float), y.astype(np.int8), pandas.Series(y)):
        assert np.array_equal(fitted_weights(X, labels), expected)
    booleans = fitted_weights(X, y.astype(bool), classes=[False, True])
    assert np.array_equal(booleans, expected)


def test_frames_of_any_library_give_the_same_model(people):
    frame = frame_of(people)
    y = people["buys"]

    def weights(table):
        return seeded(logistic(random_state=1), table, y).weights_

    expected = weights(frame)
    nullable = frame.astype({"age": "Int64", "income": "Float64", "ward": "string", "member": "boolean"})
    for same in (
        nullable,
        frame.astype({"ward": "category", "age": np.int16}),
        frame.astype({"ward": object, "age": float}),
        frame.set_index(np.arange(len(frame))[::-1]),
    ):
        assert np.array_equal(weights(same), expected)
    polars = pytest.importorskip("polars")
    of_polars = polars.DataFrame({name: frame[name].tolist() for name in COLUMNS})
    assert np.array_equal(weights(of_polars), expected)
    categorical = of_polars.with_columns(polars.col("ward").cast(polars.Categorical))
    assert np.array_equal(weights(categorical), expected)
    chunked = polars.concat([of_polars[:1000], of_polars[1000:]], rechunk=False)
    assert np.array_equal(weights(chunked), expected)


def test_missing_values_are_refused_or_neutral(people):
    frame = frame_of(people).astype({"age": float, "ward": object})
    frame.loc[3, "age"] = np.nan
    frame.loc[5, "ward"] = None
    with pytest.raises(DataError) as caught:
        logistic().fit(frame, people["buys"])
    assert caught.value.code == "csv.missing_value" and caught.value.field == "age" and "row 3" in str(caught.value)
    assert "missing='neutral'" in caught.value.help
    # A schema says it in words of its own.
    with pytest.raises(DataError, match="declare `on_missing`"):
        DPLogisticRegression(3.0, 1e-6, schema=SCHEMA).fit(frame, people["buys"])
    with pytest.warns(CuratorWarning, match="2 records were given no influence"):
        estimator = logistic(missing="neutral").fit(frame, people["buys"])
    assert np.isnan(estimator.decision_function(frame)[[3, 5]]).all()
    assert np.isfinite(estimator.decision_function(frame)[[2, 4]]).all()
    with pytest.raises(DpError, match="2 records have missing or undeclared cells, the first in row 3"):
        estimator.predict(frame)
    polars = pytest.importorskip("polars")
    nulls = polars.DataFrame(
        {
            "age": [None if math.isnan(age) else int(age) for age in frame["age"]],
            "income": frame["income"].tolist(),
            "ward": [ward if isinstance(ward, str) else None for ward in frame["ward"]],
            "member": frame["member"].tolist(),
        }
    )
    assert np.array_equal(estimator.decision_function(nulls), estimator.decision_function(frame), equal_nan=True)
    X, y = numbers()
    X[7, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        of_numbers().fit(X, y)
    with pytest.warns(CuratorWarning):
        of_numbers(missing="neutral").fit(X, y)
    # A range from the data is that of the values that are there.
    with pytest.warns(CuratorWarning):
        estimator = of_numbers(bounds="from-data", missing="neutral").fit(X + 5.0, y)
    ranges = [column["kind"] for column in json.loads(estimator.model_.text())["model"]["encoder"]["input"]["table"]["columns"]]
    assert [one["min"] for one in ranges] == np.nanmin(X + 5.0, axis=0).tolist()


def test_identifiers_that_no_double_holds_stay_apart():
    X, y = numbers(2000)
    patients = 2**60 + np.arange(len(X))
    for column in (patients, patients.astype(np.uint64), -patients):
        frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "patient": column})
        with warnings.catch_warnings():
            # None is left out: each patient has one row.
            warnings.simplefilter("error", CuratorWarning)
            of_numbers(unit="patient", max_rows=1).fit(frame, y)


def test_dates_are_read_by_a_schema():
    days = np.datetime64("2020-01-01") + np.arange(2000) % 700
    y = (days > np.datetime64("2020-12-01")).astype(int)
    schema = """
        [label]
        column = "late"
        positive = "1"
        negative = "0"
        [columns.day]
        type = "date"
        format = "%Y-%m-%d"
        min = 2020-01-01
        max = 2021-12-31
    """
    models = []
    polars = pytest.importorskip("polars")
    for column in (days.astype("datetime64[ns]"), days.astype("datetime64[s]"), days.tolist(), [str(day) for day in days]):
        frame = pandas.DataFrame({"day": column})
        models.append(seeded(DPLogisticRegression(3.0, 1e-6, schema=schema, random_state=1), frame, y).weights_)
    frame = polars.DataFrame({"day": days.tolist()})
    models.append(seeded(DPLogisticRegression(3.0, 1e-6, schema=schema, random_state=1), frame, y).weights_)
    # A column of a matrix has no name.
    of_matrix = schema.replace("columns.day", "columns.x0")
    for matrix in (days.reshape(-1, 1), days.astype("datetime64[h]").reshape(-1, 1)):
        models.append(seeded(DPLogisticRegression(3.0, 1e-6, schema=of_matrix, random_state=1), matrix, y).weights_)
    assert all(np.array_equal(model, models[0]) for model in models)
    zoned = pandas.DataFrame({"day": pandas.to_datetime(days).tz_localize("UTC")})
    with pytest.raises(DpError, match="time zone"):
        DPLogisticRegression(3.0, 1e-6, schema=schema).fit(zoned, y)


def test_classes_keep_their_type():
    X, y = numbers()
    for classes in ([0, 1], [-1, 1], ["a", "b"], [False, True], [10**12, 10**12 + 1]):
        labels = np.asarray(classes)[y]
        estimator = of_numbers(classes=classes).fit(X, labels)
        assert estimator.classes_.tolist() == classes
        predicted = estimator.predict(X)
        assert predicted.dtype == labels.dtype and np.mean(predicted == labels) > 0.75
    # The order in which classes are given does not matter.
    assert of_numbers(classes=[1, 0]).fit(X, y).classes_.tolist() == [0, 1]


def test_coefficients_are_in_the_units_of_the_columns(people):
    frame = frame_of(people)
    estimator = logistic(curves="none").fit(frame, people["buys"])
    assert estimator.coef_.shape == (1, 6) and estimator.intercept_.shape == (1,)
    one_hot = [(people["ward"] == ward).astype(float) for ward in BOUNDS["ward"]]
    X = np.column_stack([people["age"], people["income"], people["member"], *one_hot]).astype(float)
    order = estimator.get_feature_names_out().tolist()
    assert order == ["age", "income", "ward=north", "ward=south", "ward=west", "member", "<intercept>"]
    linear = X[:, [0, 1, 3, 4, 5, 2]] @ estimator.coef_[0] + estimator.intercept_[0]
    scores = estimator.decision_function(frame)
    assert np.array_equal(linear > 0, scores > 0)
    assert np.array_equal(np.where(linear > 0, "yes", "no"), estimator.predict(frame))
    for functions in ({"curves": 3}, {"curves": "none", "fourier": 5}):
        other = logistic(**functions).fit(frame, people["buys"])
        assert not hasattr(other, "coef_") and other.weights_.shape[1] > 7
        with pytest.raises(AttributeError, match="curves='none', without fourier"):
            getattr(other, "intercept_")  # noqa: B009


def test_a_pipeline_of_scikit_learn_predicts_the_same(people):
    frame, y = frame_of(people), people["buys"]
    level = np.where(people["score"] > 1, "high", np.where(people["score"] > -1, "mid", "low"))
    levels = ["low", "mid", "high"]
    for kind, classes, labels in (
        (DPLogisticRegression, ["no", "yes"], y),
        (DPLinearSVC, ["no", "yes"], y),
        (DPLogisticRegression, levels, level),
        (DPLinearSVC, levels, level),
    ):
        estimator = kind(3.0, 1e-6, bounds=BOUNDS, classes=classes, curves="none").fit(frame, labels)
        plain = pickle.loads(pickle.dumps(estimator.as_sklearn()))
        assert np.array_equal(plain.predict(frame), estimator.predict(frame))
        assert np.allclose(plain.decision_function(frame), estimator.decision_function(frame), rtol=0, atol=1e-12)
        if kind is DPLogisticRegression:
            assert np.allclose(plain.predict_proba(frame), estimator.predict_proba(frame), rtol=0, atol=1e-12)
        assert not any(type(step).__module__.startswith("dp") for _, step in plain.steps)
    with pytest.warns(CuratorWarning, match="clamped"):
        ridge = DPRidge(3.0, 1e-6, bounds=BOUNDS, y_bounds=(-1, 1), curves="none").fit(frame, people["score"])
    plain = pickle.loads(pickle.dumps(ridge.as_sklearn()))
    assert np.allclose(plain.predict(frame), ridge.predict(frame), rtol=0, atol=1e-12)
    assert set(np.sign(ridge.predict(frame))) >= {-1.0, 1.0}
    twice = SCHEMA + '[columns.young]\ncolumn = "age"\ntype = "numeric"\nmin = 18\nmax = 30\n'
    with pytest.warns(CuratorWarning, match="clamped"):
        twice = DPLogisticRegression(3.0, 1e-6, schema=twice, curves="none").fit(frame, y)
    assert twice.coef_.shape == (1, len(twice.get_feature_names_out()) - 1)
    with pytest.raises(DpError, match="`young` has no counterpart"):
        twice.as_sklearn()
    beyond = frame.assign(age=frame["age"] * 3 - 60, income=frame["income"] * 2)
    assert np.allclose(plain.predict(beyond), ridge.predict(beyond), rtol=0, atol=1e-12)
    X, labels = numbers()
    # Four in five are of one class, so that the base rate is far from a half.
    labels = (X[:, 0] > -0.6).astype(int)
    estimator = of_numbers(curves="none", threshold="base-rate").fit(X, labels)
    scores, predicted = estimator.decision_function(X), estimator.predict(X)
    assert np.array_equal(scores > 0, predicted == 1) and abs(estimator.model_.threshold) > 0.1
    plain = estimator.as_sklearn()
    assert np.array_equal(plain.predict(X), predicted)
    assert np.allclose(plain.decision_function(X) - estimator.model_.threshold, scores, rtol=0, atol=1e-12)
    assert np.allclose(plain.predict_proba(X), estimator.predict_proba(X), rtol=0, atol=1e-12)
    for functions in ({"curves": 2}, {"curves": "none", "fourier": 5}):
        with pytest.raises(DpError, match="no counterpart"):
            logistic(**functions).fit(frame, y).as_sklearn()


def test_a_pipeline_reads_categories_that_are_numbers_and_booleans():
    rng = np.random.default_rng(2)
    cells = {
        "ward": (rng.integers(1, 4, 3000), [1, 2, 3]),
        "dose": (rng.choice([0.5, 1.0, 2.5], 3000), [0.5, 1, 2.5]),
        "member": (rng.choice([True, False], 3000).astype(object), [False, True]),
        "name": (rng.choice(["a", "b"], 3000), ["a", "b"]),
    }
    frame = pandas.DataFrame({name: values for name, (values, _) in cells.items()})
    y = ((frame["ward"] == 2) | (frame["member"] & (frame["dose"] == 1.0))).astype(int)
    bounds = {name: categories for name, (_, categories) in cells.items()}
    estimator = DPLogisticRegression(3.0, 1e-6, bounds=bounds, classes=[0, 1], curves="none").fit(frame, y)
    plain = pickle.loads(pickle.dumps(estimator.as_sklearn()))
    assert set(estimator.predict(frame)) == {0, 1}
    for same in (frame, frame.convert_dtypes(), frame.astype({"ward": "category", "dose": object})):
        assert np.array_equal(plain.predict(same), estimator.predict(same))
    for strange in ({"ward": 4}, {"member": None}):
        with pytest.raises(ValueError, match="unknown categories"):
            plain.predict(frame.head(3).assign(**strange))
    X = frame[["ward", "dose"]].to_numpy()
    bounds = {"x0": [1, 2, 3], "x1": [0.5, 1, 2.5]}
    estimator = DPLogisticRegression(3.0, 1e-6, bounds=bounds, classes=[0, 1], curves="none").fit(X, y)
    assert np.array_equal(estimator.as_sklearn().predict(X), estimator.predict(X))


# What is refused -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": None}, "add epsilon=1.0"),
        ({"epsilon": float("nan")}, "epsilon = NaN must be finite"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": "1"}, "epsilon = '1' cannot be used"),
        ({"delta": 1.0}, "delta = 1.0 must lie in"),
        ({"delta": -0.1}, "delta"),
        ({"fourier": 0}, "Fourier features"),
        ({"fourier": {"features": 4, "bandwidth": -1.0}}, "bandwidth"),
        ({"fourier": {"bandwidth": 1.0}}, "features; bandwidth, seed"),
        ({"fourier": {"features": 4, "sed": 1}}, "features; bandwidth, seed"),
        ({"bounds": None}, "add bounds=(0, 100)"),
        ({"bounds": (1, -1)}, "a minimum that is at most the maximum"),
        ({"bounds": [(0, 1)] * 4}, "3 of them"),
        ({"bounds": "all"}, "'from-data', or ranges"),
        ({"bounds": ([-1, -1, -1], [1, 1, 1])}, "bounds is of shape (2, 3)"),
        ({"bounds": (0, float("inf"))}, "a finite number"),
        ({"bounds": {"x0": (0, 1)}}, "column `x1` has no bounds"),
        ({"bounds": {"x0": (0, 1), "x1": 3, "x2": (0, 1)}}, "a tuple (min, max), a list of categories"),
        ({"bounds": {"y9": (0, 1)}}, "which is no column"),
        ({"classes": None}, "add classes=[0, 1]"),
        ({"classes": "all"}, "a list of classes, or 'from-y'"),
        ({"classes": [1]}, "two classes or more"),
        ({"classes": [None, 1]}, "a list of classes of one type"),
        ({"classes": [[0], [1, 2]]}, "a list of classes of one type"),
        ({"classes": [0.0, float("nan")]}, "none of them missing"),
        ({"classes": ["0", "1"]}, "the classes are texts, and those of y are not"),
        ({"curves": np.array([1, 2])}, "'auto', 'none', or a number of cosines"),
        ({"curves": [1, 2]}, "'auto', 'none', or a number of cosines"),
        ({"classes": [0, 0]}, "classes that differ"),
        ({"classes": [0, 2]}, "a label in column `y` is of no declared class"),
        ({"algorithm": "dp-magic"}, "there is no algorithm"),
        ({"settings": {"batch_size": 3}}, "has no such setting"),
        ({"settings": {"batch-sized": 3}}, "there is no setting"),
        ({"algorithm": "dp-sgd", "settings": {"batch_size": "3"}}, "a whole number"),
        ({"algorithm": "dp-sgd", "settings": {"clip": -1.0}}, "clip"),
        ({"algorithm": "dp-sgd", "settings": {"sampling": "no"}}, "expected 'poisson'"),
        ({"adjacency": "bounded"}, "expected 'add-remove', 'replace-one'"),
        ({"random_state": -1}, "an int from 0"),
        ({"random_state": "a"}, "an int from 0"),
        ({"n_jobs": 0}, "a number of threads"),
        ({"missing": "drop"}, "'error' or 'neutral'"),
        ({"schema": SCHEMA}, "one of them"),
        ({"schema": 3, "bounds": None, "classes": None}, "the path of a schema"),
        ({"schema": "no = 1", "bounds": None, "classes": None}, "label"),
        ({"dtype": "float16"}, "expected 'float64', 'float32'"),
        ({"unit": "x0"}, "max_rows is missing"),
    ],
)
def test_what_is_refused_says_what_was_expected(arguments, message):
    X, y = numbers()
    with pytest.raises(DpError) as caught:
        of_numbers(**arguments).fit(X, y)
    assert message in str(caught.value)


def test_data_that_are_refused():
    X, y = numbers()
    scipy_sparse = pytest.importorskip("scipy.sparse")
    for data, labels, error, message in [
        (X[:, 0], y, ValueError, "Expected 2D array"),
        (X[:0], y[:0], ValueError, "0 sample"),
        (X[:, :0], y, ValueError, "0 feature"),
        (X, y[:-1], ValueError, "inconsistent numbers of samples"),
        (np.where(X.max() == X, np.inf, X), y, ValueError, "infinity"),
        (np.full_like(X, "a", dtype=object), y, ValueError, "could not convert"),
        (np.full((3000, 3), "a"), y, ValueError, "Convert|convert"),
        (X.astype(complex), y, ValueError, "Complex"),
        (scipy_sparse.csr_matrix(X), y, TypeError, "Sparse"),
        (X, None, ValueError, "requires y"),
        (X, X[:, 0], ValueError, "Unknown label type"),
        (X, np.where(y == 1, np.nan, 0.0), DpError, "NaN"),
        (X, np.column_stack([y, y]), ValueError, "1d array"),
    ]:
        with pytest.raises(error, match=message):
            of_numbers().fit(data, labels)
    with pytest.raises(TypeError, match="influence of a person"):
        of_numbers().fit(X, y, sample_weight=np.ones(len(X)))
    with pytest.raises(TypeError, match="unexpected keyword"):
        of_numbers().fit(X, y, weights=1)
    with pytest.raises(DpError, match="one class"):
        of_numbers(classes="from-y").fit(X, np.zeros(len(X)))
    with pytest.raises(NotFittedError):
        of_numbers().predict(X)


@pytest.mark.parametrize("dtype", ["object", "string", "category"])
@pytest.mark.parametrize("missing", [None, float("nan")])
def test_labels_that_are_missing_are_refused(dtype, missing):
    X, y = numbers()
    labels = pandas.Series(np.where(y, "a", "b"), dtype=object)
    labels[3] = missing
    estimator = of_numbers(classes=["a", "b"])
    with pytest.raises(DataError, match="missing values, first in row 3") as caught:
        estimator.fit(X, labels.astype(dtype))
    assert caught.value.code == "label.missing" and caught.value.field == "y"
    with pytest.raises(DataError, match="missing values, first in row 3"):
        DPRidge(3.0, bounds=(-1, 1), y_bounds=(0, 1)).fit(X, np.array([0.0, 1.0, 0.5, missing] * 750, dtype=object))
    # Nothing was spent.
    estimator.fit(X, labels.fillna("a"))


def test_classes_of_another_type_than_y_are_refused():
    X, y = numbers()
    for classes, labels in ((["0", "1"], y), ([0, 1], y.astype(str)), ([0, 1], y.astype(str).astype(object))):
        estimator = of_numbers(classes=classes)
        with pytest.raises(DpError, match="expected classes of the type of y") as caught:
            estimator.fit(X, labels)
        assert caught.value.field == "classes"
    assert set(estimator.set_params(classes=["0", "1"]).fit(X, labels).predict(X)) == {"0", "1"}


def test_the_width_of_a_hinge_is_a_number_of_any_type():
    X, y = numbers()
    for width in (1, 0.2, np.float64(0.2), np.float32(0.5), np.int64(1), Fraction(1, 4)):
        model = DPLinearSVC(3.0, 1e-6, bounds=(-1, 1), classes=[0, 1], width=width).fit(X, y)
        assert model.model_.loss == f"huber-svm:{float(width)!r}".removesuffix(".0")
    for width in (0, -1, "a", True, math.nan, np.zeros(2)):
        with pytest.raises(DpError, match="width is") as caught:
            DPLinearSVC(3.0, 1e-6, bounds=(-1, 1), classes=[0, 1], width=width).fit(X, y)
        assert caught.value.field == "width"


def test_frames_that_are_refused(people):
    frame, y = frame_of(people), people["buys"]
    for table, error, message in [
        (frame.assign(age="old"), DataError, "age"),
        (frame.assign(ward="east"), DataError, "ward"),
        (frame.assign(age=[[1]] * len(frame)), DpError, "row 0 holds a list"),
        (frame.assign(income=1j), DataError, "complex128"),
        (frame.assign(income=np.inf), DataError, "income"),
        (frame.drop(columns="ward"), DpError, "is no column"),
        (frame.assign(other=1), DpError, "column `other` has no bounds"),
        (frame.iloc[:0], ValueError, "0 sample"),
        (pandas.concat([frame, frame[["age"]]], axis=1), DataError, "two columns are named"),
    ]:
        with pytest.raises(error, match=message):
            logistic().fit(table, y)
    estimator = logistic(bounds={**BOUNDS, "other": None}).fit(frame.assign(other=1), y)
    assert "other" not in estimator.get_feature_names_out()
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(frame.assign(another=1))
    with pytest.raises(DataError, match="ward"):
        estimator.predict(frame.assign(other=1, ward="east"))


def test_what_comes_from_the_data_stands_in_the_certificate(people):
    estimator = logistic(bounds="from-data", classes="from-y").fit(frame_of(people), people["buys"])
    assumed = [one for one in estimator.certificate_["assumptions"] if "assumed" in json.dumps(one)]
    assert "age" in json.dumps(assumed) and "ward" in json.dumps(assumed) and '"y"' in json.dumps(assumed)
    stated = logistic().fit(frame_of(people), people["buys"])
    assert "age" not in json.dumps(stated.certificate_["assumptions"])


def test_a_draft_is_refused_until_it_is_reviewed_or_declared_public(people):
    draft = SCHEMA.replace("max = 90", "max = 90\nreviewed = false")
    with pytest.raises(DataError, match="declare the columns public by name with assume_public") as caught:
        DPLogisticRegression(3.0, schema=draft).fit(frame_of(people), people["buys"])
    assert caught.value.code == "schema.unreviewed"
    estimator = DPLogisticRegression(3.0, schema=draft, assume_public=["age"]).fit(frame_of(people), people["buys"])
    assert "age" in json.dumps(estimator.certificate_["assumptions"])
    with pytest.raises(DpError, match="a list of columns"):
        DPLogisticRegression(3.0, schema=draft, assume_public="age").fit(frame_of(people), people["buys"])


def test_rows_of_one_person_are_warned_of(people):
    table = frame_of(people).assign(patient_id=np.arange(len(people["age"])) // 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DPLogisticRegression(3.0, schema=SCHEMA).fit(table, people["buys"])
    messages = [str(warning.message) for warning in caught if warning.category is CuratorWarning]
    assert any("up to 2 rows share a `patient_id`" in message and "max_rows" in message for message in messages)
    assert "--" not in "".join(messages)


def test_categories_that_were_not_declared_count_as_asked(people):
    frame = frame_of(people)
    estimator = logistic().fit(frame, people["buys"])
    new = frame.iloc[:4].assign(ward=["east", "north", "south", "west"])
    with pytest.raises(DataError, match="say on_unknown='other'"):
        estimator.predict(new)
    with pytest.raises(DataError, match="add the category to those in bounds"):
        logistic().fit(frame.assign(ward="east"), people["buys"])
    assert np.isfinite(estimator.predict_proba(new, on_unknown="other")).all()
    assert np.isnan(estimator.decision_function(new, on_unknown="skip")).tolist() == [True, False, False, False]
    with pytest.raises(DpError, match="expected 'other', 'error' or 'skip'"):
        estimator.predict(new, on_unknown="drop")


def test_few_records_are_warned_of():
    X, y = numbers(30)
    with pytest.warns(UselessModelWarning, match="by public numbers alone"):
        of_numbers(epsilon=0.1).fit(X, y)


# Fits are counted ------------------------------------------------------------------------------------------------------


def test_a_second_fit_of_a_lineage_is_refused():
    X, y = numbers()
    first = of_numbers()
    copy = clone(first)
    first.fit(X, y)
    for again in (first, copy, clone(copy), clone(first), pickle.loads(pickle.dumps(first))):
        with pytest.raises(PrivacyError, match="DPGridSearch") as caught:
            again.fit(X, y)
        assert caught.value.code == "privacy.refit"
    of_numbers().fit(X, y)
    allowed = clone(first).set_params(allow_refit=True)
    assert allowed.fit(X, y) is allowed
    # A fit that is refused does not count.
    late = of_numbers()
    with pytest.raises(ValueError):
        late.fit(X, y[:-1])
    late.fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:Scoring failed:UserWarning")
def test_selection_by_the_data_is_refused():
    X, y = numbers()
    with pytest.raises((PrivacyError, ValueError)):
        cross_val_score(of_numbers(), X, y, error_score="raise")
    with pytest.raises((PrivacyError, ValueError)):
        GridSearchCV(of_numbers(), {"epsilon": [1.0, 2.0]}, error_score="raise").fit(X, y)
    assert len(cross_val_score(of_numbers(allow_refit=True), X, y)) == 5


def test_clones_in_other_processes_are_refused(tmp_path):
    X, y = numbers(300)
    state = tmp_path / "clone.pickle"
    state.write_bytes(pickle.dumps((clone(of_numbers()), X, y)))
    code = (
        "import pickle, sys\nfrom dp.errors import PrivacyError\n"
        "estimator, X, y = pickle.load(open(sys.argv[1], 'rb'))\n"
        "try:\n    estimator.fit(X, y)\nexcept PrivacyError as error:\n    print(error.code)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, state], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "privacy.refit"
    state.write_bytes(pickle.dumps((of_numbers(), X, y)))
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code, state], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_clones_in_forks_are_refused():
    X, y = numbers(300)
    original = of_numbers()
    copy = clone(original)
    moved = pickle.dumps(clone(of_numbers()))
    for made in (lambda: pickle.loads(moved), lambda: pickle.loads(pickle.dumps(copy)), lambda: copy, lambda: original):
        child = os.fork()
        if child == 0:
            try:
                made().fit(X, y)
                os._exit(1)
            except PrivacyError:
                os._exit(0)
            except BaseException:
                os._exit(2)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
    original.fit(X, y)


def test_fits_of_pickles_outlive_their_estimators():
    X, y = numbers(300)
    estimator = of_numbers()
    kept, of_clone = pickle.dumps(estimator), pickle.dumps(clone(estimator))
    del estimator
    pickle.loads(kept).fit(X, y)
    for again in (kept, of_clone):
        gc.collect()
        with pytest.raises(PrivacyError):
            pickle.loads(again).fit(X, y)


def test_a_clone_that_returns_from_another_process_takes_no_fit_away(tmp_path):
    X, y = numbers(300)
    original = of_numbers()
    path = tmp_path / "clone.pickle"
    path.write_bytes(pickle.dumps(clone(original)))
    code = "import pickle, sys\nkept = pickle.load(open(sys.argv[1], 'rb'))\npickle.dump(kept, open(sys.argv[1], 'wb'))\n"
    subprocess.run([sys.executable, "-c", code, path], check=True)
    back = pickle.loads(path.read_bytes())
    original.fit(X, y)
    with pytest.raises(PrivacyError):
        back.fit(X, y)


def test_a_newer_pickle_counts_beside_an_older_one(tmp_path):
    # Another process fits between the two.
    X, y = numbers(300)
    paths = [tmp_path / "older.pickle", tmp_path / "newer.pickle"]
    code = (
        "import pickle, sys\n"
        "estimator, X, y = pickle.load(open(sys.argv[1], 'rb'))\n"
        "estimator.fit(X, y)\n"
        "pickle.dump(estimator, open(sys.argv[2], 'wb'))\n"
    )
    original = of_numbers()
    paths[0].write_bytes(pickle.dumps((original, X, y)))
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, *paths], check=True)
    older = pickle.loads(paths[0].read_bytes())[0]
    newer = pickle.loads(paths[1].read_bytes())
    for again in (newer, older, original):
        with pytest.raises(PrivacyError):
            again.fit(X, y)


def test_a_seed_is_reproducible_and_not_private():
    X, y = numbers()
    with pytest.warns(NotPrivateWarning, match="certificate claims nothing"):
        first = of_numbers(random_state=3).fit(X, y)
    with pytest.warns(NotPrivateWarning):
        second = of_numbers(random_state=np.int64(3)).fit(X, y)
    assert np.array_equal(first.weights_, second.weights_)
    assert not first.certificate_["private"] and first.epsilon_ == math.inf
    with pytest.raises(VerificationError):
        first.verify()
    with pytest.warns(NotPrivateWarning):
        of_numbers(random_state=np.random.RandomState(1)).fit(X, y)
    private = [of_numbers().fit(X, y) for _ in range(2)]
    assert not np.array_equal(private[0].weights_, private[1].weights_)
    assert private[0].certificate_["private"] and private[0].verify() == (private[0].epsilon_, private[0].delta_)


# What is kept, and what may happen meanwhile ---------------------------------------------------------------------------


class Watched(np.ndarray):
    """An array that can be watched."""


def test_a_fitted_estimator_keeps_no_record():
    X, y = numbers(20_000)
    watched = X.view(Watched)
    alive = weakref.ref(watched)
    estimator = of_numbers().fit(watched, y)
    kept = pickle.dumps(estimator)
    assert len(kept) < 10_000 < X.nbytes
    del watched, X
    gc.collect()
    assert alive() is None
    assert np.array_equal(pickle.loads(kept).weights_, estimator.weights_)


def test_texts_of_a_model_do_not_tell_what_it_is(tmp_path):
    odd = ['"dp.ranker/1"', "a\nb", "\u2028\x7f", "'''", "]"]
    frame = pandas.DataFrame({"odd": np.resize(odd, 3000)})
    y = (frame["odd"] == odd[0]).astype(int)
    estimator = DPLogisticRegression(3.0, bounds={"odd": odd}, classes=[0, 1]).fit(frame, y)
    estimator.save(tmp_path / "model.json")
    loaded = dp.load(tmp_path / "model.json")
    assert isinstance(loaded, DPLogisticRegression)
    assert np.array_equal(loaded.decision_function(frame), estimator.decision_function(frame))


def test_pickles_of_another_version_are_refused():
    X, y = numbers()
    state = of_numbers().fit(X, y).__getstate__()
    model = state["model_"]
    text = model.text().replace("dp.model/1", "dp.model/9")
    with pytest.raises(VerificationError):
        _dp.Model.parse(text.encode())


def test_results_do_not_depend_on_threads():
    X, y = numbers(20_000)
    models = [fitted_weights(X, y, n_jobs=jobs) for jobs in (1, 2, 3, 8, -1, None)]
    assert all(np.array_equal(model, models[0]) for model in models)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarms here")
def test_an_interrupt_ends_a_fit_and_releases_nothing():
    X, y = numbers(200_000)

    def interrupt(*_):
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    estimator = of_numbers(algorithm="bolt-on-convex", settings={"passes": 100_000}, n_jobs=1)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert not hasattr(estimator, "model_")
    # Nothing was spent.
    estimator.set_params(settings=None).fit(X[:1000], y[:1000])


def test_an_array_may_change_during_a_fit():
    X, y = numbers(100_000)
    stop = threading.Event()

    def write():
        while not stop.is_set():
            X[:] = 1e300
            X[:] = 0.5

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CuratorWarning)
            estimator = of_numbers(algorithm="bolt-on-convex").fit(X, y)
    finally:
        stop.set()
        writer.join()
    # Every row was bounded as it was read.
    assert np.isfinite(estimator.weights_).all()
    assert estimator.verify()[0] <= 3.0


@pytest.mark.parametrize("allowed", [True, False])
def test_two_threads_on_one_estimator_leave_one_model(allowed):
    X, y = numbers(20_000)
    estimator = of_numbers(allow_refit=allowed)
    outcomes = []

    def fit():
        try:
            outcomes.append(estimator.fit(X, y))
        except PrivacyError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=fit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert estimator.verify()[0] <= 3.0
    # Without leave, one of them fits.
    assert sorted(map(str, outcomes)).count("privacy.refit") == (0 if allowed else 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_during_a_fit_can_fit_too():
    X, y = numbers(50_000)
    worker = threading.Thread(target=lambda: of_numbers(algorithm="bolt-on-convex", settings={"passes": 200}).fit(X, y))
    worker.start()
    child = os.fork()
    if child == 0:
        try:
            estimator = of_numbers().fit(X[:1000], y[:1000])
            os._exit(0 if estimator.verify()[0] <= 3.0 else 1)
        except BaseException:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    worker.join()
    assert os.waitstatus_to_exitcode(status) == 0


def test_searches_refuse_what_they_cannot_choose():
    X, y = numbers()
    for arguments, message in [
        ((of_numbers(), {"clip": [1, 2]}), "one of"),
        ((of_numbers(), {"lambda": [0.1]}), "2 to"),
        ((of_numbers(), {"lambda": 0.1}), "lists of values"),
        ((DPRidge(1.0), {"lambda": [0.1, 1.0]}), "mistakes are counted"),
    ]:
        with pytest.raises(DpError, match=message):
            DPGridSearch(*arguments).fit(X, y)
    with pytest.raises(DpError, match=r"trials = 0\.0 is out of range"):
        DPGridSearch(of_numbers(), {"lambda": [0.1, 1.0]}, method="random-stopping", trials=0).fit(X, y)
    with pytest.raises(DpError, match="delta above 0"):
        DPGridSearch(of_numbers(delta=0.0), {"lambda": [0.1, 1.0]}, method="random-stopping", trial_law="poisson").fit(X, y)


@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
def test_a_boolean_column_needs_no_bounds_and_can_be_left_out(backend, people):
    if backend == "pyarrow":
        pytest.importorskip("pyarrow")
    X = frame_of(people)[["age", "member"]]
    X = X if backend == "numpy" else X.convert_dtypes(dtype_backend=backend)
    arguments = {"curves": "none", "allow_refit": True}
    used = logistic(bounds={"age": (18, 90)}, **arguments).fit(X, people["buys"])
    assert list(used.get_feature_names_out()) == ["age", "member", "<intercept>"]
    without = logistic(bounds={"age": (18, 90), "member": None}, **arguments).fit(X, people["buys"])
    assert list(without.get_feature_names_out()) == ["age", "<intercept>"]
    # In the order of the columns of X, 0 for one without influence.
    assert without.coef_.shape == used.coef_.shape == (1, 2)
    assert without.coef_[0, 1] == 0 and used.coef_[0, 1] != 0
    with pytest.raises(DpError, match="which holds Booleans"):
        logistic(bounds={"age": (18, 90), "member": "hello"}).fit(X, people["buys"])


def test_a_refused_fit_leaves_the_model_as_it_was(people):
    X = frame_of(people)
    model = logistic().fit(X, people["buys"])
    before = model.predict(X)
    for other in (X[COLUMNS[::-1]], X[["age"]], X[["age", "income"]].to_numpy()):
        with pytest.raises(DpError):  # the second fit, or bounds of columns that are not there
            model.fit(other, people["buys"])
        assert list(model.feature_names_in_) == COLUMNS and model.n_features_in_ == len(COLUMNS)
        assert (model.predict(X) == before).all()
    model.allow_refit = True
    with pytest.raises(DpError):
        model.fit(X[["age"]], people["buys"])
    assert (model.predict(X) == before).all()


def test_classes_of_a_file_can_be_given_their_type(tmp_path):
    X, y = numbers()
    model = of_numbers().fit(X, y)
    model.save(tmp_path / "model.json")
    again = dp.load(tmp_path / "model.json", classes=[1, 0])
    assert (again.classes_ == model.classes_).all() and again.score(X, y) == model.score(X, y)
    assert list(dp.load(tmp_path / "model.json").classes_) == ["0", "1"]
    for classes in ([0, 2], [0], [0, 1, 1]):
        with pytest.raises(DpError, match="classes"):
            dp.load(tmp_path / "model.json", classes=classes)


def test_a_limit_on_rows_needs_a_unit(people):
    with pytest.raises(DpError, match="max_rows is given without a unit"):
        logistic(max_rows=5).fit(frame_of(people), people["buys"])


def test_a_search_without_a_training_has_no_model():
    X, y = numbers(500)
    for seed in range(1, 40):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search = DPGridSearch(
                of_numbers(random_state=seed),
                {"lambda": [1e-3, 1e-1]},
                method="random-stopping",
                trials=0.2,
                trial_law="poisson",
            ).fit(X, y)
        assert (search.best_estimator_ is None) == (search.best_params_ is None)
        if search.best_estimator_ is None:
            break
    with pytest.raises(DpError, match="no model was trained"):
        search.predict(X)


def test_a_loaded_model_takes_further_columns(people, tmp_path):
    X = frame_of(people)
    model = logistic(bounds={**BOUNDS, "ward": None}).fit(X, people["buys"])
    model.save(tmp_path / "model.json")
    again = dp.load(tmp_path / "model.json")
    assert list(again.feature_names_in_) == ["age", "income", "member"]
    for frame in (X, X[["member", "age", "income"]], X.assign(other=1)):
        assert (again.predict(frame) == model.predict(X)).all()
    polars = pytest.importorskip("polars")
    assert (again.predict(polars.DataFrame({name: X[name].to_numpy() for name in COLUMNS})) == model.predict(X)).all()
    with pytest.raises(ValueError, match="income"):
        again.predict(X[["age", "member"]])
    # A further fit takes all columns, and then so does the model.
    again.allow_refit, again.schema = True, None
    again.bounds, again.classes, again.delta = BOUNDS, ["no", "yes"], 1e-6
    assert list(again.fit(X, people["buys"]).feature_names_in_) == COLUMNS
    with pytest.raises(ValueError):
        again.predict(X.assign(other=1))


@pytest.mark.parametrize("argument", ["curves", "fourier"])
def test_booleans_are_no_numbers_of_functions(argument, people):
    with pytest.raises(DpError, match="a number of functions"):
        logistic(**{argument: True}).fit(frame_of(people), people["buys"])
