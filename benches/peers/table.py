"""Held-out AUC, accuracy and log loss of dp and its peers on the same folds of two-class tables; see `benches/ACCURACY.md`.

    cargo build --release -p benches
    pip install interpret 'diffprivlib>=0.6.6' 'scikit-learn<1.7' opacus
    python benches/peers/table.py --data DATA --curves target/release/curves --out OUT --table adult bank
        [--method dp ebm ...] [--epsilon 0.1 0.4 0.8 1.6 4] [--runs 10] [--screen 2] [--setting default ...]

DATA is the folder of the files in `TABLES`. Run s has seed s and tests fold s mod 5 of five, where record i is in fold i mod 5,
as in `--bin curves`. Ranges and categories come from the table and count as public. Each figure goes to OUT/TABLE.json at once
and is not computed again; with an empty `--method` nothing is computed. Prints the tables as Markdown, and comparisons.

A method with settings gets `--screen` runs of each, and the rest of `--runs` for those that are then best in one of the three
figures; `--setting` names the settings to try. Each figure shown is the best over the settings, chosen with hindsight and for
this figure alone, which no private choice is. dp is its `auto`, without settings. Rows are add-remove if not named: a replaced
record is one removed and one added, so that half of epsilon with add-remove and delta 0 is replace-one.
"""

import argparse
import contextlib
import csv
import json
import pathlib
import subprocess
import warnings

import folds
import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

# Files, label, positive class, columns to drop.
TABLES = {
    "adult": (["adult.csv.gz"], "income", ">50K", []),
    "a9a": (["a9a_train.libsvm.gz", "a9a_test.libsvm.gz"], "label", "1", []),
    "bank": (["bank.csv.gz"], "y", "yes", []),
    "covertype": (["covertype_93k.csv.gz"], "cover_type", "2", []),
    "higgs": (["higgs_10k_train.csv.gz"], "class_label", "1", []),
    "kddcup99": (["kddcup99_10pct.csv.gz"], "label", "normal", []),
    "occupancy": (["occupancy_train.csv.gz"], "occupancy", "1", ["date"]),
    "banknote": (["banknote.csv.gz"], "class", "1", []),
}
FIGURES = ["accuracy", "auc", "log_loss"]
EPSILONS = [0.1, 0.4, 0.8, 1.6, 4.0]
DELTA = 1e-8
REPLACE_ONE = "auto, replace-one, delta 0"
# Name shown, method, setting (None: the best), delta.
ROWS = [
    ("linear terms", "dp", "linear:0", DELTA),
    ("auto", "dp", "auto", DELTA),
    ("DP-EBM, default", "ebm", "default", DELTA),
    ("DP-EBM, best", "ebm", None, DELTA),
    ("Opacus, best", "opacus", None, DELTA),
    ("linear terms, delta 0", "dp", "linear:0", 0),
    ("auto, delta 0", "dp", "auto", 0),
    (REPLACE_ONE, "dp", "auto", 0),
    ("diffprivlib, best, replace-one, delta 0", "diffprivlib", None, 0),
]
REFERENCES = {"majority": "majority/-/", "logistic regression": "sklearn/-/logistic", "boosted trees": "sklearn/-/boosted"}


class Data:
    """A table, its label, and the results so far."""

    def __init__(self, name, options):
        self.name, self.results = name, options.out / f"{name}.json"
        files, self.label, self.positive, self.drop = TABLES[name]
        self.path = str(options.data / files[0])
        if "libsvm" in files[0]:
            self.path = str(options.out / f"{name}.csv")
            parts = [load_svmlight_file(str(options.data / file), n_features=123) for file in files]
            table = pd.DataFrame(np.vstack([part[0].toarray() for part in parts]).astype(int)).add_prefix("x")
            table.assign(label=np.concatenate([part[1] for part in parts]).astype(int)).to_csv(self.path, index=False)
        table = folds.read(self.path)
        self.target = (table[self.label].astype(str) == self.positive).to_numpy()
        table = table.drop(columns=[self.label, *self.drop])
        self.bounds = folds.bounds(table)
        self.table = table[list(self.bounds)]
        self.found = json.loads(self.results.read_text()) if self.results.exists() else {}

    def runs(self, key):
        return self.found.setdefault("/".join(map(str, key)), [])

    def save(self):
        self.results.write_text(json.dumps(self.found, indent=0))


def majority(data, _):
    def run(fold, _):
        test = np.arange(len(data.target)) % 5 == fold
        return folds.figures(data.target[test], np.full(test.sum(), data.target[~test].mean()))

    yield "rate", run


