use super::super::tests::exactly_within;
use super::*;
use crate::L2Sensitivity;
use crate::rng::{OsSeeded, SeededRng};
use crate::testing::golden_cases;
use dp_accountant::certificate::Assumption;
use dp_accountant::{Delta, ReplaceOne, ZeroOut, bound};
use proptest::prelude::*;

fn norm(value: f64) -> ClippingNorm {
    ClippingNorm::new(value).unwrap()
}

#[test]
fn golden() {
    for case in golden_cases("mechanisms.json", "clip_per_layer") {
        let numbers = |value: &serde_json::Value| -> Vec<f64> {
            value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
        };
        let layers: Vec<Vec<f64>> = case.input["layers"].as_array().unwrap().iter().map(numbers).collect();
        let norms = numbers(&case.input["c"]);
        let clipping =
            LayeredClipping::new(layers.iter().zip(&norms).map(|(layer, &c)| (layer.len(), norm(c))).collect())
                .unwrap();
        case.check("joint_sensitivity", clipping.joint_norm());
        let mut all = layers.concat();
        clipping.clip(&mut all).unwrap();
        let expected: Vec<f64> = case.out["clipped"].as_array().unwrap().iter().flat_map(numbers).collect();
        assert_eq!(all.len(), expected.len());
        for (found, expected) in all.into_iter().zip(expected) {
            case.check_number("entry", found, expected);
        }
    }
}

#[test]
fn refused_layers() {
    assert!(matches!(LayeredClipping::new(vec![]), Err(Error::Length { name: "layers", .. })));
    assert_eq!(LayeredClipping::new(vec![(3, norm(1.0)), (0, norm(1.0))]), Err(Error::Dimension { dimension: 0 }));
    assert!(matches!(LayeredClipping::new(vec![(1, norm(f64::MAX)); 2]), Err(Error::NotFinite { .. })));
    let clipping = LayeredClipping::new(vec![(1, norm(1.0)); 2]).unwrap();
    assert_eq!(clipping.clip(&mut [1.0f64; 3]), Err(Error::DimensionMismatch { expected: 2, found: 3 }));
}

#[test]
fn a_broken_layer_makes_the_whole_record_zero() {
    let clipping = LayeredClipping::new(vec![(2, norm(1.0)), (1, norm(1.0))]).unwrap();
    for broken in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut v = [0.5f32, 0.25, broken];
        clipping.clip(&mut v).unwrap();
        assert_eq!(v, [0.0; 3]);
    }
}

#[test]
fn the_relation_decides_the_sensitivity() {
    let clipping = LayeredClipping::new(vec![(2, norm(3.0)), (1, norm(4.0))]).unwrap();
    assert_eq!(clipping.sensitivity::<ZeroOut>().unwrap().get(), 5.0);
    assert_eq!(clipping.sensitivity::<ReplaceOne>().unwrap().get(), 10.0);
}

fn parts<const N: usize>(parts: [(f64, f64); N]) -> Vec<Gaussian<ZeroOut>> {
    parts.map(|(d, s)| Gaussian::from_std_dev(L2Sensitivity::new(d).unwrap(), s).unwrap()).to_vec()
}

fn value(entry: f64, len: usize, sensitivity: f64) -> Bounded<Vec<f64>, ZeroOut> {
    Bounded::with_proven_sensitivity(vec![entry; len], L2Sensitivity::new(sensitivity).unwrap())
}

/// One joint release costs the same as the parts one after the other.
#[test]
fn the_event_is_the_composition_of_the_parts() {
    let noise = LayeredGaussian::new(parts([(1.0, 2.0), (0.5, 0.7), (3.0, 9.0)])).unwrap();
    let delta = Delta::new(1e-6).unwrap();
    let events = noise.parts().iter().map(PrivacyEvent::event).collect();
    let separate = bound::epsilon(&DpEvent::Composed { events }, delta).unwrap().value;
    let joint = bound::epsilon(&noise.event(), delta).unwrap().value;
    assert!((joint / separate - 1.0).abs() < 1e-6, "{joint} {separate}");
    assert!((noise.mu() - (0.25f64 + 25.0 / 49.0 + 1.0 / 9.0).sqrt()).abs() < 1e-14);
}

