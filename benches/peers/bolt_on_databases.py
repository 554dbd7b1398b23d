#!/usr/bin/env python3
"""Figures 2 and 5 of Wu et al. (SIGMOD 2017) with rows from databases: what privacy costs in time, by size, batch and source.

    cargo build --release -p dp-cli
    python3 benches/peers/bolt_on_databases.py target/release/dp --postgres postgres://HOST/DATABASE --rows 1000000 4000000

Each line is one training of one pass: the rows are read out of the database, kept in memory or in a temporary file, and trained on.
`ratio` is its time over that of the same training without privacy. The last line is the paper's own shape, SGD as an aggregate in the
server (PL/pgSQL, one pass over 20,000 rows of 50 numbers): microseconds a row.

The table is that of `sources.py`.
"""

import argparse
import multiprocessing
import os
import subprocess
import tempfile

import sources

SGD = ["--lambda", "0.0001", "--passes", "1"]
ALGORITHMS = [
    ("no privacy", ["--algorithm", "non-private"] + SGD),
    ("bolt-on", ["--algorithm", "bolt-on-strongly-convex"] + SGD),
    ("scs13", ["--algorithm", "scs13"] + SGD),
    ("bst14", ["--algorithm", "bst14-strongly-convex"] + SGD),
]

AGGREGATE = """
create or replace function dp_sgd_step(w float8[], x float8[], y float8) returns float8[] language plpgsql immutable as $$
declare m float8 := 0; g float8; j int;
begin
  for j in 1 .. array_length(x, 1) loop m := m + w[j] * x[j]; end loop;
  g := 0.1 * y / (1 + exp(least(greatest(y * m, -700), 700)));
  for j in 1 .. array_length(x, 1) loop w[j] := w[j] * 0.99999 + g * x[j]; end loop;
  return w;
end $$;
drop aggregate if exists dp_sgd(float8[], float8);
create aggregate dp_sgd(float8[], float8) (sfunc = dp_sgd_step, stype = float8[], initcond = '{ZEROS}');
create temporary table dp_part as
  select array[{COLUMNS}] x, case y when 'yes' then 1.0 else -1.0 end y from dp_sources limit 20000;
"""


def in_server(address):
    """Returns microseconds a row of SGD as an aggregate."""
    columns = ", ".join([f"x{j}" for j in range(sources.COLUMNS)] + ["1"] * 10)
    zeros = "{" + ",".join(["0"] * (sources.COLUMNS + 10)) + "}"
    script = AGGREGATE.replace("{ZEROS}", zeros).replace("{COLUMNS}", columns)
    script += "\\timing on\nselect (dp_sgd(x, y))[1] from dp_part;\n\\timing off\n"
    script += "drop aggregate dp_sgd(float8[], float8); drop function dp_sgd_step(float8[], float8[], float8);"
    out = subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", address], input=script, text=True, check=True,
                         capture_output=True).stdout
    milliseconds = next(line.split()[1] for line in out.splitlines() if line.startswith("Time:"))
    return float(milliseconds.replace(",", "")) * 1000 / 20_000


def run(dp, folder, flags):
    """Returns seconds."""
    budget = [] if "non-private" in flags else ["--epsilon", "1", "--delta", "1e-8"]
    command = [dp, "train", "--schema", "schema.toml", "--out", "model.json", "--force", "--quiet"]
    return sources.measured(command + budget + flags, folder)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dp")
    parser.add_argument("--postgres", help="address of a database for the rows")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 50])
    parser.add_argument("--memory", default="64MiB", help="memory of the rows that go to a temporary file")
    options = parser.parse_args()
    dp = os.path.abspath(options.dp)
    print(f"{'source':<11} {'rows':>9} {'room':<7} {'batch':>5} {'algorithm':<11} {'seconds':>8} {'ratio':>6}")
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                files = pool.apply(sources.write_all, (folder, rows))
            tables = {"SQLite": [files["SQLite"]]}
            if options.postgres:
                sources.write_postgres(options.postgres, folder)
                tables["PostgreSQL"] = [options.postgres, "--table", "dp_sources"]
            os.remove(os.path.join(folder, "rows.csv"))
            for source, data in tables.items():
                for room, memory in [("memory", "1TiB"), ("spool", options.memory)]:
                    for batch in options.batches:
                        alone = None
                        for name, flags in ALGORITHMS:
                            more = ["--data", *data, "--memory", memory, "--spool", folder, "--batch-size", str(batch)]
                            seconds = run(dp, folder, more + flags)
                            alone = alone or seconds
                            print(f"{source:<11} {rows:>9} {room:<7} {batch:>5} {name:<11} {seconds:8.2f} "
                                  f"{seconds / alone:6.2f}", flush=True)
            if options.postgres:
                print(f"SGD as an aggregate in the server: {in_server(options.postgres):.1f} us a row", flush=True)
                subprocess.run(["psql", options.postgres, "-q", "-c", "drop table dp_sources"], check=True)


if __name__ == "__main__":
    main()
