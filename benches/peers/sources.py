#!/usr/bin/env python3
"""Time and peak memory of `dp train` by source of the rows, in memory and from the spool.

    cargo build --release -p dp-cli
    python3 -m pip install duckdb            # writes the Parquet file
    python3 benches/peers/sources.py target/release/dp --rows 1000000 [--postgres postgres://HOST/DATABASE] [--runners]

With `--postgres` the rows are also copied into a table `dp_sources` of that database, by psql, and dropped at the end. Its first line
is what reading costs by itself: psql's binary COPY of the table into nothing. Its last lines are what a step costs whose sums the
server computes (`--sums`). With `--runners` a step is measured over the Parquet file in DuckDB, ClickHouse and Spark too, by the
programs of `crates/dp-cli/runners` under this Python, which needs duckdb, chdb and pyspark.

The table has 40 numeric and two categorical columns (51 features with the intercept), generated from a fixed seed; it repeats
after 100,000 rows. Files are written to a temporary folder: about 310 bytes a row as CSV, 120 as Parquet, 410 as SQLite.
"""

import argparse
import csv
import math
import multiprocessing
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time

RUNNERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/dp-cli/runners")
COLUMNS = 40
PART = 100_000


def write_csv(path, rows):
    draw = random.Random(1)
    weights = [draw.gauss(0, 1) for _ in range(COLUMNS)]
    part = []
    for _ in range(min(PART, rows)):
        x = [draw.uniform(-1, 1) for _ in range(COLUMNS)]
        a, b, u = draw.randrange(5), draw.randrange(5), draw.random()
        score = sum(p * q for p, q in zip(x, weights)) + (a - 2) / 2 + math.log(u / (1 - u))
        part.append(",".join(f"{v:.4f}" for v in x) + f",c{a},k{b},{'yes' if score > 0 else 'no'}\n")
    with open(path, "w") as file:
        file.write(",".join([f"x{j}" for j in range(COLUMNS)] + ["a", "b", "y"]) + "\n")
        for _ in range(max(1, rows // PART)):
            file.writelines(part)


def write_schema(path):
    with open(path, "w") as file:
        label = 'column = "y", positive = "yes", negative = "no", others = "neutral", on_missing = "neutral"'
        file.write(f"label = {{ {label} }}\n")
        for j in range(COLUMNS):
            policies = 'on_missing = "neutral", on_unreadable = "neutral"'
            file.write(f'columns.x{j} = {{ type = "numeric", min = -1, max = 1, {policies} }}\n')
        for name, letter in [("a", "c"), ("b", "k")]:
            categories = ", ".join(f'"{letter}{i}"' for i in range(5))
            policies = 'on_missing = "neutral", on_unknown = "neutral"'
            file.write(f'columns.{name} = {{ type = "categorical", categories = [{categories}], {policies} }}\n')


def write_all(folder, rows):
    """Writes the table in all forms, and returns what `--data` is for each."""
    write_csv(os.path.join(folder, "rows.csv"), rows)
    write_schema(os.path.join(folder, "schema.toml"))
    source = os.path.join(folder, "rows.csv")
    names = [f"x{j}" for j in range(COLUMNS)] + ["a", "b", "y"]
    types = ["real"] * COLUMNS + ["text"] * 3
    database = sqlite3.connect(os.path.join(folder, "rows.db"))
    database.execute("create table rows (" + ", ".join(f"{n} {t}" for n, t in zip(names, types)) + ")")
    with open(source) as file:
        file.readline()
        database.executemany(f"insert into rows values ({','.join('?' * len(names))})", csv.reader(file))
    database.commit()
    database.close()
    sources = {"CSV": "rows.csv", "SQLite": "sqlite:rows.db"}
    try:
        import duckdb
    except ImportError:
        print("SKIPPED Parquet: no duckdb package")
        return sources
    text = "{'a': 'VARCHAR', 'b': 'VARCHAR', 'y': 'VARCHAR'}"
    target = os.path.join(folder, "rows.parquet")
    duckdb.sql(f"copy (select * from read_csv('{source}', types = {text})) to '{target}' (format parquet)")
    return sources | {"Parquet": "rows.parquet"}


def write_postgres(address, folder):
    """Copies the table into a server."""
    names = [f"x{j}" for j in range(COLUMNS)] + ["a", "b", "y"]
    columns = ", ".join(f"{name} {'float8' if j < COLUMNS else 'text'}" for j, name in enumerate(names))
    script = f"drop table if exists dp_sources; create table dp_sources ({columns});\n"
    script += "\\copy dp_sources from 'rows.csv' csv header\nvacuum analyze dp_sources;"
    subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", address], cwd=folder, input=script, text=True, check=True)


def measured(command, folder):
    """Returns seconds, CPU seconds and MiB at the peak."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"{command} ended with {status}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def run(dp, folder, arguments):
    out = os.path.join(folder, "model.json")
    command = [dp, "train", "--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-8", "--out", out, "--force"]
    return measured(command + arguments + ["--quiet"], folder)


def show(source, title, room, figures):
    seconds, cpu, peak = figures
    print(f"{source:<10} {title:<24} {room:<7} {seconds:7.2f} {cpu:7.2f} {peak:8.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dp")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--postgres", help="address of a database for the same rows")
    parser.add_argument("--runners", action="store_true", help="sums in DuckDB, ClickHouse and Spark")
    parser.add_argument("--only-sums", action="store_true", help="only the sums")
    parser.add_argument("--algorithms", nargs="*", default=["bolt-on-convex", "auto", "dp-sgd"], help="of these three")
    parser.add_argument("--sources", nargs="*", help="some of CSV, SQLite, Parquet, PostgreSQL")
    parser.add_argument("--memory", default="16MiB", help="memory of the spool's rows")
    parser.add_argument("--skip-memory", action="store_true", help="only the spool")
    options = parser.parse_args()
    dp = os.path.abspath(options.dp)
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own, whose memory would count as that of the commands.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            sources = pool.apply(write_all, (folder, options.rows))
        tables = {name: [data] for name, data in sources.items()}
        if options.postgres:
            write_postgres(options.postgres, folder)
            tables["PostgreSQL"] = [options.postgres, "--table", "dp_sources"]
        tables = {name: data for name, data in tables.items() if name in (options.sources or tables)}
        os.sync()
        algorithms = [
            ("bolt-on", "bolt-on-convex", []),
            ("auto, lines", "auto", ["--curves", "none"]),
            ("dp-sgd, Poisson batches", "dp-sgd", []),
        ]
        algorithms = [algorithm for algorithm in algorithms if algorithm[1] in options.algorithms]
        print(f"{options.rows} rows; wall s, CPU s, peak MiB")
        if options.postgres:
            read = ["psql", options.postgres, "-q", "-c", "copy dp_sources to stdout (format binary)"]
            show("PostgreSQL", "reading alone", "-", measured(read, folder))
        for name, data in tables.items():
            for title, algorithm, more in algorithms if not options.only_sums else []:
                rooms = [("spool", ["--memory", options.memory, "--spool", folder])]
                if not options.skip_memory:
                    rooms.insert(0, ("memory", ["--memory", "1TiB"]))
                for room, flags in rooms:
                    arguments = ["--data", *data, "--algorithm", algorithm] + more + flags
                    show(name, title, room, run(dp, folder, arguments))
        sums = {}
        if options.postgres:
            for connections in (1, 2):
                flags = ["--data", *tables["PostgreSQL"], f"--sums={connections}"]
                sums[f"PostgreSQL, {connections} connections"] = flags
        if options.runners:
            file = os.path.join(folder, "rows.parquet")
            queries = {
                "duckdb": f"SELECT * FROM read_parquet('{file}')",
                "clickhouse": f"SELECT * FROM file('{file}')",
                "spark spark.master=local[2]": f"SELECT * FROM parquet.`{file}`",
            }
            for engine, query in queries.items():
                engine, *settings = engine.split()
                command = " ".join([sys.executable, os.path.join(RUNNERS, f"run_{engine}.py"), *settings])
                sums[engine] = ["--format", "runner", "--data", command, "--query", query, "--sums"]
        for name, flags in sums.items():
            flags += ["--algorithm", "dp-gd", "--passes"]
            seconds = [run(dp, folder, flags + [passes])[0] for passes in ("2", "6")]
            step = (seconds[1] - seconds[0]) / 4
            print(f"sums, {name}: {step:.2f} s a step, {step / options.rows * 1e6:.2f} us a row and step; "
                  f"{seconds[0] - 3 * step:.1f} s before the first", flush=True)
        if options.postgres:
            subprocess.run(["psql", options.postgres, "-q", "-c", "drop table dp_sources"], check=True)


if __name__ == "__main__":
    main()
