"""IBM diffprivlib's private logistic regression on the rows that `dp reproduce export` writes.

    dp reproduce export --data DATA --out folds
    pip install 'diffprivlib>=0.6.6' 'scikit-learn<1.7'
    python benches/peers/diffprivlib_logistic.py folds --epsilon 0.05 0.1 0.2 0.4 1 2 4 --repetitions 10

One CSV line a run on stdout (data, epsilon, lambda, repetition, accuracy, objective, seconds), then means and standard
errors as a Markdown table on stderr, to be put beside `dp reproduce table`. The rows and the split are the same, and so
is the objective (lambda 0.01). It learns with every lambda of `--lambda`, and the table shows the one with the best test
accuracy: chosen with hindsight, which no private choice is.

Its guarantee is pure (delta = 0, replace-one), by the objective perturbation of Chaudhuri, Monteleoni and Sarwate 2011.
Its regularisation is C = 1/(n lambda), and `data_norm` is 1: the exported rows have at most that norm. The intercept is
a column of the rows where there is one, so none is fitted. (Version 0.6.5 beside scikit-learn 1.1 or later divides by n
twice: the more budget, the worse its models are.)
"""

import argparse
import csv
import pathlib
import statistics
import sys
import time
import warnings

import numpy as np
from diffprivlib.models import LogisticRegression

# Of the objective that is reported.
LAMBDA = 0.01


def load(path):
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    return table[:, 1:], table[:, 0]


def objective(rows, targets, weights):
    """The mean over one-against-the-rest models of the regularised mean logistic loss."""
    margins = rows @ weights.T * targets
    return float(np.mean(np.logaddexp(0, -margins)) + LAMBDA / 2 * np.sum(weights**2) / len(weights))


def fit(rows, targets, epsilon, regularisation, seed, intercept):
    """Returns a model; without a regularisation the library's own, C = 1."""
    return LogisticRegression(
        epsilon=epsilon,
        data_norm=1.0,
        C=1.0 if regularisation is None else 1 / (len(rows) * regularisation),
        fit_intercept=intercept,
        random_state=seed,
        max_iter=1000,
    ).fit(rows, targets)


def run(train, test, epsilon, regularisation, seed):
    rows, targets = train
    classes = np.unique(targets)
    started = time.perf_counter()
    model = fit(rows, targets, epsilon, regularisation, seed, intercept=False)
    seconds = time.perf_counter() - started
    if len(classes) > 2:
        signs = np.where(targets[:, None] == classes[None, :], 1.0, -1.0)
    else:
        signs = targets[:, None]
    return model.score(*test), objective(rows, signs, model.coef_), seconds


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--set", nargs="+", default=None)
    arguments.add_argument("--epsilon", nargs="+", type=float, default=[0.05, 0.1, 0.2, 0.4, 1.0, 2.0, 4.0])
    arguments.add_argument("--lambda", dest="lambdas", nargs="+", type=float, default=[1e-4, 1e-3, 1e-2, 1e-1])
    arguments.add_argument("--repetitions", type=int, default=10)
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    names = options.set or sorted(path.name[: -len("-train.csv")] for path in options.folder.glob("*-train.csv"))
    writer = csv.writer(sys.stdout)
    writer.writerow(["data", "epsilon", "lambda", "repetition", "accuracy", "objective", "seconds"])
    print("| data | epsilon | lambda | n | test accuracy | objective | seconds |\n|---|---|---|---|---|---|---|", file=sys.stderr)
    for name in names:
        train = load(options.folder / f"{name}-train.csv")
        test = load(options.folder / f"{name}-test.csv")
        for epsilon in options.epsilon:
            best = None
            for regularisation in options.lambdas:
                results = []
                for repetition in range(options.repetitions):
                    result = run(train, test, epsilon, regularisation, repetition)
                    results.append(result)
                    writer.writerow([name, epsilon, regularisation, repetition, *map(repr, result)])
                    sys.stdout.flush()
                accuracy = statistics.mean(result[0] for result in results)
                if best is None or accuracy > best[0]:
                    best = accuracy, regularisation, results
            _, regularisation, results = best
            cells = []
            for values in zip(*results):
                spread = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
                cells.append(f"{statistics.mean(values):.4g} ± {spread:.2g}")
            print(f"| {name} | {epsilon} | {regularisation} | {len(results)} | {' | '.join(cells)} |", file=sys.stderr)


if __name__ == "__main__":
    main()
