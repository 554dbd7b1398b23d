"""Held-out accuracy, AUC and log loss without privacy: logistic and boosted trees, on the folds of `benches --bin curves`.

    python benches/peers/trees.py TABLE LABEL POSITIVE [--drop COLUMN]... [--rows 50000]

Needs scikit-learn and pandas. Fold f tests the records i with i mod 5 = f, of that many rows evenly spread over the table.
Logistic regression has one-hot categories and standardised numbers, and the best of C = 0.1, 1 and 10 in hindsight; boosted
trees (HistGradientBoostingClassifier) have the best of 100 and 300 rounds at learning rate 0.1 in hindsight.
"""

import argparse

import folds
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler


def models(table):
    """Yields the name, the setting and a pipeline of each model; columns of text must hold text."""
    numbers = list(table.select_dtypes("number"))
    texts = list(table.columns.difference(numbers))
    scaled = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers), (OneHotEncoder(handle_unknown="ignore"), texts)
    )
    coded = make_column_transformer(
        ("passthrough", numbers), (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), texts)
    )
    for c in (0.1, 1.0, 10.0):
        yield "logistic regression", f"C = {c}", make_pipeline(scaled, LogisticRegression(C=c, max_iter=3000))
    for rounds in (100, 300):
        yield "boosted trees", f"{rounds} rounds", make_pipeline(coded, HistGradientBoostingClassifier(max_iter=rounds))


def run(model, table, target, fold):
    test = np.arange(len(table)) % 5 == fold
    return folds.figures(target[test], model.fit(table[~test], target[~test]).predict_proba(table[test])[:, 1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("label")
    parser.add_argument("positive")
    parser.add_argument("--drop", action="append", default=[])
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    table = pd.read_csv(options.table).drop(columns=options.drop)
    n = min(len(table), options.rows or len(table))
    table = table.iloc[np.arange(n) * len(table) // n]
    target = (table.pop(options.label).astype(str) == options.positive).to_numpy()
    texts = table.columns.difference(table.select_dtypes("number").columns)
    table[texts] = table[texts].astype(str)
    best = {}
    for name, _, model in models(table):
        figures = [run(model, table, target, fold) for fold in range(5)]
        mean, error = np.mean(figures, axis=0), np.std(figures, axis=0, ddof=1) / 5**0.5
        if name not in best or mean[:2].sum() > best[name][0][:2].sum():
            best[name] = (mean, error)
    for name, (mean, error) in best.items():
        shown = [f"{figure} {mean[i]:.4f} ({error[i]:.4f})" for i, figure in enumerate(["accuracy", "AUC", "log loss"])]
        print(f"{name}: {', '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
