use super::*;
use crate::bound::Theorem;
use crate::error::Error;

/// A recipe that releases a mixture and a repeated Gaussian.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    sensitivity: f64,
    std_dev: f64,
    steps: u64,
}

impl Derivation for Recipe {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        crate::error::positive("sensitivity", self.sensitivity)?;
        let (std_dev, sensitivity) = (self.std_dev, self.sensitivity);
        Ok(DpEvent::Composed {
            events: vec![
                DpEvent::GaussianMixture {
                    std_dev,
                    sensitivities: vec![sensitivity, sensitivity / 2.0],
                    weights: vec![0.5, 0.5],
                },
                DpEvent::SelfComposed {
                    event: Box::new(DpEvent::Gaussian { std_dev, sensitivity }),
                    count: self.steps,
                },
            ],
        })
    }

    fn adjacency(&self) -> AdjacencyKind {
        AdjacencyKind::ReplaceOne
    }

    fn assumptions(&self) -> Vec<Assumption> {
        vec![Assumption::PublicN, Assumption::RowNorm { bound: 1.0 }]
    }
}

fn certificate() -> Certificate<Recipe> {
    let derivation = Recipe { sensitivity: 0.1, std_dev: 1.0, steps: 10 };
    let event = derivation.event().unwrap();
    let delta = crate::params::Delta::new(1e-6).unwrap();
    let epsilon = crate::bound::epsilon(&event, delta).unwrap().value;
    Certificate {
        schema: SCHEMA.to_owned(),
        adjacency: AdjacencyKind::ReplaceOne,
        unit: Unit::Record,
        private: true,
        requested: Some(EpsilonDelta { epsilon: epsilon * 1.01, delta: 1e-6 }),
        reached: Some(EpsilonDelta { epsilon, delta: 1e-6 }),
        event,
        noise: NoiseMode::Rounded,
        derivation,
        assumptions: vec![
            Assumption::PublicN,
            Assumption::RowNorm { bound: 1.0 },
            Assumption::IdealisedFloat,
            Assumption::EarlierRunsNotAccounted,
        ],
        model_sha256: "00".repeat(32),
        versions: [("dp-accountant".to_owned(), "0.1.0".to_owned())].into(),
    }
}

#[test]
fn an_honest_certificate_holds() {
    let certificate = certificate();
    let verified = certificate.verify().unwrap();
    assert_eq!(verified.epsilon, certificate.reached.unwrap().epsilon);
    assert_eq!(verified.recomputed_epsilon, verified.epsilon);
    assert_eq!(verified.theorem, Theorem::GaussianMixture);
    assert_eq!(verified.adjacency, AdjacencyKind::ReplaceOne);
}

/// Applies one edit and returns the failure that it must cause.
fn fails(edit: impl Fn(&mut Certificate<Recipe>)) -> VerifyError {
    let mut edited = certificate();
    edit(&mut edited);
    let error = edited.verify().expect_err("an edited certificate held");
    assert!(error.to_string().len() > 20, "{error}");
    error
}

#[test]
fn each_edit_is_found_and_named() {
    use VerifyError as E;
    assert!(matches!(fails(|c| c.schema = "dp.certificate/2".into()), E::UnknownSchema { .. }));
    assert!(matches!(fails(|c| c.private = false), E::NotPrivate));
    assert!(matches!(fails(|c| c.reached = None), E::NothingStated));
    assert!(matches!(fails(|c| c.noise = NoiseMode::None), E::NoNoise));
    assert!(matches!(fails(|c| c.adjacency = AdjacencyKind::ZeroOut), E::WrongAdjacency { .. }));
    assert!(matches!(fails(|c| c.derivation.sensitivity = f64::NAN), E::Derivation { .. }));
    assert!(matches!(fails(|c| c.derivation.sensitivity = 0.05), E::EventMismatch { .. }));
    assert!(matches!(fails(|c| c.derivation.steps = 9), E::EventMismatch { .. }));
    assert!(matches!(fails(|c| c.derivation.std_dev = -1.0), E::Accounting { .. }));
    for reached in [0.0, 0.1] {
        let edit = |c: &mut Certificate<Recipe>| c.reached = Some(EpsilonDelta { epsilon: reached, delta: 1e-6 });
        assert!(matches!(fails(edit), E::EpsilonTooSmall { .. }));
    }
    let smaller_delta = |c: &mut Certificate<Recipe>| c.reached.as_mut().unwrap().delta = 1e-9;
    assert!(matches!(fails(smaller_delta), E::EpsilonTooSmall { .. }));
    let larger_delta = |c: &mut Certificate<Recipe>| c.reached.as_mut().unwrap().delta = 1e-3;
    assert!(matches!(fails(larger_delta), E::MoreThanRequested { name: "delta", .. }));
    let larger = |c: &mut Certificate<Recipe>| c.reached.as_mut().unwrap().epsilon *= 2.0;
    assert!(matches!(fails(larger), E::MoreThanRequested { name: "epsilon", .. }));
    for bad in [f64::NAN, -1.0, f64::INFINITY] {
        let edit = |c: &mut Certificate<Recipe>| c.reached = Some(EpsilonDelta { epsilon: bad, delta: 1e-6 });
        assert!(matches!(fails(edit), E::InvalidGuarantee { part: "reached", .. }));
        let edit = |c: &mut Certificate<Recipe>| c.requested = Some(EpsilonDelta { epsilon: 1.0, delta: bad });
        assert!(matches!(fails(edit), E::InvalidGuarantee { part: "requested", .. }));
    }
    for index in 0..4 {
        let removed = certificate().assumptions[index].clone();
        let error = fails(|c| drop(c.assumptions.remove(index)));
        assert_eq!(error, E::MissingAssumption { assumption: removed });
    }
    let weaker = |c: &mut Certificate<Recipe>| c.assumptions[1] = Assumption::RowNorm { bound: 2.0 };
    assert!(matches!(fails(weaker), E::MissingAssumption { .. }));
}

