//! Predictions by a query in a database: those of `dp predict`.

use std::process::Command;

use crate::support::{Dice, Workplace, has, say_skipped};

const ROWS: usize = 400;

/// People with missing cells, values outside their range and unknown categories; three labels.
fn people() -> Vec<[String; 10]> {
    let mut dice = Dice(9);
    let mut rows = Vec::new();
    for id in 0..ROWS {
        let mut some = |missing: u64, text: String| if dice.below(missing) == 0 { String::new() } else { text };
        let age = some(20, (id * 7 % 130).to_string());
        let income = some(20, format!("{}", (id * id % 9973) as f64 * 1.37 - 50.0));
        let dp_0 = some(25, format!("{:.3}", ((id * 31 % 997) as f64 - 300.0) * 6.1));
        let flag = some(30, ["0", "1", "0.25"][id % 3].to_owned());
        let trade = some(15, ["baker", "it's a \\ \"trade\"", "smith", "fisher", "N/A"][id * 13 % 5].to_owned());
        let ward = some(30, (1 + id % 4).to_string());
        let class = ["low", "middle", "hi'gh"][(dice.below(3) as usize + id % 2) % 3];
        let price = dice.unit() * 300.0;
        let earns = if dice.unit() < 0.4 + (id % 3) as f64 / 6.0 { "yes" } else { "no" };
        rows.push([
            id.to_string(),
            age,
            income,
            dp_0,
            flag,
            trade,
            ward,
            class.to_owned(),
            format!("{price:.2}"),
            earns.to_owned(),
        ]);
    }
    rows
}

const NAMES: [&str; 10] = ["id", "age", "in come", "dp_0", "flag", "trade", "ward", "class", "price", "earns"];

const COLUMNS: &str = "[columns.id]\ntype = 'drop'\n[columns.age]\ntype = 'numeric'\nmin = 0\nmax = 120\non_missing = 'neutral'\n\
    [columns.'in come']\ntype = 'numeric'\nmin = 0\nmax = 10000\nlog1p = true\non_missing = { value = 3000 }\n\
    [columns.dp_0]\ntype = 'numeric'\nmin = -1000\nmax = 4000\nscale = 'log'\non_missing = { value = 17.5 }\non_unreadable = 'neutral'\n\
    [columns.flag]\ntype = 'indicator'\non_missing = { value = 1 }\n\
    [columns.trade]\ntype = 'categorical'\ncategories = ['baker', \"it's a \\\\ \\\"trade\\\"\", 'smith', 'other']\non_unknown = 'other'\non_missing = 'category'\n\
    [columns.ward]\ntype = 'categorical'\ncategories = ['1', '2', '3']\non_unknown = 'neutral'\non_missing = { value = '2' }\n";

/// Three models: of two classes, of three and of a number, each with another encoding.
const MODELS: [(&str, &str); 3] = [
    (
        "[label]\ncolumn = 'earns'\npositive = 'yes'\nnegative = 'no'\n[columns.class]\ntype = 'drop'\n[columns.price]\ntype = 'drop'\n",
        "--algorithm bolt-on-convex --curves 3+pairs --threshold base-rate",
    ),
    (
        "[label]\ncolumn = 'class'\nclasses = ['low', 'middle', \"hi'gh\"]\n[columns.earns]\ntype = 'drop'\n[columns.price]\ntype = 'drop'\n",
        "--algorithm bolt-on-convex --loss softmax --scale unit --row-norm clip",
    ),
    (
        "[label]\ncolumn = 'price'\ntype = 'numeric'\nmin = 0\nmax = 300\n[columns.earns]\ntype = 'drop'\n[columns.class]\ntype = 'drop'\n",
        "--algorithm bolt-on-convex --curves 4 --coordinate by-range --scale unit",
    ),
];

