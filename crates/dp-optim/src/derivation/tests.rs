use dp_accountant::ReplaceOne;

use super::*;
use crate::recipes::bolt_on::OutputNoise;
use crate::recipes::{
    AnyDerivation, AnyRecipe, AtBaseRate, BoltOn, DpSgd, ObjPert, OneVsAll, PerUnit, Planned, Recipe as _, Share,
    budget,
};

/// Wrappers keep the noise of the recipe that they wrap; a projection of the noisy weights, and noise elsewhere, have none.
#[test]
fn the_noise_on_weights_is_known_where_it_is_added_to_them() {
    let recipe = BoltOn::strongly_convex(LossKind::Logistic, 0.01);
    let noise = |recipe: AnyRecipe, delta| {
        let plan = recipe.plan::<ReplaceOne>(600, 4, budget(1.0, delta)).unwrap();
        let derivation: AnyDerivation = plan.derivation();
        derivation.weight_noise().map(|noise| (noise.law.is_pure(), noise.dim, noise.std_dev()))
    };
    let (pure, dim, ball) = noise(recipe.clone().into(), 0.0).unwrap();
    // s √(d + 1) with s = Δ/ε.
    let sensitivity = recipe.plan::<ReplaceOne>(600, 4, budget(1.0, 0.0)).unwrap().run().sensitivity();
    assert!(pure && dim == 4 && (ball / (sensitivity * 5_f64.sqrt()) - 1.0).abs() < 1e-9, "{ball}");
    let gaussian = BoltOn { output_noise: OutputNoise::Gaussian, ..recipe.clone() };
    let (pure, dim, _) = noise(gaussian.into(), 1e-6).unwrap();
    assert!(!pure && dim == 4);
    let unit = PerUnit::new(recipe.clone(), 3, "patient").into();
    assert!((noise(unit, 0.0).unwrap().2 / ball - 3.0).abs() < 1e-6);
    let rate: AnyRecipe = AtBaseRate::new(AnyRecipe::from(recipe.clone())).into();
    assert!((noise(rate, 0.0).unwrap().2 / ball - 1.0 / 0.95).abs() < 1e-6);
    let each =
        |share| noise(OneVsAll { recipe: Box::new(recipe.clone().into()), classes: 5, share }.into(), 0.0).unwrap();
    // The noise of a joint release is one draw for all models, of a larger sensitivity.
    assert_eq!((each(Share::Joint).1, each(Share::Split).1), (20, 4));
    assert!((each(Share::Split).2 / ball - 5.0).abs() < 1e-6);
    assert_eq!(noise(BoltOn { radius: Some(5.0), ..recipe }.into(), 0.0), None);
    assert_eq!(noise(ObjPert::new(LossKind::Logistic).into(), 0.0), None);
    assert_eq!(noise(DpSgd::new(LossKind::Logistic).into(), 1e-6), None);
}
