//! Reads the golden values: from the folder in `DP_GOLDEN_DIR` if set, otherwise from the copy in the tree.

use serde_json::Value;

/// Returns the parsed file `name`.
pub(crate) fn file(name: &str) -> Value {
    let folder = std::env::var_os("DP_GOLDEN_DIR").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden"),
        std::path::PathBuf::from,
    );
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the cases of `optim-erm.json` for the function `name`: at least one in the tree's copy; another file need not have
/// every function, but must have some.
pub(crate) fn erm_cases(name: &str) -> Vec<Value> {
    let golden = file("optim-erm.json");
    let all = golden["cases"].as_array().unwrap();
    assert!(!all.is_empty(), "no case at all");
    let cases: Vec<Value> = all.iter().filter(|case| case["fn"] == name).cloned().collect();
    assert!(!cases.is_empty() || std::env::var_os("DP_GOLDEN_DIR").is_some(), "no case of {name}");
    cases
}

/// Checks a number against `want` (`null`: not finite) with relative tolerance, or absolutely 1e-12 around 0.
#[track_caller]
pub(crate) fn assert_close(id: &Value, what: &str, got: f64, want: &Value, rtol: f64) {
    match want.as_f64() {
        None => assert!(want.is_null() && !got.is_finite(), "{id}: {what} = {got}, expected {want}"),
        Some(want) => {
            let tolerance = if want == 0.0 { 1e-12 } else { rtol * want.abs() };
            assert!((got - want).abs() <= tolerance, "{id}: {what} = {got}, expected {want}");
        }
    }
}
