"""A runner for `dp train --sums`: sums over the tables of a Spark cluster. Arguments are settings of Spark; others come from
SPARK_HOME, SPARK_CONF_DIR and PYSPARK_SUBMIT_ARGS, as for every program of PySpark.

dp train --format runner --data 'python run_spark.py spark.master=spark://host:7077' --table clinic.visits --sums ...
dp train --format runner --data 'python run_spark.py' --query 'SELECT * FROM parquet.`/lake/visits`' --sums ...
"""
import json, os, queue, sys, threading, traceback

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

questions = queue.Queue()


def read():
    for line in sys.stdin:
        questions.put(json.loads(line))
    os._exit(0)  # the end of input ends a statement too: Spark cancels the jobs of a program that is gone


threading.Thread(target=read, daemon=True).start()
builder = SparkSession.builder.appName("dp").config("spark.ui.showConsoleProgress", "false")
builder = builder.config("spark.sql.codegen.hugeMethodLimit", 8000)  # Java compiles no larger methods
for setting in sys.argv[1:]:
    builder = builder.config(*setting.split("=", 1))
spark = builder.getOrCreate()
print(json.dumps({"dialect": "spark"}), flush=True)
while True:
    question = questions.get()
    try:
        row = spark.sql(question["sql"]).first()
        answer = {"row": [None if cell is None else str(cell) for cell in row]}
    except Exception as error:
        traceback.print_exc()
        answer = {"error": type(error).__name__, "retriable": isinstance(error, Py4JError)}
    print(json.dumps({"id": question["id"], **answer}), flush=True)
