#!/usr/bin/env python3
"""The Python package `dp` beside its peers and beside the program, in one run.

    pip install maturin numpy scikit-learn diffprivlib dp-accounting prv-accountant opacus
    maturin build --profile dist --manifest-path crates/dp-python/Cargo.toml --out wheels && pip install wheels/*.whl
    cargo build --release -p dp-cli
    python benches/peers/python_package.py wheels/*.whl --program target/release/dp [--rows 500000] [--columns 54]
    # diffprivlib 0.6 needs scikit-learn below 1.5, and so an environment of its own:
    python benches/peers/python_package.py --diffprivlib old/bin/python ...

Prints Markdown: the size of the wheel and the time of its import; seconds and peak memory of a fit on made-up numbers, each in a
process of its own, least of three; milliseconds of a grid of accounting questions. Two threads at most; memory on Linux.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

REPEATS = 3
EPSILON, DELTA = 1.0, 1e-6


def data(rows, columns):
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (rows, columns)).round(4)
    weights = rng.normal(size=columns)
    y = (X @ weights + rng.logistic(size=rows) > 0).astype(np.int64)
    return X, y


def memory(name):
    """Returns a line of the process's memory in MB."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1e3
    return float("nan")


def fit(what, rows, columns):
    """Fits once; prints seconds, those after the last cell was taken, accuracy, the matrix's size and the peak of memory beyond
    what there was, in MB."""
    warnings.simplefilter("ignore")
    X, y = data(rows, columns)
    last = float("nan")
    if what.startswith("dp"):
        from dp import DPLogisticRegression, _columns

        of_array = _columns.of_array

        def timed(name, values):
            column = of_array(name, values)

            def chunk(start, stop):
                nonlocal last
                try:
                    return column.chunk(start, stop)
                finally:
                    last = time.perf_counter()

            return dataclasses.replace(column, chunk=chunk)

        _columns.of_array = timed
        name, options = {
            "dp auto": ("auto", {}),
            "dp dp-sgd": ("dp-sgd", {}),
            "dp bolt-on": ("bolt-on-convex", {}),
            "dp auto, lines": ("auto", {"curves": "none"}),
        }[what]
        model = DPLogisticRegression(EPSILON, DELTA, bounds=(-1, 1), classes=[0, 1], algorithm=name, n_jobs=2, **options)
    elif what == "diffprivlib":
        from diffprivlib.models import LogisticRegression

        model = LogisticRegression(epsilon=EPSILON, data_norm=columns**0.5)
    else:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression()
    # Starts the peak anew.
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    start = time.perf_counter()
    model.fit(X, y)
    end, taken = time.perf_counter(), last
    peak = memory("VmHWM") - before
    score = float((model.predict(X) == y).mean())
    print(json.dumps([end - start, end - taken, score, X.nbytes / 1e6, peak]))


def program(path, rows, columns):
    """Trains by the program on a CSV file of the same rows; yields the seconds of training and of all."""
    X, y = data(rows, columns)
    with tempfile.TemporaryDirectory() as folder:
        table, schema, out = (pathlib.Path(folder) / name for name in ("data.csv", "schema.toml", "model.json"))
        with open(table, "w") as file:
            file.write(",".join([f"x{i}" for i in range(columns)] + ["y"]) + "\n")
            for row, label in zip(X.tolist(), y.tolist()):
                file.write(",".join(map(repr, row)) + f",{label}\n")
        text = '[label]\ncolumn = "y"\npositive = "1"\nnegative = "0"\n'
        text += "".join(f"[columns.x{i}]\ntype = 'numeric'\nmin = -1\nmax = 1\n" for i in range(columns))
        schema.write_text(text)
        for algorithm in ("auto", "auto --curves none", "dp-sgd", "bolt-on-convex"):
            found = []
            for _ in range(REPEATS):
                command = [path, "train", "--data", table, "--schema", schema, "--epsilon", EPSILON, "--delta", DELTA]
                command += ["--algorithm", *algorithm.split(), "--threads", 2, "--out", out, "--force", "--json"]
                start = time.perf_counter()
                run = subprocess.run(list(map(str, command)), capture_output=True, check=True, text=True)
                result = json.loads(run.stdout)
                found.append((result.get("training_seconds") or float("nan"), time.perf_counter() - start))
            yield algorithm, min(found, key=lambda one: one[1])


def package(wheel):
    import_time = []
    for _ in range(9):
        code = "import numpy, time; s = time.perf_counter(); import dp; print(time.perf_counter() - s)"
        import_time.append(float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout))
    print(f"wheel: {os.path.getsize(wheel) / 1e6:.1f} MB; import after numpy: {1e3 * statistics.median(import_time):.0f} ms\n")


