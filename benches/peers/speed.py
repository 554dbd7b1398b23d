"""Reading and whole commands, beside the parsers of other programs on the same files in the same run.

    python benches/peers/speed.py TARGET [--before DP] [--rows 500000] [--threads 1,2] [--times 5]

Needs numpy, polars and pyarrow. TARGET is the folder of the release build (`cargo build --release -p dp-cli -p benches`), DP an
older `dp` to compare commands with. Prints seconds, the shortest of some times; the peers parse only, `reading` also scales,
bounds and stores rows. The tables are generated: numbers, categories, quoted categories, CRLF, decimals of 17 digits, and
numbers of which every twentieth is missing; libsvm lines of 14 features, and LETOR lines of 46. If scikit-learn is there, it
parses the libsvm file too.
"""

import argparse
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import polars

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("target", type=pathlib.Path)
parser.add_argument("--before", type=pathlib.Path)
parser.add_argument("--rows", type=int, default=500_000)
parser.add_argument("--threads", default="1,2")
parser.add_argument("--times", type=int, default=5)
options = parser.parse_args()

COLUMNS, CATEGORIES, CLASSES = 54, 13, 10
PEERS = {
    "polars": "import polars; read = lambda: polars.read_csv(path)",
    "pyarrow": "import pyarrow, pyarrow.csv; pyarrow.set_cpu_count(threads); read = lambda: pyarrow.csv.read_csv(path)",
}
SKLEARN = "import sklearn.datasets; read = lambda: sklearn.datasets.load_svmlight_file(path)"


def generate(folder):
    """Writes the tables and their schemas, and returns the names of those to read."""
    random, n = np.random.default_rng(1), options.rows
    numbers = {f"x{i}": random.random(n) for i in range(COLUMNS)}
    chosen = random.integers(0, CATEGORIES, (8, n))
    mixed = {f"x{i}": random.integers(0, 100_000, n) for i in range(6)}
    mixed |= {f"c{i}": np.char.add("category-", chosen[i].astype(str)) for i in range(8)}
    one_of_two = {
        "numbers": sum(numbers[f"x{i}"] for i in range(5)) > 2.5,
        "mixed": chosen[0] + chosen[1] > CATEGORIES,
    }
    one_of_ten = np.argmax([numbers[f"x{i}"] for i in range(CLASSES)], axis=0)
    texts = "[" + ", ".join(f"'category-{i}'" for i in range(CATEGORIES)) + "]"

    def schema_of(name):
        kinds = {"x": "type = 'numeric', min = 0, max = 1, on_missing = { value = 0.5 }"}
        if name == "mixed":
            kinds = {"x": "type = 'numeric', min = 0, max = 99999", "c": f"type = 'categorical', categories = {texts}"}
        columns = mixed if name == "mixed" else numbers
        return [f"columns.{column} = {{ {kinds[column[0]]} }}" for column in columns]

    def write(name, columns, schema, labels, label="positive = '1', negative = '0'", **form):
        table = polars.DataFrame(columns | {"y": labels.astype(int)})
        table.write_csv(folder / f"{name}.csv", **form)
        text = ["missing = ['']", f"label = {{ column = 'y', {label} }}", *schema]
        (folder / f"{name}.toml").write_text("\n".join(text))
        return name

    def write_numbers(name, columns=numbers, digits=3, **form):
        return write(name, columns, schema_of("numbers"), one_of_two["numbers"], float_precision=digits, **form)

    def write_mixed(name, **form):
        return write(name, mixed, schema_of("mixed"), one_of_two["mixed"], **form)

    is_missing = random.random((COLUMNS, n)) < 0.05
    missing = {name: polars.Series(column).set(polars.Series(is_missing[i]), None) for i, (name, column) in enumerate(numbers.items())}
    classes = "classes = [" + ", ".join(f"'{i}'" for i in range(CLASSES)) + "]"
    write("classes", numbers, schema_of("numbers"), one_of_ten, classes, float_precision=3)
    return [
        write_numbers("numbers"),
        write_mixed("categories"),
        write_mixed("quoted", quote_style="non_numeric"),
        write_numbers("crlf", line_terminator="\r\n"),
        write_numbers("long", digits=17),
        write_numbers("missing", missing),
    ]