def sklearn(data, _):
    import trees

    for name, setting, model in trees.models(data.table):
        yield f"{name}, {setting}", lambda fold, _, model=model: trees.run(model, data.table, data.target, fold)


def ebm(data, epsilon):
    import ebm

    kinds, ranges = folds.columns(data.table)
    for setting in folds.EBM_SETTINGS:
        yield (
            setting,
            lambda fold, seed, setting=setting: ebm.run(
                data.table, kinds, ranges, data.target, fold, epsilon, DELTA, setting, seed
            ),
        )


def diffprivlib(data, epsilon):
    import diffprivlib_logistic

    rows, fold_of = folds.scaled(data.table, data.bounds), np.arange(len(data.target)) % 5

    def run(fold, seed, regularisation):
        test = fold_of == fold
        model = diffprivlib_logistic.fit(rows[~test], data.target[~test], epsilon, regularisation, seed, intercept=True)
        return folds.figures(data.target[test], model.predict_proba(rows[test])[:, 1])

    for regularisation in folds.REGULARISATIONS:
        yield str(regularisation), lambda fold, seed, r=regularisation: run(fold, seed, r)


def opacus(data, epsilon):
    import opacus_logistic
    import torch

    torch.set_num_threads(1)
    rows = folds.scaled(data.table, data.bounds)
    rows = torch.tensor(np.column_stack([np.ones(len(rows)), rows]), dtype=torch.float32)
    labels, fold_of = torch.tensor(data.target, dtype=torch.float32), np.arange(len(data.target)) % 5

    def noise(n, setting):
        """By the accountant that needs less."""
        found = []
        for accountant in ("rdp", "prv"):
            with contextlib.suppress(ValueError, RuntimeError):
                found.append(opacus_logistic.noise_multiplier(n, setting, epsilon, DELTA, accountant))
        return min(found)

    def run(fold, seed, setting):
        test = fold_of == fold
        model = opacus_logistic.fit(rows[~test], labels[~test], noise(int((~test).sum()), setting), setting, seed)
        with torch.no_grad():
            return folds.figures(data.target[test], torch.sigmoid(model(rows[test])[:, 0].double()).numpy())

    for setting in opacus_logistic.SETTINGS:
        yield "-".join(map(str, setting)), lambda fold, seed, setting=setting: run(fold, seed, setting)


PEERS = {"majority": majority, "sklearn": sklearn, "ebm": ebm, "diffprivlib": diffprivlib, "opacus": opacus}


def best(candidates, i):
    """Returns the name and the runs that are best in figure `i`, by the mean."""
    sign = -1 if FIGURES[i] == "log_loss" else 1
    return max(candidates.items(), key=lambda item: sign * np.mean(item[1], axis=0)[i])


def compute(data, method, epsilon, options):
    """Runs what is missing of a method."""
    tried = {setting: run for setting, run in PEERS[method](data, epsilon) if not options.setting or setting in options.setting}

    def runs_of(setting):
        return data.runs((method, epsilon, setting))

    def more(setting, upto):
        while len(runs_of(setting)) < upto:
            run = len(runs_of(setting))
            try:
                runs_of(setting).append([float(figure) for figure in tried[setting](run % 5, run)])
            except ValueError as refusal:
                print(f"{data.name}, {method}, epsilon {epsilon}, {setting}: {refusal}", flush=True)
                return
            data.save()

    upto = min(options.runs, 5) if method in ("majority", "sklearn") else options.runs
    for setting in tried:
        more(setting, upto if method in ("majority", "sklearn") or setting == "default" else min(options.screen, upto))
    screened = {setting: runs_of(setting)[: options.screen] for setting in tried if runs_of(setting)}
    for setting in {best(screened, i)[0] for i in range(3)} if screened else ():
        more(setting, upto)


def compute_dp(data, options):
    command = [options.curves, "--data", data.path, data.label, data.positive]
    command += [flag for column in data.drop for flag in ("--drop", column)] + ["--maps", "auto,linear:0"]
    command += ["--runs", str(options.runs)]
    for epsilon in sorted({*options.epsilon, *(epsilon / 2 for epsilon in options.epsilon)}):
        if data.runs(("dp", epsilon, "auto", 0)):
            continue
        deltas = f"{DELTA},0" if epsilon in options.epsilon else "0"
        out = subprocess.run(
            [*command, "--epsilons", str(epsilon), "--deltas", deltas], check=True, capture_output=True, text=True
        ).stdout
        for row in csv.reader(out.splitlines()[1:]):
            means, errors = [[float(row[i]) for i in (8 + by, 10 + by, 12 + by)] for by in (0, 1)]
            data.runs(("dp", epsilon, row[6], 0 if float(row[5]) == 0 else DELTA)).extend([means, errors, [options.runs]])
        data.save()


