"""The explained share of variance of numeric labels, private and not, on the folds of `benches --bin curves -- --label`.

    python benches/peers/regression.py --label TABLE COLUMN [--drop COLUMN]... [--rows 20000] [--epsilon 0.1 0.4 1.6 4] [--runs 5]
        [--peers ridge trees ebm linear]
    cargo run --release -p benches --bin curves -- --label TABLE COLUMN [--rows 20000] --maps auto,linear:0

Needs scikit-learn and pandas. Without privacy: `ridge`, the best of five regularisations in hindsight, and `trees`, boosted, the
best of 100 and 300 rounds in hindsight. With privacy: `ebm` (`pip install interpret`), DP-EBM with add-remove at delta, its
default and the best of seven settings in hindsight; `linear` (`pip install diffprivlib`), linear regression with replace-one at
delta 0. Ranges of columns and label come from the table and count as public. Run s tests fold s mod 5. One CSV line for each
table, epsilon and model: mean and standard error.
"""

import argparse
import csv
import statistics
import sys
import warnings

import folds
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler


class Data:
    """A table, its label, and which columns are numbers."""

    def __init__(self, path, label, drop, rows):
        table = folds.read(path, rows)
        self.name = f"{folds.name(path)}:{label}"
        self.target = table.pop(label).to_numpy(float)
        self.table = table.drop(columns=drop)
        self.kinds, self.ranges = folds.columns(self.table)
        self.numbers = [self.table.columns[i] for i in self.ranges]
        self.texts = [name for name in self.table if name not in self.numbers]

    def encoded(self, scaler, coder):
        return make_column_transformer((scaler, self.numbers), (coder, self.texts)).fit_transform(self.table)

    def explained(self, fit, rows, run):
        """Returns R2 on the fold of a run of a model that `fit` fits."""
        test = np.arange(len(self.target)) % 5 == run % 5
        predictions = fit(rows[~test], self.target[~test]).predict(rows[test])
        return r2_score(self.target[test], predictions)


def ebm(data, epsilon, options):
    from interpret.privacy import DPExplainableBoostingRegressor

    low, high = data.target.min(), data.target.max()
    for name, setting in folds.EBM_SETTINGS.items():

        def model(run):
            return DPExplainableBoostingRegressor(
                epsilon=epsilon,
                delta=options.delta,
                feature_types=data.kinds,
                privacy_bounds=data.ranges,
                privacy_target_min=low,
                privacy_target_max=high,
                random_state=run,
                n_jobs=1,
                **setting,
            )

        yield name, [data.explained(model(run).fit, data.table, run) for run in range(options.runs)]


def linear(data, epsilon, options):
    from diffprivlib.models import LinearRegression

    rows = data.encoded(MinMaxScaler(), OneHotEncoder(sparse_output=False, handle_unknown="ignore"))
    bounds = (0.0, 1.0), (data.target.min(), data.target.max())
    figures = []
    for run in range(options.runs):
        model = LinearRegression(epsilon=epsilon, bounds_X=bounds[0], bounds_y=bounds[1], random_state=run)
        figures.append(data.explained(model.fit, rows, run))
    yield "linear", figures


def ridge(data, _, options):
    rows = data.encoded(StandardScaler(), OneHotEncoder(sparse_output=False, handle_unknown="ignore"))
    for strength in (0.01, 1.0, 10.0, 100.0, 1000.0):
        yield strength, [data.explained(Ridge(strength).fit, rows, run) for run in range(min(5, options.runs))]


def trees(data, _, options):
    rows = data.encoded("passthrough", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1))
    for rounds in (100, 300):
        model = HistGradientBoostingRegressor(max_iter=rounds)
        yield rounds, [data.explained(model.fit, rows, run) for run in range(min(5, options.runs))]


PEERS = {"ridge": ridge, "trees": trees, "ebm": ebm, "linear": linear}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--label", nargs=2, action="append", required=True, metavar=("FILE", "COLUMN"))
    parser.add_argument("--drop", action="append", default=[])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 0.4, 1.6, 4.0])
    parser.add_argument("--delta", type=float, default=1e-8)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=["ridge", "trees", "ebm"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    writer = csv.writer(sys.stdout)
    writer.writerow(["table", "epsilon", "model", "explained", "error"])
    for path, label in options.label:
        data = Data(path, label, options.drop, options.rows)
        for peer in options.peers:
            private = peer in ("ebm", "linear")
            for epsilon in options.epsilon if private else ["-"]:
                settings = dict(PEERS[peer](data, epsilon, options))
                shown = {peer: max(settings.values(), key=statistics.mean)}
                if "default" in settings:
                    shown["ebm, default"] = settings["default"]
                for name, figures in shown.items():
                    writer.writerow([data.name, epsilon, name, *folds.mean_and_error(figures)])
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
