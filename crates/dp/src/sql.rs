//! Models as SQL queries, which compute predictions in the database.

use dp_data::DataError;
use dp_data::sql::{Dialect, sum};

use crate::model::{Model, ModelKind};

/// Returns a query of the predictions of a model and of all columns of `table`.
///
/// `table` is inserted unchanged: a table, a view, or a query in parentheses. The columns of the predictions come first; if
/// `table` has columns of these names, PostgreSQL, Spark and ClickHouse refuse the query, and SQLite and DuckDB rename those of
/// the table. They are
///
/// | model | columns |
/// |---|---|
/// | two classes | `dp_score`, `dp_class`; for the logistic loss also `dp_probability` of the positive class |
/// | several classes | `dp_score:CLASS` for each, `dp_largest` of them, `dp_class`; for softmax also `dp_probability:CLASS` and `dp_total`, by which they are divided |
/// | a number | `dp_score`, `dp_prediction` |
///
/// They are NULL where `dp predict` gives no score or would refuse the record. They agree with it up to rounding if columns
/// hold what the schema says. In PostgreSQL a numeric column must have a numeric type: a text that is not a number ends the
/// query.
///
/// # Errors
/// `encoding.sql` for a model of libsvm files or images, with a projection or with Fourier features.
///
/// # Examples
/// ```no_run
/// use dp_data::sql::Dialect;
/// let file = dp::ModelFile::parse(&std::fs::read("model.json")?)?;
/// let query = dp::sql::query(&file.model, Dialect::Postgres, "ward.people")?;
/// println!("CREATE VIEW scored AS\n{query};");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn query(model: &Model, dialect: Dialect, table: &str) -> Result<String, DataError> {
    let row = model.encoder.in_sql(dialect)?;
    let weights = model.weights.chunks_exact(model.encoder.dim().max(1));
    let number = |value: f64| dialect.number(value);
    let (scores, last) = match &model.kind {
        ModelKind::LinearClassifier { classes } => {
            let (threshold, [positive, negative]) = (
                number(model.threshold.unwrap_or_default()),
                [&classes.positive, &classes.negative].map(|class| dialect.text(class)),
            );
            let class = format!(
                "CASE WHEN dp_score > {threshold} THEN {positive} WHEN dp_score <= {threshold} THEN {negative} END"
            );
            let mut last = vec![(class, "dp_class".to_owned())];
            if model.has_probabilities() {
                // PostgreSQL raises an error where the result would be infinite.
                let (least, most) = (number(-700.0), number(700.0));
                let negated = format!("CASE WHEN dp_score < {least} THEN {most} ELSE -dp_score END");
                last.push((format!("1 / (1 + exp({negated}))"), "dp_probability".to_owned()));
            }
            (vec!["dp_score".to_owned()], last)
        }
        ModelKind::LinearRegression { range } => {
            let share = "CASE WHEN dp_score < -1 THEN 0 WHEN dp_score > 1 THEN 1 ELSE 0.5 * dp_score + 0.5 END";
            let (min, max) = (number(range.min), number(range.max));
            let value = format!("(1 - {share}) * {min} + {share} * {max}");
            (vec!["dp_score".to_owned()], vec![(value, "dp_prediction".to_owned())])
        }
        ModelKind::MultiClassLinear { classes } => {
            return Ok(of_classes(model, classes, dialect, |names| row.scores(weights, names, table)));
        }
    };
    Ok(select(&last, &row.scores(weights, &scores, table), dialect))
}

/// Returns the query of a model with a score for each class.
fn of_classes(model: &Model, classes: &[String], dialect: Dialect, scored: impl FnOnce(&[String]) -> String) -> String {
    let of = |what: &str| classes.iter().map(|class| dialect.name(&format!("dp_{what}:{class}"))).collect::<Vec<_>>();
    let scores = of("score");
    let mut query = scored(&scores);
    let largest = dialect.largest(&scores);
    query = select(&[(largest, "dp_largest".to_owned())], &query, dialect);
    // The first of the largest scores, as in the model.
    let cases = scores.iter().zip(classes);
    let cases = cases.map(|(score, class)| format!(" WHEN {score} = dp_largest THEN {}", dialect.text(class)));
    let class = format!("CASE{} END", cases.collect::<String>());
    let mut last = vec![(class, "dp_class".to_owned())];
    if model.has_probabilities() {
        // PostgreSQL raises an error where the result would be 0.
        let least = dialect.number(-700.0);
        let weight = |score: &String| {
            let difference = format!("({score} - dp_largest)");
            format!("exp(CASE WHEN {difference} < {least} THEN {least} ELSE {difference} END)")
        };
        query = select(&[(sum(scores.iter().map(weight).collect()), "dp_total".to_owned())], &query, dialect);
        last.extend(named(scores.iter().map(|score| weight(score) + " / dp_total"), of("probability")));
    }
    select(&last, &query, dialect)
}

fn named(expressions: impl Iterator<Item = String>, names: Vec<String>) -> Vec<(String, String)> {
    expressions.zip(names).collect()
}

/// Returns a query of columns of the query `from`, and of all of its own. Those that come first are found by their names.
fn select(columns: &[(String, String)], from: &str, dialect: Dialect) -> String {
    let columns: String = columns.iter().map(|(expression, name)| format!("{expression} AS {name},\n  ")).collect();
    // Each score is computed once.
    let fence = dialect.fence().unwrap_or_default();
    format!("SELECT {columns}dp_rows.*\nFROM (\n{from}{fence}\n) AS dp_rows")
}