def fits(rows, columns, path, diffprivlib):
    print(f"One fit on {rows} x {columns} numbers, epsilon {EPSILON}, delta {DELTA}:\n")
    print("| | seconds | of training | peak beyond the data, MB | of the matrix | accuracy |")
    print("|---|---|---|---|---|---|")
    for what in ("dp auto", "dp auto, lines", "dp dp-sgd", "dp bolt-on", "diffprivlib", "scikit-learn"):
        found = []
        for _ in range(REPEATS):
            python = diffprivlib if what == "diffprivlib" else sys.executable
            command = [python, __file__, "--fit", what, "--rows", str(rows), "--columns", str(columns)]
            run = subprocess.run(command, capture_output=True, text=True)
            if run.returncode:
                break
            found.append(json.loads(run.stdout.splitlines()[-1]))
        if found:
            seconds, training, score, matrix, memory = min(found)
            part = f"{training:.3f}" if training == training else ""
            print(f"| {what} | {seconds:.2f} | {part} | {memory:.0f} | {memory / matrix:.2f} | {score:.4f} |")
        else:
            print(f"| {what} | {run.stderr.splitlines()[-1][:60] if run.stderr else 'failed'} | | | | |")
    if path:
        for algorithm, (training, whole) in program(path, rows, columns):
            part = f"{training:.3f}" if training == training else ""
            print(f"| dp train {algorithm} | {whole:.2f} | {part} | | | |")


def grid():
    import numpy as np
    from dp import accounting

    noise = np.linspace(0.7, 3.0, 40)[:, None]
    steps = np.linspace(100, 20_000, 25).astype(int)[None, :]
    rate, delta = 0.004, 1e-6
    print(f"\n{noise.size * steps.size} settings of DP-SGD at a sampling rate of {rate}, delta {delta}:\n")
    print("| | ms a setting | |")
    print("|---|---|---|")

    def row(name, questions, note):
        least = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            count = questions()
            least.append((time.perf_counter() - start) / count)
        print(f"| {name} | {1e3 * min(least):.3f} | {note} |")

    def ours(**options):
        answer = accounting.dpsgd(noise_multiplier=noise, sampling_rate=rate, steps=steps, delta=delta, **options)
        return answer.epsilon.size

    row("dp, one thread", lambda: ours(threads=1), "both certified ends")
    row("dp, two threads", lambda: ours(threads=2), "both certified ends")
    few = [(float(sigma), int(count)) for sigma in noise[::13, 0] for count in steps[0, ::8]]
    try:
        from dp_accounting import dp_event, pld, rdp

        def theirs(make):
            for sigma, count in few:
                step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(sigma))
                make().compose(dp_event.SelfComposedDpEvent(step, count)).get_epsilon(delta)
            return len(few)

        row("dp_accounting, PLD", lambda: theirs(pld.PLDAccountant), "upper end")
        row("dp_accounting, RDP", lambda: theirs(rdp.RdpAccountant), "upper end")
    except ImportError:
        print("| dp_accounting | not installed | |")
    try:
        from opacus.accountants import PRVAccountant as OpacusPrv
        from opacus.accountants import RDPAccountant as OpacusRdp

        def opacus(make):
            for sigma, count in few:
                accountant = make()
                accountant.history = [(sigma, rate, count)]
                accountant.get_epsilon(delta)
            return len(few)

        row("Opacus, PRV", lambda: opacus(OpacusPrv), "upper end")
        row("Opacus, RDP", lambda: opacus(OpacusRdp), "upper end")
    except ImportError:
        print("| Opacus | not installed | |")
    try:
        from prv_accountant import PRVAccountant
        from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

        def prv():
            for sigma, count in few:
                mechanism = PoissonSubsampledGaussianMechanism(sampling_probability=rate, noise_multiplier=sigma)
                accountant = PRVAccountant(
                    prvs=[mechanism], max_self_compositions=[count], eps_error=0.1, delta_error=delta / 1000
                )
                accountant.compute_epsilon(delta=delta, num_self_compositions=[count])
            return len(few)

        row("prv-accountant", prv, "both ends, 0.1 apart")
    except ImportError:
        print("| prv-accountant | not installed | |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", nargs="?")
    parser.add_argument("--program")
    parser.add_argument("--diffprivlib", default=sys.executable)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--columns", type=int, default=54)
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        fit(arguments.fit, arguments.rows, arguments.columns)
        return
    if arguments.wheel:
        package(arguments.wheel)
    fits(arguments.rows, arguments.columns, arguments.program, arguments.diffprivlib)
    grid()


if __name__ == "__main__":
    main()
