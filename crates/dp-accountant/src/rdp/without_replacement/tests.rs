use super::*;

fn order(value: f64) -> RdpOrder {
    RdpOrder::new(value).unwrap()
}

fn rate(value: f64) -> SamplingRate {
    SamplingRate::new(value).unwrap()
}

/// Three answers: that of the samples without the record, of those with it, and of those with its replacement.
#[test]
fn holds_for_a_randomised_response_of_three_answers() {
    for noise in [0.05, 0.3, 0.9] {
        let (more, less) = (1.0 - noise + noise / 3.0, noise / 3.0);
        let law = |answer: usize| [0, 1, 2].map(|i| if i == answer { more } else { less });
        let base: Leaves = vec![(Leaf::RandomizedResponse { buckets: 3, noise }, 1)];
        for sampled in [1e-3, 0.1, 0.6] {
            let leaf = Leaf::WithoutReplacement { rate: sampled, base: base.clone() };
            let bound = Sampled::new(&leaf, sampled, &base, 4096.0);
            for a in [1.5, 2.0, 3.0, 4.5, 16.0] {
                for (with, replaced) in [(1, 2), (0, 1), (1, 0)] {
                    let mix = |answer: usize| {
                        let (none, own) = (law(0), law(answer));
                        [0, 1, 2].map(|i| (1.0 - sampled) * none[i] + sampled * own[i])
                    };
                    let moment: f64 = mix(with)
                        .iter()
                        .zip(mix(replaced))
                        .map(|(p, q): (&f64, f64)| p.powf(a) * q.powf(1.0 - a))
                        .sum();
                    let truth = moment.ln() / (a - 1.0);
                    assert!(bound.rdp(a) >= truth * (1.0 - 1e-12), "{noise} {sampled} {a}: {} {truth}", bound.rdp(a));
                }
            }
        }
    }
}

/// The three means within one sensitivity of each other.
#[test]
fn holds_for_gaussian_noise() {
    let density = |y: f64, mean: f64| crate::normal::density(y - mean);
    for mu in [0.2, 1.0, 2.0] {
        let base: Leaves = vec![(Leaf::Gaussian { mu }, 1)];
        for sampled in [0.01, 0.3] {
            let leaf = Leaf::WithoutReplacement { rate: sampled, base: base.clone() };
            let bound = Sampled::new(&leaf, sampled, &base, 4096.0);
            for a in [1.5, 2.0, 3.0, 8.0] {
                for (none, with, replaced) in [(0.0, 0.5, -0.5), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.5, 1.0, 0.0)] {
                    let mix =
                        |y: f64, own: f64| (1.0 - sampled) * density(y, none * mu) + sampled * density(y, own * mu);
                    let step = 0.02;
                    let excess: f64 = (-3000..4000)
                        .map(|i| f64::from(i) * step)
                        .map(|y| (mix(y, with), mix(y, replaced)))
                        .filter(|(p, q)| *p > 1e-280 && *q > 1e-280)
                        .map(|(p, q)| q * ((p / q).powf(a) - 1.0 - a * (p / q - 1.0)) * step)
                        .sum();
                    let truth = excess.ln_1p() / (a - 1.0);
                    let got = bound.rdp(a);
                    assert!(got >= truth * (1.0 - 1e-6) - 1e-12, "{mu} {sampled} {a}: {got} {truth}");
                }
            }
        }
    }
}

#[test]
fn each_form_improves_on_the_one_before() {
    let (sampled, mu) = (0.01, 0.05);
    let base: Leaves = vec![(Leaf::Gaussian { mu }, 1)];
    let leaf = Leaf::WithoutReplacement { rate: sampled, base: base.clone() };
    let tree = Sampled::new(&leaf, sampled, &base, 4096.0);
    let curve = |a: f64| 0.5 * a * mu * mu;
    for a in [3, 8, 32, 200] {
        let published = without_replacement_as_published(a, rate(sampled), f64::INFINITY, curve);
        let ours = without_replacement(order(a.into()), rate(sampled), f64::INFINITY, curve);
        let with_moments = tree.rdp(a.into());
        assert!(with_moments <= ours && ours <= published, "{a}: {with_moments} {ours} {published}");
    }
    // The sum's lower bound of 2 C(a,3) q^3 no longer applies.
    assert!(tree.rdp(8.0) < 0.3 * without_replacement_as_published(8, rate(sampled), f64::INFINITY, curve));
}

/// Replacing a record is less than removing one and adding another, and sampling a fixed number is not Poisson sampling: the
/// bounds differ, and with the same noise relative to a replacement the fixed size costs about four times as much.
#[test]
fn is_about_four_times_the_poisson_curve_at_order_two() {
    let (sampled, mu): (f64, f64) = (1e-3, 0.1);
    let fixed = without_replacement(order(2.0), rate(sampled), f64::INFINITY, |a| 0.5 * a * mu * mu);
    let poisson = super::super::poisson_gaussian::rdp(2.0, sampled, mu);
    assert!((fixed / poisson - 4.0).abs() < 1e-4, "{}", fixed / poisson);
}

#[test]
fn ends() {
    let curve = |a: f64| a;
    assert_eq!(without_replacement(order(3.0), rate(0.0), f64::INFINITY, curve), 0.0);
    assert_eq!(without_replacement(order(3.0), rate(1.0), f64::INFINITY, curve), 3.0);
    assert_eq!(without_replacement(order(3.0), rate(0.5), f64::INFINITY, |_| f64::INFINITY), f64::INFINITY);
    assert_eq!(without_replacement(order(3.0), rate(0.5), 0.0, |_| 0.0), 0.0);
    assert!(without_replacement(order(1.0), rate(0.25), f64::INFINITY, curve) <= 0.25 * (1.0 + 1e-14));
}
