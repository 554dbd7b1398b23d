use super::*;

fn every_variant() -> Vec<DpEvent> {
    vec![
        DpEvent::NoOp,
        DpEvent::NonPrivate,
        DpEvent::Gaussian { std_dev: 0.1, sensitivity: 1e-300 },
        DpEvent::Laplace { scale: 1.5, sensitivity: 0.1 + 0.2 },
        DpEvent::LaplaceBall { scale: 1.5, sensitivity: 1.0, dim: u64::MAX },
        DpEvent::PureDp { epsilon: 1.0 },
        DpEvent::ApproximateDp { epsilon: 1.0, delta: 1e-6 },
        DpEvent::Zcdp { rho: 0.5 },
        DpEvent::GaussianMixture { std_dev: 1.0, sensitivities: vec![1.0, 2.0], weights: vec![0.5, 0.5] },
        DpEvent::Composed { events: vec![DpEvent::NoOp, DpEvent::PureDp { epsilon: 0.25 }] },
        DpEvent::SelfComposed { event: Box::new(DpEvent::Zcdp { rho: 0.125 }), count: 3 },
    ]
}

#[test]
fn json_round_trips_bit_for_bit_under_the_variants_own_name() {
    for event in every_variant() {
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!(json["type"], event.name());
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<DpEvent>(&text).unwrap(), event);
    }
}

#[test]
fn unknown_types_and_fields_are_refused() {
    for event in every_variant() {
        let mut json = serde_json::to_value(&event).unwrap();
        json["extra"] = 1.into();
        assert!(serde_json::from_value::<DpEvent>(json).is_err(), "{event:?} was read with an extra field");
    }
    for text in
        [r#"{"type":"magic"}"#, r#"{"epsilon":1.0}"#, r#"{"type":"pure-dp"}"#, r#"{"type":"pure-dp","epsilon":null}"#]
    {
        assert!(serde_json::from_str::<DpEvent>(text).is_err(), "{text}");
    }
}

#[test]
fn deep_nesting_is_an_error_not_a_stack_overflow() {
    let deep = r#"{"type":"self-composed","count":1,"event":"#.repeat(100_000);
    assert!(serde_json::from_str::<DpEvent>(&deep).is_err());
    let levels = 50;
    let readable = r#"{"type":"composed","events":["#.repeat(levels) + r#"{"type":"no-op"}"# + &"]}".repeat(levels);
    let event: DpEvent = serde_json::from_str(&readable).unwrap();
    assert!(crate::bound::epsilon(&event, crate::Delta::ZERO).is_ok());
}
