//! What sums and predictions ask of every engine: PostgreSQL, SQLite, DuckDB, ClickHouse and Spark.

use dp_data::encode::{FeatureMap, RowNorm};
use dp_data::sql::Dialect;
use dp_data::sums::Slope;
use dp_data::sums::in_sql::GradientSql;
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
        [columns.d]\ntype = 'categorical'\ncategories = ['it''s', 'b', 'c']\non_unknown = 'neutral'\non_missing = 'category'\n"
        .replace("'it''s'", "\"it's\"");
    let labels = [
        "column = 'y'\npositive = 'yes'\nnegative = 'no'\nothers = 'neutral'\n",
        "column = 'y'\nclasses = ['p', 'q', 'r']\nothers = 'neutral'\n",
        "column = 'y'\ntype = 'numeric'\nmin = -5\nmax = 7\non_unreadable = 'neutral'\n",
    ];
    let slopes: [(usize, Slope); 6] = [
        (0, Slope::Logistic),
        (0, Slope::HuberSvm { h: 0.3 }),
        (1, Slope::Softmax { classes: 3 }),
        (2, Slope::Huber { h: 0.2 }),
        (2, Slope::LogCosh { h: 0.5 }),
        (2, Slope::ClippedResidual { most: 0.5 }),
    ];
    in_each_engine(|dialect, run| {
        for (label, slope) in slopes {
            let schema = format!("missing = ['']\n[label]\n{}on_missing = 'neutral'\n{columns}", labels[label]);
            let encoder = Encoder::new(&Schema::parse("s.toml", &schema).unwrap(), Encoding::UNIT_ROWS).unwrap();
            let sql = GradientSql::new(&encoder, dialect).unwrap();
            let (rows, weights, expected) = sql.known_answer(slope, 40).unwrap();
            let row = run(&sql.statement(slope, &weights, 40, &rows, None).unwrap()).remove(0);
            let cells: Vec<Option<&str>> = row.iter().map(Option::as_deref).collect();
            let found = sql.answer(&cells, weights.len(), 40).unwrap();
            sql.check_known(&expected, &found)
                .unwrap_or_else(|error| panic!("{dialect:?} {slope:?}: {error}: {expected:?} {found:?}"));
            for j in 0..weights.len() {
                let mut wrong = found.clone();
                wrong.steps[j] += 1 << 25;
                assert!(sql.check_known(&expected, &wrong).is_err());
            }
        }
    });
}

/// Contributions of single records, those at the ends of ranges among them, as each engine computes them: no longer than 2^bits, here of
/// as many digits as a double has, so that cutting hides no rounding.
#[test]
fn no_record_contributes_more_than_its_bound() {
    const BITS: u32 = 52;
    let schema = "missing = ['']\n[label]\ncolumn = 'y'\npositive = 'yes'\nnegative = 'no'\nothers = 'neutral'\non_missing = 'neutral'\n\
        [columns.a]\ntype = 'numeric'\nmin = 18\nmax = 80\non_missing = 'neutral'\non_unreadable = 'neutral'\n\
        [columns.b]\ntype = 'numeric'\nmin = 0\nmax = 70\non_missing = { value = 30 }\non_unreadable = 'neutral'\n\
        [columns.c]\ntype = 'categorical'\ncategories = ['p', 'q', 'r']\non_missing = 'category'\non_unknown = 'neutral'\n";
    let classes = schema.replace("positive = 'yes'\nnegative = 'no'", "classes = ['yes', 'no', 'so']");
    let of = |text: &str, encoding| Encoder::new(&Schema::parse("s.toml", text).unwrap(), encoding).unwrap();
    let cases = [
        (of(schema, Encoding::UNIT_ROWS), Slope::Logistic),
        (of(schema, Encoding::unit_scale(RowNorm::Clip)), Slope::HuberSvm { h: 0.0 }),
        (of(schema, Encoding::UNIT_ROWS.with_map(FeatureMap::curves(5))), Slope::Logistic),
        (of(schema, Encoding::UNIT_ROWS), Slope::ClippedResidual { most: 0.5 }),
        (of(&classes, Encoding::UNIT_ROWS), Slope::Softmax { classes: 3 }),
    ];
    in_each_engine(|dialect, run| {
        let row = |i: u32| {
            let a = [18.0, 80.0, 18.0 + f64::from(i) * 0.21, 1e9][i as usize % 4];
            let b = [0.0, 70.0, f64::from(i) * 0.23][i as usize / 4 % 3];
            let c = ["p", "q", "r", "s"][i as usize / 12 % 4];
            let y = ["no", "yes", "so", "no"][i as usize / 48 % 4];
            let number = |x| dialect.number(x);
            format!("SELECT {} AS a, {} AS b, {} AS c, {} AS y", number(a), number(b), dialect.text(c), dialect.text(y))
        };
        let rows = (0..240).map(row).collect::<Vec<_>>().join(" UNION ALL ");
        for (encoder, slope) in &cases {
            let sql = GradientSql::new(encoder, dialect).unwrap();
            // Predictions of any size, so that some slopes are as long as they can be.
            let weights: Vec<f64> =
                (0..encoder.dim() * slope.outputs()).map(|j| [-1e5, 3e4, 2e4, -7e4, 1e4][j % 5]).collect();
            let statement = sql.statement(*slope, &weights, BITS, &format!("({rows}) AS t"), None).unwrap();
            // Without the sums, each record's part is a row.
            let statement = statement.replace("count(*)", "1").replace("sum(", "(");
            // The probabilities of classes are off by their rounding, which the sensitivity of their loss covers.
            let (slack, norm) = match slope {
                Slope::Softmax { .. } => (1.0 + 1e-14, 2f64.sqrt()),
                slope => (1.0, slope.largest()),
            };
            let (mut longest, bound, mut counted) = (0.0f64, norm * 2f64.powi(BITS as i32), 0);
            for row in run(&statement) {
                let cells: Vec<Option<&str>> = row.iter().map(Option::as_deref).collect();
                let sums = sql.answer(&cells, weights.len(), BITS).unwrap();
                let square: i128 = sums.steps.iter().map(|&step| i128::from(step) * i128::from(step)).sum();
                counted += usize::from(square > 0);
                // Rounding the square to a double matters only where there is slack.
                let is_within = match slack == 1.0 {
                    true => square <= (bound as i128) * (bound as i128),
                    false => (square as f64).sqrt() <= bound * slack,
                };
                assert!(is_within, "{dialect:?} {slope:?}: {square}");
                longest = longest.max((square as f64).sqrt() / bound);
            }
            assert!(counted > 40, "{dialect:?} {slope:?}: {counted} records count");
            assert!(longest > 1.0 - 1e-13, "{dialect:?} {slope:?}: no contribution is near its bound: {longest}");
        }
    });
}
