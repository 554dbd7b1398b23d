"""Held-out accuracy and AUC without privacy: logistic regression and boosted trees, on the folds of `benches --bin curves`.

    python benches/peers/trees.py TABLE LABEL POSITIVE [--drop COLUMN]... [--rows 50000]

Needs scikit-learn and pandas. Fold f tests the records i with i mod 5 = f, of that many rows evenly spread over the table.
Logistic regression has one-hot categories and standardised numbers, and the best of C = 0.1, 1 and 10 in hindsight; boosted
trees (HistGradientBoostingClassifier) have the best of 100 and 300 rounds at learning rate 0.1 in hindsight.
"""

import argparse

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

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
numbers = table.select_dtypes("number").columns
texts = table.columns.difference(numbers)
table[texts] = table[texts].astype(str)

scaled = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), numbers), (OneHotEncoder(handle_unknown="ignore"), texts)
)
coded = make_column_transformer(
    ("passthrough", numbers), (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), texts)
)
models = [("logistic regression", scaled, LogisticRegression(C=c, max_iter=3000)) for c in (0.1, 1.0, 10.0)]
models += [("boosted trees", coded, HistGradientBoostingClassifier(max_iter=rounds)) for rounds in (100, 300)]

best = {}
for name, encoder, model in models:
    figures = []
    for fold in range(5):
        test = np.arange(n) % 5 == fold
        fitted = make_pipeline(encoder, model).fit(table[~test], target[~test])
        scores = fitted.predict_proba(table[test])[:, 1]
        figures.append([((scores > 0.5) == target[test]).mean(), roc_auc_score(target[test], scores)])
    mean, error = np.mean(figures, axis=0), np.std(figures, axis=0, ddof=1) / 5**0.5
    if name not in best or mean.sum() > best[name][0].sum():
        best[name] = (mean, error)
for name, (mean, error) in best.items():
    print(f"{name}: accuracy {mean[0]:.4f} ({error[0]:.4f}), AUC {mean[1]:.4f} ({error[1]:.4f})", flush=True)
