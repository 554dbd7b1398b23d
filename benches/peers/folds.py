"""What the scripts of this folder share: tables, folds, figures, and settings of peers that are chosen with hindsight."""

import statistics

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.preprocessing import normalize

# Of DP-EBM, whose best setting is chosen with hindsight.
EBM_SETTINGS = {
    "default": {},
    "rounds-50": {"max_rounds": 50, "learning_rate": 0.05},
    "rounds-1000": {"max_rounds": 1000},
    "rate-0.1": {"learning_rate": 0.1},
    "rate-0.003": {"learning_rate": 0.003},
    "bins-16": {"max_bins": 16},
    "bins-64": {"max_bins": 64},
}

# Of the mean loss, of diffprivlib's logistic regression; none is its default, C = 1.
REGULARISATIONS = [None, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1]


def read(path, rows=None):
    """Returns a table, or that many rows evenly spread over it."""
    table = pd.read_csv(path, keep_default_na=False)
    n = min(len(table), rows or len(table))
    return table.iloc[[i * len(table) // n for i in range(n)]].reset_index(drop=True)


def name(path):
    return path.rsplit("/", 1)[-1].split(".")[0]


def columns(table):
    """Returns the kinds of columns for DP-EBM, and the ranges of the numeric ones by position, taken from the table."""
    numeric = [pd.api.types.is_numeric_dtype(table[name]) for name in table]
    kinds = ["continuous" if is_number else "nominal" for is_number in numeric]
    ranges = {i: (table.iloc[:, i].min(), table.iloc[:, i].max()) for i, yes in enumerate(numeric) if yes}
    return kinds, ranges


def bounds(table):
    """Returns the range of each numeric column and the list of texts of each other one, taken from the table."""
    known = {
        name: (float(column.min()), float(column.max()))
        if pd.api.types.is_numeric_dtype(column)
        else sorted(column.astype(str).unique())
        for name, column in table.items()
    }
    # A column of one value tells nothing, and has no range.
    return {name: known for name, known in known.items() if not isinstance(known, tuple) or known[0] < known[1]}


def scaled(table, bounds):
    """Returns the rows that a user of scikit-learn would make: numbers in [0, 1], texts one-hot, divided by their norm."""
    parts = []
    for name, known in bounds.items():
        if isinstance(known, tuple):
            low, high = known
            parts.append((table[name].to_numpy(float)[:, None] - low) / max(high - low, 1e-300))
        else:
            parts.append((table[name].astype(str).to_numpy()[:, None] == np.array(known)).astype(float))
    return normalize(np.hstack(parts))


def figures(target, probabilities):
    """Returns accuracy, AUC and log loss of the probabilities that targets are true."""
    accuracy = float(np.mean((probabilities > 0.5) == target))
    return accuracy, float(roc_auc_score(target, probabilities)), float(log_loss(target, probabilities))


def mean_and_error(values):
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return [f"{statistics.mean(values):.4f}", f"{error:.4f}"]
