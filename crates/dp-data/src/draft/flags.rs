//! Words for yes and no.

/// Words for yes and no, in lower case.
const FLAGS: [(&str, &str); 11] = [
    ("true", "false"),
    ("yes", "no"),
    ("y", "n"),
    ("t", "f"),
    ("on", "off"),
    ("ja", "nein"),
    ("oui", "non"),
    ("si", "no"),
    ("sí", "no"),
    ("sim", "não"),
    ("wahr", "falsch"),
];

/// Returns the texts for 1 and for 0, if all categories are words for yes and no, in any case.
pub(super) fn flag(categories: &[String]) -> Option<(Vec<String>, Vec<String>)> {
    let lower = |text: &String| text.to_lowercase();
    FLAGS.iter().find_map(|(yes, no)| {
        let (one, rest): (Vec<String>, Vec<String>) = categories.iter().cloned().partition(|text| lower(text) == *yes);
        let is_flag = !one.is_empty() && !rest.is_empty() && rest.iter().all(|text| lower(text) == *no);
        is_flag.then(|| with_spellings([one, rest]).into())
    })
}

/// Spellings of Booleans by the programs that write them: databases and Parquet, Python, R and spreadsheets.
const BOOLEANS: [[&str; 3]; 2] = [["true", "True", "TRUE"], ["false", "False", "FALSE"]];

/// Adds the other spellings of two classes that are Booleans, so that a model also reads tables that another program wrote.
pub(super) fn with_spellings(mut classes: [Vec<String>; 2]) -> [Vec<String>; 2] {
    let are = |texts: &[String], known: [&str; 3]| {
        !texts.is_empty() && texts.iter().all(|text| known.contains(&text.as_str()))
    };
    let [yes, no] = BOOLEANS;
    let in_order = [[yes, no], [no, yes]].into_iter().find(|[a, b]| are(&classes[0], *a) && are(&classes[1], *b));
    for (texts, known) in classes.iter_mut().zip(in_order.into_iter().flatten()) {
        let others = known.iter().filter(|known| !texts.iter().any(|text| text == *known));
        *texts = texts.iter().cloned().chain(others.map(|&text| text.to_owned())).collect();
    }
    classes
}
