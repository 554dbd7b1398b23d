//! Every file named in ARCHITECTURE.md exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns all files and folders of the crates and benches, as paths from the root.
fn files() -> BTreeSet<String> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![root().join("crates"), root().join("benches")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                found.insert(format!("{name}/"));
                folders.push(path);
            } else {
                found.insert(name);
            }
        }
    }
    found
}

/// Expands `a/{b,c}.rs` to `a/b.rs` and `a/c.rs`.
fn expanded(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let (inner, after) = rest.split_once('}').unwrap_or_else(|| panic!("a brace without its end: {path}"));
    inner.split(',').flat_map(|part| expanded(&format!("{before}{part}{after}"))).collect()
}

/// Returns the paths among the texts in backticks.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|word| word.contains('/') && !word.contains(' ') && (word.ends_with(".rs") || word.ends_with('/')))
}

#[test]
fn every_file_that_it_names_exists() {
    let (files, text) = (files(), fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap());
    let mut checked = 0;
    let missing: Vec<String> = text
        .lines()
        .flat_map(paths)
        .flat_map(expanded)
        .inspect(|_| checked += 1)
        .filter(|path| !files.iter().any(|file| file == path || file.ends_with(&format!("/{path}"))))
        .collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names files that do not exist: {missing:#?}");
    assert!(checked > 100, "{checked} paths are too few: are they still found?");
}

#[test]
fn braces_stand_for_each_of_their_parts() {
    assert_eq!(expanded("a/{b,c}.rs"), ["a/b.rs", "a/c.rs"]);
    assert_eq!(expanded("a/{b,c}/{d,e}.rs"), ["a/b/d.rs", "a/b/e.rs", "a/c/d.rs", "a/c/e.rs"]);
}