/// A certificate is refused if any number of the recorded event is changed by one part in a million or made NaN.
#[test]
fn every_number_of_the_event_is_compared() {
    let change = |factor: f64| {
        let edits: [&dyn Fn(&mut DpEvent); 5] = [
            &|event| {
                if let DpEvent::GaussianMixture { std_dev, .. } = event {
                    *std_dev *= factor;
                }
            },
            &|event| {
                if let DpEvent::GaussianMixture { sensitivities, .. } = event {
                    sensitivities[1] *= factor;
                }
            },
            &|event| {
                if let DpEvent::GaussianMixture { weights, .. } = event {
                    weights[0] *= factor;
                }
            },
            &|event| {
                if let DpEvent::SelfComposed { event, .. } = event {
                    **event = DpEvent::Gaussian { std_dev: factor, sensitivity: 0.1 };
                }
            },
            &|event| {
                if let DpEvent::SelfComposed { event, .. } = event {
                    **event = DpEvent::Gaussian { std_dev: 1.0, sensitivity: 0.1 * factor };
                }
            },
        ];
        for (index, edit) in edits.iter().enumerate() {
            let error = fails(|c| {
                if let DpEvent::Composed { events } = &mut c.event {
                    events.iter_mut().for_each(*edit);
                }
            });
            assert!(matches!(error, VerifyError::EventMismatch { .. }), "edit {index}: {error}");
        }
    };
    for factor in [1.0 + 1e-6, 1.0 - 1e-6, f64::NAN, f64::INFINITY] {
        change(factor);
    }
}

#[test]
fn other_shapes_are_not_the_same_event() {
    for event in [
        DpEvent::NoOp,
        DpEvent::Composed { events: vec![] },
        DpEvent::Composed { events: vec![DpEvent::NoOp, DpEvent::NoOp] },
    ] {
        let error = fails(|c| c.event = event.clone());
        assert!(matches!(error, VerifyError::EventMismatch { .. }), "{error}");
    }
}

#[test]
fn json_round_trips_and_is_flat() {
    let certificate = certificate();
    let json = serde_json::to_value(&certificate).unwrap();
    assert_eq!(json["adjacency"], "replace-one");
    assert_eq!(json["n_public"], true);
    assert_eq!(json["unit"], "record");
    assert_eq!(json["noise"], "rounded");
    assert_eq!(json["event"]["type"], "composed");
    assert_eq!(json["assumptions"][1], serde_json::json!({ "assumption": "row_norm", "bound": 1.0 }));
    let text = serde_json::to_string(&certificate).unwrap();
    assert_eq!(serde_json::from_str::<Certificate<Recipe>>(&text).unwrap(), certificate);
}

#[test]
fn json_that_says_more_or_less_is_refused() {
    let json = serde_json::to_value(certificate()).unwrap();
    let refused = |edit: &dyn Fn(&mut serde_json::Value)| {
        let mut json = json.clone();
        edit(&mut json);
        serde_json::from_value::<Certificate<Recipe>>(json).expect_err("was read").to_string()
    };
    refused(&|json| json["extra"] = 1.into());
    refused(&|json| json["reached"]["extra"] = 1.into());
    refused(&|json| json["event"]["extra"] = 1.into());
    refused(&|json| json["assumptions"][0]["extra"] = 1.into());
    refused(&|json| json["assumptions"][0]["assumption"] = "trust_me".into());
    refused(&|json| drop(json.as_object_mut().unwrap().remove("private")));
    refused(&|json| json["adjacency"] = "replace".into());
    refused(&|json| json["n_public"] = false.into());
    let schema = refused(&|json| json["schema"] = "dp.certificate/2".into());
    assert!(schema.contains("dp.certificate/1"), "{schema}");
}

