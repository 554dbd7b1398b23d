"""A runner for `dp train --sums`: sums over the tables of a DuckDB database, or over files that DuckDB reads.

dp train --format runner --data 'python run_duckdb.py visits.duckdb' --table visits --sums ...
dp train --format runner --data 'python run_duckdb.py' --query "FROM read_parquet('visits/*.parquet')" --sums ...
"""
import json, os, queue, sys, threading, traceback

import duckdb

connection = duckdb.connect(sys.argv[1], read_only=True) if len(sys.argv) > 1 else duckdb.connect()
questions = queue.Queue()


def read():
    for line in sys.stdin:
        questions.put(json.loads(line))
    os._exit(0)  # the end of input ends a statement too


threading.Thread(target=read, daemon=True).start()
print(json.dumps({"dialect": "duckdb"}), flush=True)
while True:
    question = questions.get()
    try:
        row = connection.execute(question["sql"]).fetchone()
        answer = {"row": [None if cell is None else str(cell) for cell in row]}
    except Exception as error:
        traceback.print_exc()
        answer = {"error": type(error).__name__, "retriable": isinstance(error, duckdb.IOException)}
    print(json.dumps({"id": question["id"], **answer}), flush=True)