/// The people in `people.csv`, and three models in `0.json`, `1.json` and `2.json`.
fn place(rows: &[[String; 10]]) -> Workplace {
    let place = Workplace::new();
    let quoted =
        |cell: &String| if cell.contains('"') { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.clone() };
    let lines = rows.iter().map(|row| row.iter().map(quoted).collect::<Vec<_>>().join(","));
    let text: Vec<String> = std::iter::once(NAMES.join(",")).chain(lines).collect();
    place.write("people.csv", text.join("\n") + "\n");
    for (i, (label, flags)) in MODELS.iter().enumerate() {
        place.write("s.toml", format!("missing = ['', 'N/A']\n{label}{COLUMNS}"));
        let train =
            format!("train --data people.csv --schema s.toml --epsilon 5 --delta 1e-6 --seed 3 --out {i}.json {flags}");
        place.dp(&train.split(' ').collect::<Vec<_>>()).ok();
    }
    place
}

/// Compares the rows of a query, in the order of `id`, with the lines of `dp predict`; cells are text, empty for NULL.
fn compare(place: &Workplace, model: usize, found: &[Vec<(String, String)>], what: &str) {
    let expected = place.dp(&["predict", "--model", &format!("{model}.json"), "--data", "people.csv"]).ok();
    let mut lines = expected.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let (mut scored, mut unscored) = (0, 0);
    for (number, line) in lines.enumerate() {
        // The cells of this model have no commas.
        for (name, cell) in header.iter().zip(line.split(',')) {
            let cell = if cell == "\"\"" { "" } else { cell };
            let sql = &found[number].iter().find(|(column, _)| *column == format!("dp_{name}")).unwrap().1;
            match (cell.parse::<f64>(), sql.parse::<f64>()) {
                (Ok(cell), Ok(sql)) => assert!(
                    (cell - sql).abs() <= 1e-12 * cell.abs().max(1.0),
                    "{what} {model} {name} line {number}: {cell} {sql}"
                ),
                _ => assert_eq!(cell, sql, "{what} {model} {name} line {number}"),
            }
            if cell.is_empty() { unscored += 1 } else { scored += 1 }
        }
    }
    assert!(found.len() == ROWS && scored > ROWS / 2 && unscored > ROWS / 20, "{what}: {scored} {unscored}");
}

fn query(place: &Workplace, model: usize, dialect: &str) -> String {
    place.dp(&["predict", "--model", &format!("{model}.json"), "--sql", dialect, "--table", "people"]).ok()
}

