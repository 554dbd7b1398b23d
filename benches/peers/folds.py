"""What the scripts of this folder share: tables, folds, and settings of DP-EBM."""

import statistics

import pandas as pd

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


def mean_and_error(values):
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return [f"{statistics.mean(values):.4f}", f"{error:.4f}"]
