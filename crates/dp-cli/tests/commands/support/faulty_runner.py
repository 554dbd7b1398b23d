"""A runner over `people.csv` in SQLite that does `fault` at statement `at`; if `once`, not again after it was started anew."""
import csv
import json
import os
import sqlite3
import sys
import time

fault, at, once = (sys.argv[1:] + ["none", "0", "always"])[:3]
had_fault = os.path.exists("had_fault")
if os.environ.get("RUNNER_PIDS"):
    with open("pids", "a") as pids:
        pids.write(f"{os.getpid()}\n")
database = sqlite3.connect(":memory:")
database.execute("SELECT sqrt(1), exp(1)")
database.execute("CREATE TABLE people (age REAL, hours REAL, trade TEXT, earns TEXT)")
lines = csv.reader(open("people.csv"))
next(lines)
for line in lines:
    database.execute("INSERT INTO people VALUES (?, ?, ?, ?)", [cell or None for cell in line])
if fault == "no-greeting":
    time.sleep(600)
print({"greeting": "hello", "dialect": '{"dialect": "cobol"}'}.get(fault, '{"dialect": "sqlite"}'), flush=True)
for number, line in enumerate(sys.stdin, 1):
    question = json.loads(line)
    with open("statements", "a") as statements:
        statements.write(question["sql"] + "\n")
    try:
        row = list(database.execute(question["sql"]).fetchone())
    except sqlite3.Error as error:
        print(json.dumps({"id": question["id"], "error": type(error).__name__}), flush=True)
        continue
    answer = {"id": question["id"], "row": [None if cell is None else str(cell) for cell in row]}
    if number >= int(at) and not (once == "once" and had_fault):
        open("had_fault", "w").close()
        if fault == "dies":
            os._exit(1)
        if fault in ("hangs", "deaf"):
            if fault == "deaf":
                import signal
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
        if fault == "rubbish":
            print("30 rows in set: 17, SECRET", flush=True)
        if fault == "endless":
            while True:
                print(line, end="")
        if fault == "twice":
            print(json.dumps(answer), flush=True)
        if fault == "count":
            answer["row"][0] = str(int(row[0]) - 1)
        if fault == "other" and number % 2:
            answer["row"][1] = str(int(row[1]) + 1)
        if fault == "short":
            answer["row"].pop()
        if fault == "fraction":
            answer["row"][1] = 1.5
        if fault == "large":
            answer["row"][1] = str(2**62)
        if fault in ("passes", "error"):
            answer = {"id": question["id"], "error": "Timeout", "retriable": fault == "passes"}
        if fault == "quotes":
            answer = {"id": question["id"], "error": "cannot cast 'SECRET' to DOUBLE"}
        if fault == "both":
            answer["error"] = "SECRET"
    print(json.dumps(answer), flush=True)