#[cfg(unix)]
#[test]
fn postgresql_predicts_the_same() {
    use crate::support::postgres::Database;
    let Some(mut database) = Database::create() else { return };
    let place = place(&people());
    database.execute(
        "CREATE TABLE people (id int, age smallint, \"in come\" real, dp_0 numeric, flag float8, trade text, ward int, \
         class varchar, price float8, earns text)",
    );
    database.execute("ALTER TABLE people ALTER \"in come\" TYPE float8");
    let mut writer = database.client.copy_in("COPY people FROM STDIN (FORMAT csv, HEADER)").unwrap();
    std::io::Write::write_all(&mut writer, place.read("people.csv").as_bytes()).unwrap();
    writer.finish().unwrap();
    for model in 0..MODELS.len() {
        let query = format!("SELECT * FROM ({}) t ORDER BY id", query(&place, model, "postgres"));
        let rows = database.client.simple_query(&query).unwrap();
        let rows = rows.iter().filter_map(|message| match message {
            postgres::SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let rows: Vec<Vec<(String, String)>> = rows
            .map(|row| {
                let cell = |i: usize| row.get(i).unwrap_or_default().to_owned();
                row.columns().iter().enumerate().map(|(i, column)| (column.name().to_owned(), cell(i))).collect()
            })
            .collect();
        compare(&place, model, &rows, "postgres");
    }
    // A Boolean is an indicator, and NaN no number.
    database.execute("ALTER TABLE people ALTER flag TYPE boolean USING flag > 0.5; ALTER TABLE people ALTER dp_0 TYPE float8; UPDATE people SET dp_0 = 'NaN' WHERE id < 10");
    let counted = format!(
        "SELECT count(*) FILTER (WHERE dp_score IS NULL AND id < 10) FROM ({}) t",
        query(&place, 0, "postgres")
    );
    assert_eq!(database.number(&counted), 10);
}

/// Runs a query of a database with Python; prints each row as `name TAB cell` pairs with line ends in between.
const PYTHON: &str = r"
import sys
kind, table, query = sys.argv[1], sys.argv[2], open(sys.argv[3]).read()
query = f'SELECT * FROM ({query}) t ORDER BY id'
types = {'id': 'INTEGER', 'age': 'INTEGER', 'in come': 'DOUBLE', 'dp_0': 'DOUBLE', 'flag': 'DOUBLE', 'trade': 'VARCHAR', 'ward': 'DOUBLE', 'class': 'VARCHAR', 'price': 'DOUBLE', 'earns': 'VARCHAR'}
if kind == 'duckdb':
    import duckdb
    duckdb.sql(f'CREATE TABLE people AS SELECT * FROM read_csv($${table}$$, columns = {types}, header = true)')
    result = duckdb.sql(query)
    names, rows = result.columns, result.fetchall()
else:
    import sqlite3, csv
    database = sqlite3.connect(':memory:')
    try:
        database.execute('SELECT sqrt(1), ln(1), cos(1)')
    except sqlite3.OperationalError:
        sys.exit(77)
    affinity = {'VARCHAR': 'TEXT', 'DOUBLE': 'REAL'}
    database.execute('CREATE TABLE people (' + ', '.join(f'`{n}` {affinity.get(t, t)}' for n, t in types.items()) + ')')
    lines = csv.reader(open(table, newline=''))
    next(lines)
    for line in lines:
        database.execute('INSERT INTO people VALUES (' + ','.join('?' * 10) + ')', [cell if cell != '' else None for cell in line])
    cursor = database.execute(query)
    names, rows = [column[0] for column in cursor.description], cursor.fetchall()
for row in rows:
    print('\n'.join(f'{name}\t' + ('' if cell is None else repr(cell) if isinstance(cell, float) else str(cell)) for name, cell in zip(names, row)), end='\n\n')
";

/// Compares with a database of Python; says so where it cannot be started.
fn compare_in_python(kind: &str) {
    let skipped = |why: &str| say_skipped(kind, why);
    let python = std::env::var("DP_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if !has(&python) {
        return skipped("there is no Python");
    }
    let rows = people();
    let place = place(&rows);
    place.write("run.py", PYTHON);
    for model in 0..MODELS.len() {
        place.write("q.sql", query(&place, model, kind));
        let run = Command::new(&python)
            .args(["run.py", kind, "people.csv", "q.sql"])
            .current_dir(place.path(""))
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&run.stderr);
        if error.contains("ModuleNotFoundError") || run.status.code() == Some(77) {
            return skipped("Python has no such module, or one without mathematical functions");
        }
        assert!(run.status.success(), "{error}");
        let text = String::from_utf8(run.stdout).unwrap();
        let pair = |line: &str| line.split_once('\t').map(|(name, cell)| (name.to_owned(), cell.to_owned())).unwrap();
        let found: Vec<Vec<(String, String)>> =
            text.trim_end_matches('\n').split("\n\n").map(|row| row.lines().map(pair).collect()).collect();
        compare(&place, model, &found, kind);
    }
}

#[test]
fn sqlite_predicts_the_same() {
    compare_in_python("sqlite");
}

#[test]
fn duckdb_predicts_the_same() {
    compare_in_python("duckdb");
}

#[test]
fn what_has_no_query_is_refused() {
    let place = place(&people());
    let run = |words: &str| place.dp(&words.split(' ').collect::<Vec<_>>());
    run("predict --model 0.json --sql postgres --table t --out q.sql").ok();
    assert!(place.read("q.sql").starts_with("SELECT dp_rows.*"));
    run("predict --model 0.json --sql postgres --table t --out q.sql").fails(1, "output.exists");
    let json = run("predict --model 0.json --sql sqlite --table t --json").json();
    assert!(json["sql"].as_str().unwrap().contains("FROM t AS dp_rows"));
    assert_eq!(run("predict --model 0.json --sql postgres").code, 2);
    assert_eq!(run("predict --model 0.json --sql postgres --table t --data people.csv").code, 2);
    assert_eq!(run("predict --model 0.json").code, 2);
    run("train --data people.csv --schema s.toml --epsilon 1 --project gaussian:3 --out p.json").ok();
    run("predict --model p.json --sql duckdb --table t").fails(3, "encoding.sql").says("projection");
}
