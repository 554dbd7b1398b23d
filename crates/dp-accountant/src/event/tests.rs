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
        DpEvent::DiscreteGaussian { scale: 3.5, sensitivity: 2.0, dim: 4 },
        DpEvent::DiscreteLaplace { scale: 3.5, sensitivity: 2 },
        DpEvent::RandomizedResponse { buckets: 4, noise: 0.25 },
        DpEvent::BoundedRange { epsilon: 0.5 },
        DpEvent::Gdp { mu: 0.5 },
        DpEvent::RenyiDp { orders: vec![2.0, 4.0], divergences: vec![0.1, 0.2] },
        DpEvent::DominatingPair { p: vec![0.75, 0.25], q: vec![0.25, 0.75] },
        DpEvent::PoissonSampled { sampling_rate: 0.01, event: Box::new(DpEvent::Gdp { mu: 1.0 }) },
        DpEvent::PoissonSampledReplacement { sampling_rate: 0.01, std_dev: 3.0, distance: 2.0, radius: 1.25 },
        DpEvent::SampledWithoutReplacement { sampling_rate: 0.01, event: Box::new(DpEvent::Gdp { mu: 1.0 }) },
        DpEvent::Shuffled { epsilon: 1.0, records: 1000 },
        DpEvent::AmplifiedByIteration { sensitivities: vec![1.0], std_devs: vec![2.0], contraction: 0.9 },
        DpEvent::AboveThresholdLaplace { threshold_scale: 2.0, query_scale: 4.0, sensitivity: 1.0 },
        DpEvent::AboveThresholdGaussian {
            threshold_std_dev: 2.0,
            query_std_dev: 4.0,
            sensitivity: 1.0,
            max_queries: 100,
            range_bounded: true,
        },
        DpEvent::Parallel { events: vec![DpEvent::PureDp { epsilon: 0.25 }] },
        DpEvent::ParallelByValue { events: vec![DpEvent::PureDp { epsilon: 0.25 }] },
        DpEvent::OneOf { events: vec![DpEvent::PureDp { epsilon: 0.25 }] },
        DpEvent::Group { size: 3, event: Box::new(DpEvent::Zcdp { rho: 0.1 }) },
        DpEvent::AddRemoveTwice { event: Box::new(DpEvent::Zcdp { rho: 0.1 }) },
        DpEvent::RandomStopping {
            repetitions: Repetitions::TruncatedNegativeBinomial { eta: 1.0, gamma: 0.1 },
            event: Box::new(DpEvent::Zcdp { rho: 0.1 }),
        },
        DpEvent::RandomStopping {
            repetitions: Repetitions::Poisson { mean: 10.0 },
            event: Box::new(DpEvent::Zcdp { rho: 0.1 }),
        },
        DpEvent::ObjectivePerturbation { std_dev: 5.0, regularization: 2.0, loss: MarginLoss::Logistic },
        DpEvent::ObjectivePerturbation { std_dev: 5.0, regularization: 2.0, loss: MarginLoss::HuberSvm { width: 0.1 } },
        DpEvent::ObjectivePerturbation {
            std_dev: 5.0,
            regularization: 2.0,
            loss: MarginLoss::BoundedSlope { slope: 1.0, curvature: 0.5 },
        },
        DpEvent::ObjectivePerturbation { std_dev: 5.0, regularization: 2.0, loss: MarginLoss::LogCosh { width: 0.5 } },
        DpEvent::ObjectivePerturbation { std_dev: 5.0, regularization: 2.0, loss: MarginLoss::Softmax { classes: 10 } },
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

#[test]
fn fields_carry_every_number_of_the_serialised_form() {
    fn numbers(json: &serde_json::Value) -> usize {
        match json {
            serde_json::Value::Number(_) => 1,
            serde_json::Value::Array(items) => items.iter().map(numbers).sum(),
            serde_json::Value::Object(members) => members.values().map(numbers).sum(),
            _ => 0,
        }
    }
    fn in_fields(event: &DpEvent) -> usize {
        let fields = event.fields();
        let lengths = ["sensitivities", "std_devs", "weights", "orders", "divergences", "p", "q", "events"];
        let integers = fields.integers.iter().filter(|(name, _)| !lengths.contains(name)).count();
        fields.numbers.len() + integers + fields.events.iter().map(|event| in_fields(event)).sum::<usize>()
    }
    for event in every_variant() {
        assert_eq!(in_fields(&event), numbers(&serde_json::to_value(&event).unwrap()), "{event:?}");
        assert!(event.relations().is_ok(), "{event:?}");
    }
}
