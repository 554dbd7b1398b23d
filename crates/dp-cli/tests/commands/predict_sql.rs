//! Predictions by a query in a database: those of `dp predict`.

use dp_data::sql::Dialect;

use crate::support::engine::Engine;
use crate::support::{Dice, Workplace};

const ROWS: usize = 400;

/// People with missing cells, values outside their range and unknown categories; three labels.
fn people() -> Vec<[String; 12]> {
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
        let born = match id % 37 {
            0 => "2199-12-31".to_owned(),
            _ => dp_data::schema::date_text((id * 97) as f64 - 15_000.0),
        };
        let day = dp_data::schema::date_text((id * 61 % 20_000) as f64);
        let seen = format!("{}.{}.{} {:02}:{:02}", &day[8..], &day[5..7], &day[..4], id % 24, id * 7 % 60);
        let (born, seen) = (some(30, born), some(30, seen));
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
            born,
            seen,
        ]);
    }
    rows
}

const NAMES: [&str; 12] =
    ["id", "age", "in come", "dp_0", "flag", "trade", "ward", "class", "price", "earns", "born", "last seen"];

const COLUMNS: &str = "[columns.id]\ntype = 'drop'\n[columns.age]\ntype = 'numeric'\nmin = 0\nmax = 120\non_missing = 'neutral'\n\
    [columns.'in come']\ntype = 'numeric'\nmin = 0\nmax = 10000\nlog1p = true\non_missing = { value = 3000 }\n\
    [columns.dp_0]\ntype = 'numeric'\nmin = -1000\nmax = 4000\nscale = 'log'\non_missing = { value = 17.5 }\non_unreadable = 'neutral'\n\
    [columns.flag]\ntype = 'indicator'\non_missing = { value = 1 }\n\
    [columns.trade]\ntype = 'categorical'\ncategories = ['baker', \"it's a \\\\ \\\"trade\\\"\", 'smith', 'other']\non_unknown = 'other'\non_missing = 'category'\n\
    [columns.ward]\ntype = 'categorical'\ncategories = ['1', '2', '3']\non_unknown = 'neutral'\non_missing = { value = '2' }\n\
    [columns.born]\ntype = 'date'\nformat = '%Y-%m-%d'\nmin = 1940-01-01\nmax = 2020-12-31\nmissing = ['', '2199-12-31']\non_missing = { value = 1980-01-01 }\n\
    [columns.seen]\ncolumn = 'last seen'\ntype = 'date'\nformat = '%d.%m.%Y %H:%M'\nmin = 1980-01-01\nmax = 2020-12-31\non_missing = 'neutral'\n\
    [columns.'of week']\ncolumn = 'last seen'\ntype = 'weekday'\nformat = '%d.%m.%Y %H:%M'\non_missing = 'neutral'\n\
    [columns.month]\ncolumn = 'last seen'\ntype = 'month'\nformat = '%d.%m.%Y %H:%M'\non_missing = { value = 'Feb' }\n\
    [columns.hour]\ncolumn = 'last seen'\ntype = 'hour'\nformat = '%d.%m.%Y %H:%M'\non_missing = 'neutral'\n";

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
fn place(rows: &[[String; 12]]) -> Workplace {
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
         class varchar, price float8, earns text, born date, \"last seen\" text)",
    );
    database.execute("ALTER TABLE people ALTER \"in come\" TYPE float8");
    let mut writer = database.client.copy_in("COPY people FROM STDIN (FORMAT csv, HEADER)").unwrap();
    std::io::Write::write_all(&mut writer, place.read("people.csv").as_bytes()).unwrap();
    writer.finish().unwrap();
    // Zeros that follow from the type of a decimal are no part of its text.
    database.execute(
        "CREATE DOMAIN rank AS numeric(6, 2); CREATE DOMAIN ranks AS rank; ALTER TABLE people ALTER ward TYPE ranks",
    );
    // In time zones of its own and of the session, those of UTC count.
    database.execute(
        "SET TIME ZONE 'Asia/Tokyo'; ALTER TABLE people ALTER \"last seen\" TYPE timestamptz \
         USING to_timestamp(\"last seen\" || ' +00', 'DD.MM.YYYY HH24:MI TZH')",
    );
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
    // A marker that is a day is the text of no time, as in `dp predict`: midnight of that day is clamped to the range.
    let total = format!(
        "SELECT CAST(sum(dp_score) * 1e9 AS bigint) FROM ({}) t WHERE id % 37 = 0",
        query(&place, 0, "postgres")
    );
    let of_days = database.number(&total);
    database.execute("ALTER TABLE people ALTER born TYPE timestamp");
    let of_times = database.number(&total);
    database.execute("UPDATE people SET born = '2020-12-31' WHERE born = '2199-12-31'");
    assert_eq!(database.number(&total), of_times);
    assert_ne!(of_days, of_times);
    // Of a later year, it is not a day of any range.
    database.execute("UPDATE people SET born = date '20000-01-01' WHERE id >= 50 AND id < 60");
    let scored = format!("SELECT count(dp_score) FROM ({}) t WHERE id >= 50 AND id < 60", query(&place, 0, "postgres"));
    assert_eq!(database.number(&scored), 0);
    // A day without a time has no hour.
    database.execute("ALTER TABLE people ALTER \"last seen\" TYPE date");
    assert_eq!(database.number(&format!("SELECT count(dp_score) FROM ({}) t", query(&place, 0, "postgres"))), 0);
}