#[test]
fn refused_parts_and_values() {
    assert!(matches!(LayeredGaussian::<ZeroOut>::new(vec![]), Err(Error::Length { name: "parts", .. })));
    assert!(matches!(LayeredGaussian::new(parts([(1e300, 1e-20)])), Err(Error::OutOfRange { .. })));
    let noise = LayeredGaussian::new(parts([(1.0, 1.0), (2.0, 1.0)])).unwrap();
    let (mut log, mut rng) = (EventLog::new(), OsSeeded::new().unwrap());
    let mut refused = |inputs| noise.release(inputs, &mut log, &mut rng).err();
    assert!(matches!(refused(vec![value(0.0, 1, 1.0)]), Some(Error::Length { .. })));
    assert_eq!(
        refused(vec![value(0.0, 1, 1.0), value(0.0, 1, 2.5)]),
        Some(Error::SensitivityExceeded { found: 2.5, built_for: 2.0 })
    );
    assert_eq!(refused(vec![value(0.0, 1, 1.0), value(f64::NAN, 1, 2.0)]), Some(Error::NonFiniteInput));
    assert_eq!(refused(vec![value(0.0, 0, 1.0), value(0.0, 1, 2.0)]), Some(Error::Dimension { dimension: 0 }));
    assert!(log.entries().is_empty() && log.is_private() && log.assumptions().is_empty());
}

#[test]
fn a_release_is_one_entry_with_all_assumptions() {
    let noise = LayeredGaussian::new(parts([(1.0, 1.0), (2.0, 1.0)])).unwrap();
    let mut log = EventLog::new();
    let inputs = vec![value(0.0, 3, 1.0), value(0.0, 2, 2.0).assuming(Assumption::FloatSum)];
    let released = noise.release(inputs, &mut log, &mut SeededRng::new(1)).unwrap();
    assert_eq!(released.get().iter().map(Vec::len).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(log.entries(), [(noise.event(), 1)]);
    assert!(log.assumptions().contains(&Assumption::FloatSum) && !log.is_private());
}

/// Each part has its own size of noise. For 20000 coordinates the mean of squares has standard deviation 0.01; 6.2 of them are
/// exceeded with probability below 1e-9.
#[test]
fn each_part_has_its_own_noise() {
    let noise = LayeredGaussian::new(parts([(1.0, 3.0), (1.0, 0.01)])).unwrap();
    let inputs = vec![value(0.0, 20_000, 1.0), value(0.0, 20_000, 1.0)];
    let released = noise.release(inputs, &mut EventLog::new(), &mut SeededRng::new(2)).unwrap();
    for (part, std_dev) in released.get().iter().zip([3.0, 0.01]) {
        let mean_square = part.iter().map(|x| (x / std_dev).powi(2)).sum::<f64>() / 20_000.0;
        assert!((mean_square - 1.0).abs() < 0.062, "{mean_square}");
    }
}

proptest! {
    /// In exact arithmetic, the norms of each layer and of the whole vector are within their bounds.
    #[test]
    fn stored_norms_are_within(
        v in prop::collection::vec(-1e3f64..1e3, 12), norms in prop::collection::vec(1e-3f64..1e3, 3),
    ) {
        let lens = [5, 1, 6];
        let clipping = LayeredClipping::new(lens.iter().zip(&norms).map(|(&len, &c)| (len, norm(c))).collect()).unwrap();
        let mut v = v;
        clipping.clip(&mut v).unwrap();
        prop_assert!(exactly_within(&v, clipping.joint_norm()));
        let mut rest = &v[..];
        for (len, norm) in lens.into_iter().zip(norms) {
            prop_assert!(exactly_within(&rest[..len], norm));
            rest = &rest[len..];
        }
    }
}
