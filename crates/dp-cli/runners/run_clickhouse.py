"""A runner for `dp train --sums`: sums over the tables of a ClickHouse server, as the user of CLICKHOUSE_USER and
CLICKHOUSE_PASSWORD; or of chdb, where no address is named.

dp train --format runner --data 'python run_clickhouse.py https://host:8443' --table clinic.visits --sums ...
dp train --format runner --data 'python run_clickhouse.py' --query "SELECT * FROM file('visits/*.parquet')" --sums ...
"""
import json, os, queue, sys, threading, traceback
from urllib import parse, request

settings = {"max_query_size": 10**8, "max_ast_elements": 10**7, "max_expanded_ast_elements": 10**7, "use_query_cache": 0}
if len(sys.argv) > 1:
    settings.update(readonly=2, cancel_http_readonly_queries_on_client_close=1)
    names = {"X-ClickHouse-User": "CLICKHOUSE_USER", "X-ClickHouse-Key": "CLICKHOUSE_PASSWORD"}
    headers = {header: os.environ[name] for header, name in names.items() if name in os.environ}
    url = f"{sys.argv[1].rstrip('/')}/?{parse.urlencode(settings)}"
    ask = lambda sql: request.urlopen(request.Request(url, sql.encode(), headers)).read()
else:
    import chdb.session
    session = chdb.session.Session()
    [session.query(f"SET {name} = {value}") for name, value in settings.items()]
    ask = lambda sql: session.query(sql).bytes()
questions = queue.Queue()

def read():
    for line in sys.stdin:
        questions.put(json.loads(line))
    os._exit(0)  # the end of input ends a statement too

threading.Thread(target=read, daemon=True).start()
print(json.dumps({"dialect": "clickhouse"}), flush=True)
while True:
    question = questions.get()
    try:
        answer = {"row": json.loads(ask(question["sql"] + " FORMAT JSONCompact"))["data"][0]}
    except Exception as error:
        traceback.print_exc()
        answer = {"error": type(error).__name__, "retriable": isinstance(error, OSError)}
    print(json.dumps({"id": question["id"], **answer}), flush=True)
