use dp_accountant::{ReplaceOne, ZeroOut};
use dp_losses::LossKind;
use dp_mechanisms::SeededRng;

use super::*;
use crate::recipes::BoltOn;
use crate::tuning::tests::{GOOD, budget, good_and_bad, separable};

#[test]
fn public_records_find_the_clearly_better_candidate() {
    let (mut source, rng) = (separable(600), &mut SeededRng::new(1));
    let control = Control::default();
    let budget = budget(0.4, 0.0);
    let mut chosen = |candidates: &[AnyRecipe], repetitions| {
        choose::<ZeroOut, _>(candidates, &mut source, 6000, budget, repetitions, rng, &control)
    };
    assert_eq!(chosen(&good_and_bad(), 1).unwrap(), GOOD as usize);
    assert!(matches!(chosen(&[], 1), Err(Error::Count { name: "candidates", .. })));
    assert!(matches!(chosen(&good_and_bad(), 0), Err(Error::Count { name: "repetitions", .. })));
    let numbers = [BoltOn { radius: Some(1.0), ..BoltOn::convex(LossKind::Squared) }.into()];
    assert!(matches!(chosen(&numbers, 1), Err(Error::NotProved { .. })));
    let one = &mut separable(1);
    let refused = choose::<ZeroOut, _>(&good_and_bad(), one, 6000, budget, 1, rng, &control);
    assert!(matches!(refused, Err(Error::Count { name: "number of public records", .. })));
}

/// Two public records are halves of one each; of candidates that are equally right the first is chosen, and the noise of a
/// half is that for the number of private records.
#[test]
fn public_halves_stand_for_the_records() {
    let chosen = |candidates: &[AnyRecipe], records: usize, n: u64| {
        let rng = &mut SeededRng::new(1);
        let public = &mut separable(records);
        choose::<ReplaceOne, f64>(candidates, public, n, budget(0.1, 0.0), 3, rng, &Control::default())
    };
    assert!(chosen(&good_and_bad(), 1, 100).is_err());
    let usual: AnyRecipe =
        BoltOn { batch_size: 1, passes: 1, ..BoltOn::strongly_convex(LossKind::Logistic, 0.05) }.into();
    assert_eq!(chosen(&[usual.clone(), usual.clone()], 2, 100).unwrap(), 0);
    // The first is only noise with the noise for 4,000 records, and without a mistake with that for 10^8; this seed and 299 others
    // agree.
    for (n, expected) in [(4000, GOOD as usize), (100_000_000, 0)] {
        assert_eq!(chosen(&good_and_bad(), 400, n).unwrap(), expected, "{n}");
    }
}