def write_lines(folder):
    """Writes libsvm lines of 14 features out of 126, and half as many LETOR lines of 46 features."""
    random, n = np.random.default_rng(2), options.rows
    text = lambda column: polars.col(column).cast(polars.String)
    chosen = {f"x{i}": random.integers(9 * i + 1, 9 * i + 10, n) for i in range(14)}
    label = polars.Series(np.where(chosen["x0"] > 5, "+1", "-1"))
    features = [text(column) + ":1" for column in chosen]
    lines = polars.DataFrame(chosen | {"y": label}).select(polars.concat_str(["y", *features], separator=" "))
    (folder / "lines.libsvm").write_text("\n".join(lines.to_series()) + "\n")
    numbers = {f"x{i}": random.integers(0, 1_000_000, n // 2) / 1e6 for i in range(46)}
    query = polars.Series([f"qid:{i // 100}" for i in range(n // 2)])
    grade = polars.Series((3 * numbers["x0"]).astype(int))
    features = [polars.lit(f"{i + 1}:") + text(column) for i, column in enumerate(numbers)]
    table = polars.DataFrame(numbers | {"grade": grade, "query": query})
    lines = table.select(polars.concat_str([text("grade"), "query", *features], separator=" "))
    (folder / "lines.txt").write_text("\n".join(lines.to_series()) + "\n")


def of_peer(peer, path, threads):
    """Times a peer in a process of its own: its threads are set once."""
    code = f"""
import os, time
os.environ["POLARS_MAX_THREADS"] = "{threads}"
path, threads = {str(path)!r}, {threads}
{peer}
def seconds():
    start = time.perf_counter()
    read()
    return time.perf_counter() - start
print(min(seconds() for _ in range({options.times})))
"""
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def of_command(program, arguments):
    best = float("inf")
    for _ in range(options.times):
        start = time.perf_counter()
        subprocess.run([program, *arguments], check=True, capture_output=True)
        best = min(best, time.perf_counter() - start)
    return best


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    threads = [int(count) for count in options.threads.split(",")]
    print(f"# Reading {options.rows} rows, seconds\n")
    print(f"{'table':12}{'MB':>6}{'threads':>9}{'reading':>9}" + "".join(f"{peer:>9}" for peer in PEERS))
    for table in generate(folder):
        path, schema = folder / f"{table}.csv", folder / f"{table}.toml"
        for count in threads:
            times = ["--threads", str(count), "--times", str(options.times)]
            reading = subprocess.run(
                [options.target / "reading", path, schema, *times], check=True, capture_output=True, text=True
            )
            peers = "".join(f"{of_peer(peer, path, count):9.3f}" for peer in PEERS.values())
            print(f"{table:12}{path.stat().st_size / 1e6:6.0f}{count:9}{float(reading.stdout):9.3f}{peers}", flush=True)

    write_lines(folder)
    if importlib.util.find_spec("sklearn"):
        print(f"\nscikit-learn, libsvm lines: {of_peer(SKLEARN, folder / 'lines.libsvm', 1):.3f}", flush=True)

    print(f"\n# Commands on {options.rows} rows of {COLUMNS} numbers, seconds\n")
    programs = [options.target / "dp"] + ([options.before] if options.before else [])
    print(f"{'command':24}{'threads':>9}{'now':>9}" + (f"{'before':>9}" if options.before else ""))

    model = ["--epsilon", "1", "--delta", "1e-8", "--out", folder / "m.json", "--force"]

    def train(table, *arguments):
        data = ["--data", folder / f"{table}.csv", "--schema", folder / f"{table}.toml"]
        return ["train", *data, *model, *arguments]

    data = ["--data", folder / "numbers.csv"]
    label = ["--label", "y", "--out", folder / "s.toml", "--force"]
    sparse = ["--data", folder / "lines.libsvm", "--dim", "126", "--algorithm", "obj-pert"]
    lists = ["--data", folder / "lines.txt", "--features", "46", "--loss", "bayesrank", "--model", "linear"]
    candidates = ["--lambda", "1e-1,3e-2,1e-2,3e-3,1e-3,5e-4,2e-4,1e-4,5e-5,2e-5"]
    commands = {
        "auto": train("numbers", "--algorithm", "auto"),
        "auto --curves none": train("numbers", "--algorithm", "auto", "--curves", "none"),
        "bolt-on-convex": train("numbers", "--algorithm", "bolt-on-convex"),
        "dp-sgd": train("numbers", "--algorithm", "dp-sgd"),
        "dp-newton": train("numbers", "--algorithm", "dp-newton"),
        "dp-gd": train("numbers", "--algorithm", "dp-gd"),
        "one model of 10 classes": train("classes", "--algorithm", "obj-pert", "--loss", "softmax"),
        "10 models, dp-sgd": train("classes", "--algorithm", "dp-sgd", "--one-vs-all", "composed"),
        "10 models, obj-pert": train("classes", "--algorithm", "obj-pert", "--one-vs-all", "composed"),
        "tuning of 10 candidates": ["tune", *train("numbers", *candidates)[1:]],
        "predict": ["predict", "--model", folder / "m.json", *data, "--out", folder / "p.csv", "--force"],
        "evaluate": ["evaluate", "--model", folder / "m.json", *data],
        "schema": ["schema", folder / "numbers.csv", *label],
        "obj-pert, libsvm lines": ["train", *sparse, *model],
        "rank train, LETOR lines": ["rank", "train", *lists, *model],
    }
    for command, arguments in commands.items():
        if command == "predict":
            subprocess.run([programs[0], *train("numbers", "--algorithm", "bolt-on-convex")], check=True, capture_output=True)
        for count in threads:
            times = "".join(f"{of_command(program, [*arguments, '--threads', str(count)]):9.3f}" for program in programs)
            print(f"{command:24}{count:9}{times}", flush=True)