/// Steps on Poisson samples of lists, where the labels of one list change.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Ranking {
    std_dev: f64,
    radius: f64,
}

impl Derivation for Ranking {
    type Error = Error;

    fn event(&self) -> Result<DpEvent, Error> {
        let Self { std_dev, radius } = *self;
        let step = DpEvent::PoissonSampledReplacement { sampling_rate: 0.01, std_dev, distance: 1.0, radius };
        Ok(DpEvent::SelfComposed { event: Box::new(step), count: 200 })
    }

    fn adjacency(&self) -> AdjacencyKind {
        AdjacencyKind::ChangeListLabels
    }

    fn assumptions(&self) -> Vec<Assumption> {
        vec![Assumption::PublicN]
    }
}

#[test]
fn lists_whose_labels_change_have_certificates_too() {
    for (radius, theorem) in [(0.5, Theorem::ContourIntegral), (1.0, Theorem::LossDistribution)] {
        let derivation = Ranking { std_dev: 1.5, radius };
        let event = derivation.event().unwrap();
        let epsilon = crate::bound::epsilon(&event, crate::params::Delta::new(1e-4).unwrap()).unwrap();
        assert_eq!(epsilon.theorem, theorem);
        let reached = EpsilonDelta { epsilon: epsilon.value, delta: 1e-4 };
        let honest = Certificate {
            schema: SCHEMA.to_owned(),
            adjacency: AdjacencyKind::ChangeListLabels,
            unit: Unit::List,
            private: true,
            requested: None,
            reached: Some(reached),
            event,
            noise: NoiseMode::Exact,
            derivation,
            assumptions: vec![Assumption::PublicN, Assumption::EarlierRunsNotAccounted],
            model_sha256: "00".repeat(32),
            versions: [("dp-accountant".to_owned(), "0.1.0".to_owned())].into(),
        };
        assert_eq!(honest.verify().unwrap().epsilon, epsilon.value);
        let text = serde_json::to_string(&honest).unwrap();
        let read: Certificate<Ranking> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, honest);
        let mut edited = honest.clone();
        edited.derivation.radius = 0.75;
        assert!(matches!(edited.verify(), Err(VerifyError::EventMismatch { .. })));
        let less = EpsilonDelta { epsilon: 0.9 * epsilon.value, ..reached };
        let edited = Certificate { reached: Some(less), ..honest };
        assert!(matches!(edited.verify(), Err(VerifyError::EpsilonTooSmall { .. })));
    }
}

/// A log with reproducible noise gives no numbers; assumptions are listed once; another form of the recipe gives the same
/// statement.
#[test]
fn a_log_becomes_a_certificate() {
    use crate::adjacency::ReplaceOne;
    use crate::event_log::EventLog;

    let stated = certificate();
    let made = |secret: bool| {
        let mut log = EventLog::<ReplaceOne>::new();
        log.record(stated.event.clone(), 1);
        log.assume(Assumption::IdealisedFloat);
        log.assume(Assumption::PublicN);
        if !secret {
            log.mark_not_private();
        }
        let (requested, reached) = (stated.requested.unwrap(), stated.reached.unwrap());
        let figures = Figures { requested, reached };
        Certificate::of_log(&log, Unit::Record, stated.derivation.clone(), NoiseMode::Rounded, figures)
    };
    let certificate = made(true).assuming([Assumption::PublicSchema, Assumption::IdealisedFloat]);
    let (n, row) = (Assumption::PublicN, Assumption::RowNorm { bound: 1.0 });
    let (float, earlier) = (Assumption::IdealisedFloat, Assumption::EarlierRunsNotAccounted);
    assert_eq!(certificate.assumptions, [n, row, float, earlier, Assumption::PublicSchema]);
    assert!(certificate.verify().is_ok());
    assert_eq!((certificate.event.clone(), certificate.reached), (stated.event.clone(), stated.reached));
    let seeded = made(false);
    assert!(!seeded.private && seeded.reached.is_none() && seeded.requested == stated.requested);

    let versions = [("dp-accountant".to_owned(), "0.0.1".to_owned())].into();
    let published = certificate.clone().of_model("hash".to_owned(), versions);
    let published = published.made_by("dp-accountant", "0.1.0").made_by("mine", "1.2.3");
    let versions: Vec<(&str, &str)> = published.versions.iter().map(|(name, at)| (&**name, &**at)).collect();
    assert_eq!(versions, [("dp-accountant", "0.0.1"), ("mine", "1.2.3")]);
    let boxed = published.clone().map_derivation(Box::new);
    assert_eq!(boxed.clone().map_derivation(|recipe| *recipe), published);

    let nothing = Certificate::without_guarantee(AdjacencyKind::ReplaceOne, Unit::Record, stated.derivation.clone());
    assert!(!nothing.private && nothing.requested.is_none() && nothing.reached.is_none());
    assert_eq!(nothing.event, DpEvent::NonPrivate);
}
