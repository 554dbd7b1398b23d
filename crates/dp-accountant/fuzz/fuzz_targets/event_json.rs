//! Any bytes as an event tree: the result is a number or a typed error.
#![no_main]

use dp_accountant::{Delta, DpEvent, bound, rdp::RdpCurve, zcdp};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(event) = serde_json::from_slice::<DpEvent>(bytes) else { return };
    let _ = event.relations();
    for delta in [0.0, 1e-300, 1e-6, 0.9] {
        let Ok(delta) = Delta::new(delta) else { return };
        if let Ok(bound) = bound::epsilon(&event, delta) {
            assert!(bound.value >= 0.0, "{bound:?}");
        }
    }
    for epsilon in [0.0, 1.0, 1e6] {
        if let Ok(bound) = bound::delta(&event, epsilon) {
            assert!((0.0..=1.0).contains(&bound.value), "{bound:?}");
        }
    }
    if let Ok(rho) = zcdp::rho(&event) {
        assert!(rho >= 0.0);
    }
    let _ = RdpCurve::new(&event);
    if let Ok(text) = serde_json::to_string(&event) {
        let back = serde_json::from_str::<DpEvent>(&text);
        assert_eq!(back.ok().as_ref(), Some(&event));
    }
});
