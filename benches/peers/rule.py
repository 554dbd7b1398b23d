"""Regret of the rule for curves, with its constants chosen on all tables but one.

    cargo run --release -p benches --bin curves -- --data FILE LABEL POSITIVE [--data ...] [--rows 4000] --runs 10
        --maps auto,linear:0,by-range:2,by-range:4,by-range:5,by-range:6
        --epsilons 0.05,0.1,0.2,0.4,0.8,1.6,4 --deltas 1e-8,0 > cells.csv
    python benches/peers/rule.py cells.csv [...]

Reads the cells of `--bin curves`, each a table, epsilon, delta and number of cosines (0 for linear terms). The rule is that of
`dp_optim::Auto::cosines`, with its constants as parameters. For each table the constants are those of least mean regret on the
other tables, from the grid below; the regret on the table itself is shown. The regret of a cell is the best figure of all maps,
with hindsight, minus that of the map chosen. Cells of `auto`, if there are any, must have the features that the rule gives.
"""

import argparse
import collections
import csv
import itertools
import math
import statistics
import sys

# COST_OF_A_CURVE, its multiples for two and for four cosines with delta > 0, and for more than four with delta = 0.
SHIPPED = (0.01, 2.0, 1.5, 1 / 3)
GRID = list(
    itertools.product(
        (0.002, 0.003, 0.005, 0.007, 0.01, 0.014, 0.02, 0.03, 0.05), (1.0, 2.0, 4.0), (1.0, 1.5, 2.0), (0.1, 1 / 3, 1.0)
    )
)
FIGURES = {"auc": 1, "accuracy": 1, "log_loss": -1}


def noise_multiplier(epsilon, delta):
    """Returns that of the Gaussian mechanism: Balle and Wang, ICML 2018, theorem 8."""

    def spent(z):
        by, shift = 0.5 / z, epsilon * z
        return statistics.NormalDist().cdf(by - shift) - math.exp(epsilon) * statistics.NormalDist().cdf(-by - shift)

    low, high = 1e-3, 1e6
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if spent(middle) > delta else (low, middle)
    return high


def chosen(cell, constants):
    """Returns the rule's number of cosines."""
    cost, of_two, of_four, of_many = constants
    for cosines in (6, 5, 4, 2):
        if cosines not in cell["figures"]:
            continue
        if cell["delta"] > 0:
            of_a_feature = 2 * cell["multiplier"] / cell["n"]
        else:
            parameters = cell["dim"] + cell["columns"] * (cosines - 1)
            of_a_feature = 2 * math.sqrt(parameters + 1) / (cell["epsilon"] * cell["n"])
        most = cost
        if cosines == 2:
            most *= of_two
        elif cosines == 4 and cell["delta"] > 0:
            most *= of_four
        elif cosines > 4 and cell["delta"] == 0:
            most *= of_many
        if (cosines - 1) * of_a_feature <= most:
            return cosines
    return 0


def regret(cell, cosines, figure):
    sign = FIGURES[figure]
    values = {k: sign * found[figure] for k, found in cell["figures"].items()}
    return max(values.values()) - values[cosines]


def mean_regret(cells, constants, figure):
    return statistics.fmean(regret(cell, chosen(cell, constants), figure) for cell in cells)


def read(paths):
    cells = {}
    for path in paths:
        with open(path) as file:
            for row in csv.DictReader(file):
                key = row["table"], float(row["epsilon"]), float(row["delta"]), int(row["n"])
                cell = cells.setdefault(key, {"figures": {}})
                cell |= {"table": key[0], "epsilon": key[1], "delta": key[2]}
                cell |= {"n": key[3], "columns": int(row["columns"])}
                if row["map"] == "auto":
                    cell["features"] = int(row["features"])
                    continue
                cosines = int(row["map"].split(":")[1])
                cell["figures"][cosines] = {figure: float(row[figure]) for figure in FIGURES}
                if cosines == 0:
                    cell["dim"] = int(row["features"])
                if key[2] > 0:
                    cell["multiplier"] = noise_multiplier(key[1], key[2])
    return list(cells.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cells", nargs="+", help="output of --bin curves")
    cells = read(parser.parse_args().cells)
    for cell in cells:
        added = cell["columns"] * max(chosen(cell, SHIPPED) - 1, 0)
        if cell.get("features", cell["dim"] + added) != cell["dim"] + added:
            sys.exit(f"SHIPPED is not the rule of auto: {cell}")
    tables = sorted({cell["table"] for cell in cells})
    print(f"{len(cells)} cells of {len(tables)} tables: {', '.join(tables)}\n")
    print("| figure | delta | cells | left out | auto | in hindsight | 0 | 2 | 4 | 6 | largest, left out |")
    print("|" + 11 * "---|")
    for figure in FIGURES:
        left_out = collections.defaultdict(list)
        for table in tables:
            others = [cell for cell in cells if cell["table"] != table]
            constants = min(GRID, key=lambda constants, o=others, f=figure: mean_regret(o, constants, f))
            print(f"{figure} without {table}: {constants}", file=sys.stderr)
            for cell in cells:
                if cell["table"] == table:
                    left_out[cell["delta"]].append(regret(cell, chosen(cell, constants), figure))
        best = min(GRID, key=lambda constants, f=figure: mean_regret(cells, constants, f))
        for delta in sorted(left_out, reverse=True):
            of_delta = [cell for cell in cells if cell["delta"] == delta]
            means = [
                statistics.fmean(left_out[delta]),
                mean_regret(of_delta, SHIPPED, figure),
                mean_regret(of_delta, best, figure),
            ]
            for cosines in (0, 2, 4, 6):
                means.append(statistics.fmean(regret(cell, cosines, figure) for cell in of_delta))
            shown = " | ".join(f"{mean:.4f}" for mean in means)
            print(f"| {figure} | {delta:g} | {len(of_delta)} | {shown} | {max(left_out[delta]):.4f} |")


if __name__ == "__main__":
    main()