def summary(data, method, epsilon, setting, delta):
    """Returns mean, standard error, runs and setting of each figure, or nothing."""
    if method == "dp":
        found = data.runs((method, epsilon, setting, delta))
        return [(found[0][i], found[1][i], found[2][0], setting) for i in range(3)] if found else []
    return of_runs(data, f"{method}/{epsilon}/{setting or ''}")


def of_runs(data, prefix):
    found = {key.split("/", 2)[2]: np.array(runs) for key, runs in data.found.items() if key.startswith(prefix) and runs}
    most = max(map(len, found.values()), default=0)
    chosen = [best({name: runs for name, runs in found.items() if len(runs) == most}, i) for i in range(3) if found]
    spread = [np.std(runs[:, i], ddof=1) / most**0.5 if most > 1 else 0.0 for i, (_, runs) in enumerate(chosen)]
    return [(np.mean(runs[:, i]), spread[i], most, name) for i, (name, runs) in enumerate(chosen)]


def gain(figure, other, i):
    """Returns by how much the first is better, as figure `i`, and the standard error of that, as if folds were independent."""
    sign = -1 if FIGURES[i] == "log_loss" else 1
    return sign * (figure[0] - other[0]), (figure[1] ** 2 + other[1] ** 2) ** 0.5


def cell(found, ours=None):
    """Shows AUC / accuracy / log loss; a star is better than `auto` by more than two standard errors."""
    shown = []
    for i in (1, 0, 2) if found else ():
        by, error = gain(found[i], ours[i], i) if ours else (0.0, 0.0)
        text = f"{found[i][0]:.3f}" if found[i][0] < 10 else f"{found[i][0]:.0f}"
        shown.append(text.removeprefix("0") + ("*" if by > 2 * error else ""))
    return " / ".join(shown) or "-"


def show(data, options):
    n = len(data.target)
    print(f"\n### {data.name}: {n} records, four fifths for training, {data.table.shape[1]} columns\n")
    without = {name: of_runs(data, prefix) for name, prefix in REFERENCES.items()}
    print("Without privacy: " + ", ".join(f"{name} {cell(found)}" for name, found in without.items()) + ".\n")
    print("| epsilon | " + " | ".join(f"{epsilon:g}" for epsilon in options.epsilon) + " |")
    print("|---" * (1 + len(options.epsilon)) + "|")
    by_row = {
        name: [
            summary(data, method, epsilon / 2 if name == REPLACE_ONE else epsilon, setting, delta)
            for epsilon in options.epsilon
        ]
        for name, method, setting, delta in ROWS
    }
    for name, method, _, delta in ROWS:
        ours = by_row["auto" if delta else REPLACE_ONE if method == "diffprivlib" else "auto, delta 0"]
        cells = [cell(found, auto) for found, auto in zip(by_row[name], ours)]
        print(f"| {name} | {' | '.join(cells)} |")
    print()
    for name, found in by_row.items():
        runs = sorted({figure[2] for cell in found for figure in cell})
        errors = [[cell[i][1] for cell in found if cell] for i in (1, 0, 2)]
        chosen = " ".join(sorted({figure[3] for cell in found for figure in cell}))
        ranges = " / ".join(f"{min(error):.4f}-{max(error):.4f}" for error in errors if error)
        print(f"- {name}: runs {runs}, standard errors {ranges}, best: {chosen}")
    for name in ("auto", "auto, delta 0") if without["boosted trees"] else ():
        for epsilon, found in zip(options.epsilon, by_row[name]):
            gains = [gain(found[i], without["logistic regression"][i], i) for i in (1, 0, 2) if found]
            ways = [gain(without["boosted trees"][i], without["logistic regression"][i], i)[0] for i in (1, 0, 2)]
            over = " / ".join(f"{by:+.4f} ({error:.4f})" for by, error in gains)
            shares = " / ".join(f"{by / way:+.2f}" for (by, _), way in zip(gains, ways))
            print(f"- {name}, {epsilon:g}: {over} over logistic regression, {shares} of the way to boosted trees")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--curves", default="target/release/curves")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--table", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--method", nargs="*", choices=["dp", *PEERS], default=["dp", *PEERS])
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--setting", nargs="+", default=[])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--screen", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.table:
        data = Data(name, options)
        for method in options.method:
            if method == "dp":
                compute_dp(data, options)
                continue
            for epsilon in ["-"] if method in ("majority", "sklearn") else options.epsilon:
                compute(data, method, epsilon, options)
        show(data, options)


if __name__ == "__main__":
    main()