/// Compares with an engine that can be started here.
fn compare_in(dialect: Dialect) {
    let Some(mut engine) = Engine::of(dialect) else { return };
    let rows = people();
    let place = place(&rows);
    let kinds = ["int", "int", "float", "float", "float", "text", "int", "text", "float", "text", "day", "moment"];
    let mut columns: Vec<(&str, &str)> = NAMES.into_iter().zip(kinds).collect();
    let mut rows: Vec<Vec<String>> = rows.iter().map(|row| row.to_vec()).collect();
    // Where it renames columns of equal names, a table of earlier predictions is scored, and not read.
    if let Dialect::Sqlite | Dialect::DuckDb = dialect {
        columns.extend([("DP_SCORE", "float"), ("dp_class", "text"), ("dp_largest", "float")]);
        rows.iter_mut().for_each(|row| row.extend(["-5".to_owned(), "smith".to_owned(), "9".to_owned()]));
    }
    compare_tables(&mut engine, dialect, &place, &columns, &rows);
    // SQLite's columns hold values of any type.
    if dialect == Dialect::Sqlite {
        engine.run("DROP TABLE people");
        let columns: Vec<(&str, &str)> = columns.iter().map(|(name, _)| (*name, "text")).collect();
        compare_tables(&mut engine, dialect, &place, &columns, &rows);
    }
}

fn compare_tables(
    engine: &mut Engine,
    dialect: Dialect,
    place: &Workplace,
    columns: &[(&str, &str)],
    rows: &[Vec<String>],
) {
    engine.create("people", columns, rows);
    for model in 0..MODELS.len() {
        let query = format!("SELECT * FROM ({}) t ORDER BY CAST(id AS INTEGER)", query(place, model, dialect.id()));
        let found = engine
            .run(&query)
            .into_iter()
            .map(|row| row.into_iter().map(|(name, cell)| (name, cell.unwrap_or_default())).collect::<Vec<_>>());
        compare(place, model, &found.collect::<Vec<_>>(), dialect.id());
    }
}

#[test]
fn sqlite_predicts_the_same() {
    compare_in(Dialect::Sqlite);
}

#[test]
fn duckdb_predicts_the_same() {
    compare_in(Dialect::DuckDb);
}

#[test]
fn clickhouse_predicts_the_same() {
    compare_in(Dialect::ClickHouse);
}

#[test]
fn spark_predicts_the_same() {
    compare_in(Dialect::Spark);
}

#[test]
fn what_has_no_query_is_refused() {
    let place = place(&people());
    let run = |words: &str| place.dp(&words.split(' ').collect::<Vec<_>>());
    run("predict --model 0.json --sql postgres --table t --out q.sql").ok();
    assert!(place.read("q.sql").starts_with("SELECT CASE WHEN dp_score"));
    run("predict --model 0.json --sql postgres --table t --out q.sql").fails(1, "output.exists");
    let json = run("predict --model 0.json --sql sqlite --table t --json").json();
    assert!(json["sql"].as_str().unwrap().contains("FROM t AS dp_rows"));
    assert_eq!(run("predict --model 0.json --sql postgres").code, 2);
    assert_eq!(run("predict --model 0.json --sql postgres --table t --data people.csv").code, 2);
    assert_eq!(run("predict --model 0.json").code, 2);
    run("train --data people.csv --schema s.toml --epsilon 1 --project gaussian:3 --out p.json").ok();
    run("predict --model p.json --sql duckdb --table t").fails(3, "encoding.sql").says("projection");
}
