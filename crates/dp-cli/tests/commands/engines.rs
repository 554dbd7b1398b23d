//! What sums and predictions ask of every engine: PostgreSQL, SQLite, DuckDB, ClickHouse and Spark.

use dp_data::encode::{FeatureMap, RowNorm};
use dp_data::sql::Dialect;
use dp_data::sums::in_sql::SumSql;
use dp_data::sums::{Slope, SumKind, SumRequest};
use dp_data::{Encoder, Encoding, Schema};

use crate::support::engine::Engine;

/// The cells of a result.
type Cells = Vec<Vec<Option<String>>>;

/// Calls `test` with each engine that can be started here, and how to run a statement there.
fn in_each_engine(test: impl Fn(Dialect, &mut dyn FnMut(&str) -> Cells)) {
    for dialect in [Dialect::Sqlite, Dialect::DuckDb, Dialect::ClickHouse, Dialect::Spark] {
        let Some(mut engine) = Engine::of(dialect) else { continue };
        let mut run = |statement: &str| {
            engine.run(statement).into_iter().map(|row| row.into_iter().map(|(_, cell)| cell).collect()).collect()
        };
        test(dialect, &mut run);
    }
    #[cfg(unix)]
    if let Some(mut database) = crate::support::postgres::Database::create() {
        let mut run = |statement: &str| {
            let messages = database.client.simple_query(statement).unwrap();
            let rows = messages.iter().filter_map(|message| match message {
                postgres::SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            });
            rows.map(|row| (0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect()).collect()
        };
        test(Dialect::Postgres, &mut run);
    }
}

/// Engines give the integers that are known, for every slope; what is wrong with an answer is noticed.
#[test]
fn sums_are_those_that_are_known() {
    let columns = "[columns.'a \"b']\ntype = 'numeric'\nmin = -3\nmax = 50\non_missing = { value = 1 }\non_unreadable = 'neutral'\n\
        [columns.c]\ntype = 'numeric'\nmin = 0\nmax = 1e6\nlog1p = true\non_missing = 'neutral'\non_unreadable = 'neutral'\n\
        [columns.d]\ntype = 'categorical'\ncategories = ['it''s', 'b', 'c']\non_unknown = 'neutral'\non_missing = 'category'\n\
        [columns.e]\ntype = 'date'\nformat = '%d.%m.%Y'\nmin = 1940-01-01\nmax = 2030-12-31\non_missing = 'neutral'\non_unreadable = 'neutral'\n\
        [columns.f]\ncolumn = 'g'\ntype = 'month'\nformat = '%Y-%m-%d %H:%M:%S'\non_missing = 'neutral'\non_unreadable = 'neutral'\n\
        [columns.h]\ncolumn = 'g'\ntype = 'hour'\nformat = '%Y-%m-%d %H:%M:%S'\non_missing = { value = 3 }\non_unreadable = 'neutral'\n"
        .replace("'it''s'", "\"it's\"");
    let labels = [
        "column = 'y'\npositive = 'yes'\nnegative = 'no'\nothers = 'neutral'\n",
        "column = 'y'\nclasses = ['p', 'q', 'r']\nothers = 'neutral'\n",
        "column = 'y'\ntype = 'numeric'\nmin = -5\nmax = 7\non_unreadable = 'neutral'\n",
    ];
    let kinds = [
        (0, SumKind::Gradients(Slope::Logistic)),
        (0, SumKind::Gradients(Slope::HuberSvm { h: 0.3 })),
        (1, SumKind::Gradients(Slope::Softmax { classes: 3 })),
        (2, SumKind::Gradients(Slope::Huber { h: 0.2 })),
        (2, SumKind::Gradients(Slope::LogCosh { h: 0.5 })),
        (2, SumKind::Gradients(Slope::ClippedResidual { most: 0.5 })),
        (0, SumKind::Moments { outputs: 1 }),
        (1, SumKind::Moments { outputs: 3 }),
        (2, SumKind::Moments { outputs: 1 }),
        (0, SumKind::Targets),
        (2, SumKind::Targets),
    ];
    in_each_engine(|dialect, run| {
        for (label, kind) in kinds {
            let bits = if matches!(kind, SumKind::Moments { .. }) { 20 } else { 40 };
            let schema = format!("missing = ['']\n[label]\n{}on_missing = 'neutral'\n{columns}", labels[label]);
            let encoder = Encoder::new(&Schema::parse("s.toml", &schema).unwrap(), Encoding::UNIT_ROWS).unwrap();
            let sql = SumSql::new(&encoder, dialect).unwrap();
            let known = sql.known(kind, bits).unwrap();
            let row = run(&known.statement).remove(0);
            let cells: Vec<Option<&str>> = row.iter().map(Option::as_deref).collect();
            let found = sql.answer(kind, &cells).unwrap();
            known.check(&found).unwrap_or_else(|error| panic!("{dialect:?} {kind:?}: {error}: {known:?} {found:?}"));
            assert!(sql.answer(kind, &cells[1..]).is_err() && found.steps.iter().any(|&step| step != 0));
            for j in 0..found.steps.len() {
                let mut wrong = found.clone();
                wrong.steps[j] += 1 << (bits + 10).min(40);
                assert!(known.check(&wrong).is_err());
            }
        }
    });
}

/// Contributions of single records, those at the ends of ranges among them, as each engine computes them: no longer than 2^bits, so that the norm of a row of moments is at most 2^bits too.
#[test]
fn no_record_contributes_more_than_its_bound() {
    let schema = "missing = ['']\n[label]\ncolumn = 'y'\npositive = 'yes'\nnegative = 'no'\nothers = 'neutral'\non_missing = 'neutral'\n\
        [columns.a]\ntype = 'numeric'\nmin = 18\nmax = 80\non_missing = 'neutral'\non_unreadable = 'neutral'\n\
        [columns.b]\ntype = 'numeric'\nmin = 0\nmax = 70\non_missing = { value = 30 }\non_unreadable = 'neutral'\n\
        [columns.c]\ntype = 'categorical'\ncategories = ['p', 'q', 'r']\non_missing = 'category'\non_unknown = 'neutral'\n";
    let classes = schema.replace("positive = 'yes'\nnegative = 'no'", "classes = ['yes', 'no', 'so']");
    let of = |text: &str, encoding| Encoder::new(&Schema::parse("s.toml", text).unwrap(), encoding).unwrap();
    let cases = [
        (of(schema, Encoding::UNIT_ROWS), SumKind::Gradients(Slope::Logistic)),
        (of(schema, Encoding::unit_scale(RowNorm::Clip)), SumKind::Gradients(Slope::HuberSvm { h: 0.0 })),
        (of(schema, Encoding::UNIT_ROWS.with_map(FeatureMap::curves(5))), SumKind::Gradients(Slope::Logistic)),
        (of(schema, Encoding::UNIT_ROWS), SumKind::Gradients(Slope::ClippedResidual { most: 0.5 })),
        (of(&classes, Encoding::UNIT_ROWS), SumKind::Gradients(Slope::Softmax { classes: 3 })),
        (of(schema, Encoding::UNIT_ROWS), SumKind::Moments { outputs: 1 }),
        (of(schema, Encoding::unit_scale(RowNorm::Clip)), SumKind::Moments { outputs: 1 }),
        (of(&classes, Encoding::UNIT_ROWS), SumKind::Moments { outputs: 3 }),
        (of(schema, Encoding::UNIT_ROWS), SumKind::Targets),
    ];
    in_each_engine(|dialect, run| {
        let cells = |i: u32| {
            let a = [18.0, 80.0, 18.0 + f64::from(i) * 0.21, 1e9][i as usize % 4];
            let b = [0.0, 70.0, f64::from(i) * 0.23][i as usize / 4 % 3];
            let c = ["p", "q", "r", "s"][i as usize / 12 % 4];
            let y = ["no", "yes", "so", "no"][i as usize / 48 % 4];
            let number = |x| dialect.number(x);
            [number(a), number(b), dialect.text(c), dialect.text(y)]
        };
        let list = |row: fn([String; 4]) -> String| (0..240).map(|i| row(cells(i))).collect::<Vec<_>>();
        // ClickHouse and Spark take seconds to plan 240 queries.
        let rows = match dialect {
            Dialect::ClickHouse => {
                let rows = list(|cells| format!("({})", cells.join(", "))).join(", ");
                format!("SELECT * FROM values('a Float64, b Float64, c String, y String', {rows})")
            }
            Dialect::Spark => {
                let rows = list(|[a, b, c, y]| format!("struct({a} AS a, {b} AS b, {c} AS c, {y} AS y)"));
                format!("SELECT inline(array({}))", rows.join(", "))
            }
            _ => list(|[a, b, c, y]| format!("SELECT {a} AS a, {b} AS b, {c} AS c, {y} AS y")).join(" UNION ALL "),
        };
        for (encoder, kind) in &cases {
            let sql = SumSql::new(encoder, dialect).unwrap();
            let outputs = if let SumKind::Gradients(slope) = kind { slope.outputs() } else { 0 };
            // Predictions of any size, so that some slopes are as long as they can be.
            let weights: Vec<f64> = (0..encoder.dim() * outputs).map(|j| [-1e5, 3e4, 2e4, -7e4, 1e4][j % 5]).collect();
            // As many digits as a double has, so that cutting hides no rounding; products of 64 bits hold 31 of each factor.
            let bits = if matches!(kind, SumKind::Moments { .. }) { 31 } else { 52 };
            let request = SumRequest { kind: *kind, weights: &weights, bits };
            let statement = sql.statement(&request, &format!("({rows}) AS t"), None).unwrap();
            // Without the sums, each record's part is a row.
            let statement = statement.replace("count(*)", "1").replace("sum(", "(");
            let (mut longest, mut counted) = (0.0f64, 0);
            for row in run(&statement) {
                let cells: Vec<Option<&str>> = row.iter().map(Option::as_deref).collect();
                let steps = sql.answer(*kind, &cells).unwrap().steps;
                let squares = steps.iter().map(|&step| i128::from(step) * i128::from(step));
                let square: i128 = match kind {
                    // A product of two entries of a row stands for two numbers of x xᵀ.
                    SumKind::Moments { outputs } => {
                        let (dim, mut squares) = (encoder.dim(), squares);
                        let row =
                            |i: usize| (0..dim - i).map(|j| 1 + i128::from(j > 0)).chain(vec![1; *outputs as usize]);
                        (0..dim).flat_map(row).map(|times| times * squares.next().unwrap()).sum()
                    }
                    // The target, and one record.
                    SumKind::Targets => {
                        assert!(
                            matches!(steps[1], 0 | 1) && (steps[1] == 1 || steps[0] == 0),
                            "{dialect:?}: {steps:?}"
                        );
                        squares.take(1).sum()
                    }
                    _ => squares.sum(),
                };
                counted += usize::from(square > 0);
                let bound = match kind {
                    // The probabilities of classes are off by their rounding, which the sensitivity of their loss covers.
                    SumKind::Gradients(Slope::Softmax { .. }) => 2.0 * (1.0 + 2e-14) * 4f64.powi(bits as i32),
                    SumKind::Gradients(slope) => slope.largest().powi(2) * 4f64.powi(bits as i32),
                    // ‖x‖ √(‖x‖² + ‖t‖²)
                    SumKind::Moments { .. } => 2.0 * 16f64.powi(bits as i32),
                    _ => 4f64.powi(bits as i32),
                };
                assert!(square <= bound as i128, "{dialect:?} {kind:?}: {square}");
                longest = longest.max((square as f64 / bound).sqrt());
            }
            assert!(counted > 40, "{dialect:?} {kind:?}: {counted} records count");
            let near = match kind {
                SumKind::Moments { outputs: 1 } => 1e-8,
                // A class is a vector of norm below 1.
                SumKind::Moments { .. } => 0.1,
                _ => 1e-13,
            };
            assert!(longest > 1.0 - near, "{dialect:?} {kind:?}: no contribution is near its bound: {longest}");
        }
    });
}

/// A text in a column of numbers ends no statement, which would tell of its record; PostgreSQL's columns of text are refused before.
#[test]
fn texts_among_numbers_count_for_nothing() {
    let schema = "missing = ['']\n[label]\ncolumn = 'y'\npositive = 'yes'\nnegative = 'no'\nothers = 'neutral'\non_missing = 'neutral'\n\
        [columns.a]\ntype = 'numeric'\nmin = 0\nmax = 9\non_missing = 'neutral'\non_unreadable = 'neutral'\n";
    let encoder = Encoder::new(&Schema::parse("s.toml", schema).unwrap(), Encoding::UNIT_ROWS).unwrap();
    in_each_engine(|dialect, run| {
        if dialect == Dialect::Postgres {
            return;
        }
        let text = |text| dialect.text(text);
        let yes = text("yes");
        // No NULL: ClickHouse converts columns without it by other rules.
        let rows = [text("3"), text("no number")].map(|a| format!("SELECT {a} AS a, {yes} AS y")).join(" UNION ALL ");
        let sql = SumSql::new(&encoder, dialect).unwrap();
        let row = run(&sql.count(&format!("({rows}) AS t"))).remove(0);
        let cells: Vec<Option<&str>> = row.iter().map(Option::as_deref).collect();
        assert_eq!(sql.counted(&cells).unwrap(), (2, 1), "{dialect:?}");
    });
}
