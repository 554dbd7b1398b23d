//! The fuzzer's seeds are valid trees with bounds, and include every kind of event.

use std::path::Path;

use dp_accountant::{Delta, DpEvent, Error, bound};

#[test]
fn every_seed_is_answered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/event_json");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let event: DpEvent = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        names.push(event.name());
        for delta in [0.0, 1e-6, 0.5] {
            match bound::epsilon(&event, Delta::new(delta).unwrap()) {
                Ok(bound) => assert!(bound.value >= 0.0, "{}: {bound:?}", path.display()),
                Err(error) => assert!(matches!(error, Error::Unsupported { .. }), "{}: {error}", path.display()),
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    // Composition hides sampling; otherwise there is at least one seed for each kind.
    assert_eq!(names.len(), 31, "{names:?}");
}
