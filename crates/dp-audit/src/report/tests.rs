use super::*;
use crate::Auditor;
use crate::testing::{coin, gaussian, laplace};

#[test]
fn tables_have_a_line_for_each_audit() {
    let auditor = Auditor::new(2000).unwrap();
    let audits = [auditor.audit(&laplace(1.0, 1.0)).unwrap(), auditor.audit(&gaussian(2.0, 1.0)).unwrap()];
    let text = plain(&audits);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("subject   claim"));
    assert!(lines[1].starts_with("laplace   1.0000") && lines[1].ends_with("not refuted"));
    assert!(lines[2].starts_with("gaussian  4.37") && lines[2].ends_with("REFUTED"), "{}", lines[2]);
    let table = markdown(&audits);
    assert!(table.lines().all(|line| line.matches('|').count() == 9));
    assert_eq!(table.lines().count(), 4);
}

#[test]
fn a_statement_names_what_convicts_and_never_calls_anything_private() {
    let auditor = Auditor::new(4000).unwrap().with_seed(77);
    let audit = auditor.audit(&coin(2.0, 1.0)).unwrap();
    let text = statement(&audit);
    for part in [
        "coin: REFUTED at confidence 0.999",
        "heads or tails",
        "seed 77",
        "epsilon <= 1 at delta 0",
        "REFUTES by epsilon",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let sound = statement(&auditor.audit(&laplace(1.0, 1.0)).unwrap());
    assert!(sound.contains("laplace: not refuted at confidence 0.999") && !sound.contains("REFUTES"));
    assert!(!sound.contains("private") && !text.contains("private"));
    let by_curve = statement(&auditor.audit(&gaussian(2.0, 1.0)).unwrap());
    assert!(by_curve.contains("REFUTES: misses at most"), "{by_curve}");
}

#[cfg(feature = "serde")]
#[test]
fn records_are_json_with_the_whole_audit() {
    let audit = Auditor::new(2000).unwrap().audit(&coin(2.0, 1.0)).unwrap();
    let record = serde_json::to_value(&audit).unwrap();
    assert_eq!(record["verdict"], "refuted");
    assert_eq!(record["conviction"]["bound"], "epsilon");
    assert_eq!(record["event"]["type"], "pure-dp");
    assert_eq!(record["tests"][0]["hits"]["positives"], 2000);
    assert_eq!(record["epsilon_lower"].as_f64(), Some(audit.epsilon_lower));
}
