"""Runs the statements of a test in an engine: one in JSON on each line of input, one answer in JSON on each line of output."""
import json
import sys

kind = sys.argv[1]
if kind == "duckdb":
    import duckdb

    connection = duckdb.connect()
elif kind == "sqlite":
    import sqlite3

    connection = sqlite3.connect(":memory:")
    connection.execute("SELECT sqrt(1), ln(1), cos(1)")
elif kind == "clickhouse":
    from chdb import dbapi

    connection = dbapi.connect(":memory:").cursor()
    for setting in ["max_query_size = 100000000", "max_ast_elements = 10000000", "max_expanded_ast_elements = 10000000"]:
        connection.execute(f"SET {setting}")
else:
    from pyspark.sql import SparkSession

    connection = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()


def run(statement):
    if kind == "spark":
        frame = connection.sql(statement)
        return frame.columns, frame.collect()
    result = connection.execute(statement)
    result = connection if kind == "clickhouse" else result
    names = [column[0] for column in result.description or []]
    return names, result.fetchall() if names else []


def text(cell):
    return cell if cell is None or isinstance(cell, str) else repr(cell)


print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    try:
        names, rows = run(json.loads(line))
        answer = {"names": names, "rows": [[text(cell) for cell in row] for row in rows]}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"[:4000]}
    print(json.dumps(answer), flush=True)
