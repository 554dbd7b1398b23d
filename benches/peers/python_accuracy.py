#!/usr/bin/env python3
"""Held-out accuracy of `DPLogisticRegression` beside IBM's diffprivlib, on the folds of `--bin curves`.

    pip install 'diffprivlib>=0.6.6' 'scikit-learn>=1.6,<1.7' pandas wheels/*.whl
    python benches/peers/python_accuracy.py --data adult.csv.gz income '>50K' [--drop COLUMN]
        [--rows 60000] [--runs 10] [--curves none]

Run s tests fold s mod 5 of five (record i is in fold i mod 5). Ranges of numeric columns and lists of categories come from the
table and count as public. `default` is add-remove with delta 1e-8, `pure` has the guarantee of diffprivlib: replace-one, delta 0.

diffprivlib gets the rows that a user of scikit-learn would make: numbers scaled to [0, 1], texts one-hot, rows divided by their
norm. It learns with each of its regularisations, and the table shows the best by test accuracy: chosen with hindsight, which
no private choice is. One Markdown row a table and epsilon: means and standard errors over the runs.
"""

import argparse
import statistics
import sys
import warnings

import diffprivlib_logistic
import folds
import numpy as np
from dp import DPLogisticRegression


def ours(train, test, epsilon, seed, **options):
    model = DPLogisticRegression(epsilon, classes=[False, True], random_state=seed, n_jobs=1, **options)
    return model.fit(*train).score(*test)


def theirs(train, test, epsilon, regularisation, seed):
    return diffprivlib_logistic.fit(*train, epsilon, regularisation, seed, intercept=True).score(*test)


def cell(values):
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.4f} ± {error:.4f}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", nargs=3, required=True, metavar=("FILE", "LABEL", "POSITIVE"))
    arguments.add_argument("--drop", nargs="*", default=[])
    arguments.add_argument("--rows", type=int)
    arguments.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 0.4, 1.6])
    arguments.add_argument("--runs", type=int, default=10)
    arguments.add_argument("--curves")
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    path, label, positive = options.data
    table = folds.read(path, options.rows)
    n = len(table)
    y = (table[label].astype(str) == positive).to_numpy()
    table = table.drop(columns=[label, *options.drop])
    bounds = folds.bounds(table)
    table = table[list(bounds)]
    rows = folds.scaled(table, bounds)
    print(f"{path}: {n} rows, {rows.shape[1]} features, majority {max(y.mean(), 1 - y.mean()):.4f}\n")
    print("| epsilon | default | pure | diffprivlib | its regularisation |\n|---|---|---|---|---|")
    fold = np.arange(n) % 5
    public = {"bounds": bounds, "curves": options.curves}

    def over_runs(one, X):
        found = []
        for seed in range(options.runs):
            test = fold == seed % 5
            found.append(one((X[~test], y[~test]), (X[test], y[test]), seed))
        return found

    for epsilon in options.epsilon:
        guarantees = ({"delta": 1e-8}, {"delta": 0.0, "adjacency": "replace-one"})
        default, pure = (
            over_runs(lambda train, test, seed: ours(train, test, epsilon, seed, **public, **guarantee), table)
            for guarantee in guarantees
        )
        peers = [
            (over_runs(lambda train, test, seed, r=r: theirs(train, test, epsilon, r, seed), rows), r)
            for r in folds.REGULARISATIONS
        ]
        best, regularisation = max(peers, key=lambda peer: statistics.mean(peer[0]))
        name = "default" if regularisation is None else f"{regularisation:g}"
        print(f"| {epsilon} | {cell(default)} | {cell(pure)} | {cell(best)} | {name} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
