"""DP-EBM, the private additive model of Microsoft's `interpret`, on the folds of `--bin curves`.

    pip install interpret pandas
    python benches/peers/ebm.py --data adult.csv.gz income '>50K' --epsilon 0.1 0.4 0.8 1.6 4 --runs 10
    cargo run --release -p benches --bin curves -- --data adult.csv.gz income '>50K' --epsilons 0.1,0.4,0.8,1.6,4 --runs 10

One CSV line for each table, epsilon and setting on stdout: means and standard errors of accuracy, AUC and log loss. Run s
tests fold s mod 5 of five (record i is in fold i mod 5). Ranges of numeric columns and lists of categories come from the
table and count as public, as in `--bin curves`. Its relation is add-remove, its accountant Gaussian DP. `default` is its
default setting; the best of the seven is chosen with hindsight, which no private choice is.
"""

import argparse
import csv
import sys
import warnings

import folds
import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier


def run(table, kinds, bounds, target, fold, epsilon, delta, setting, seed):
    test = np.arange(len(table)) % 5 == fold
    model = DPExplainableBoostingClassifier(
        epsilon=epsilon,
        delta=delta,
        feature_types=kinds,
        privacy_bounds=bounds,
        random_state=seed,
        n_jobs=1,
        **folds.EBM_SETTINGS[setting],
    )
    model.fit(table[~test], target[~test])
    return folds.figures(target[test], model.predict_proba(table[test])[:, 1])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", nargs=3, action="append", required=True, metavar=("FILE", "LABEL", "POSITIVE"))
    arguments.add_argument("--drop", nargs="*", default=[])
    arguments.add_argument("--rows", type=int, default=None)
    arguments.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 0.4, 0.8, 1.6, 4.0])
    arguments.add_argument("--delta", type=float, default=1e-8)
    arguments.add_argument("--settings", nargs="+", choices=folds.EBM_SETTINGS, default=list(folds.EBM_SETTINGS))
    arguments.add_argument("--runs", type=int, default=10)
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    writer = csv.writer(sys.stdout)
    writer.writerow("table epsilon delta setting accuracy error auc error log_loss error".split())
    for path, label, positive in options.data:
        table = folds.read(path, options.rows)
        target = (table[label].astype(str) == positive).to_numpy()
        table = table.drop(columns=[label, *options.drop])
        kinds, ranges = folds.columns(table)
        for epsilon in options.epsilon:
            for setting in options.settings:
                found = [
                    run(table, kinds, ranges, target, seed % 5, epsilon, options.delta, setting, seed)
                    for seed in range(options.runs)
                ]
                figures = [figure for values in zip(*found) for figure in folds.mean_and_error(values)]
                writer.writerow([folds.name(path), epsilon, options.delta, setting, *figures])
                sys.stdout.flush()


if __name__ == "__main__":
    main()
