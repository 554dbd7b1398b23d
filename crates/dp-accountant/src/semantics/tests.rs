use super::*;
use crate::adjacency::AdjacencyKind;
use crate::event::DpEvent;
use crate::gaussian;
use crate::normal::upper_tail;

fn pair(epsilon: f64, delta: f64) -> (Epsilon, Delta) {
    (Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap())
}

/// The pair of laws with every privacy loss that `(epsilon, delta)` allows: it reveals the data with probability delta and
/// otherwise answers by randomised response. It attains all bounds for one pair.
#[test]
fn one_pair_is_reached_by_the_mechanism_that_has_no_more() {
    for (epsilon, delta) in [(0.3f64, 0.0), (1.0, 1e-3), (4.0, 0.2)] {
        let truth = (1.0 - delta) * epsilon.exp() / (1.0 + epsilon.exp());
        let lie = (1.0 - delta) - truth;
        // P: delta, truth, lie, 0; Q: 0, lie, truth, delta.
        let exact = delta + truth - lie;
        let (epsilon, delta_) = pair(epsilon, delta);
        assert!((advantage(epsilon, delta_) - exact).abs() < 1e-14);
        // The test accuses on the revealing outcome and the first answer.
        let rate = true_positive_rate(lie, epsilon, delta_).unwrap();
        assert!((rate - (delta + truth)).abs() < 1e-13 && rate >= delta + truth - 1e-15, "{rate}");
        assert_eq!(reconstruction(lie, epsilon, delta_).unwrap(), rate);
        assert_eq!(true_positive_rate(1.0, epsilon, delta_).unwrap(), 1.0);
    }
}

#[test]
fn a_curve_says_more_than_any_pair_of_it() {
    let mu = 0.9;
    let curve = |epsilon| gaussian::delta(mu, epsilon);
    let exact_advantage = 1.0 - 2.0 * upper_tail(0.5 * mu);
    assert!((of_curve::advantage(curve).unwrap() - exact_advantage).abs() < 1e-14);
    for epsilon in [0.1, 1.0, 3.0] {
        let (epsilon, delta) = pair(epsilon, gaussian::delta(mu, epsilon).unwrap());
        assert!(advantage(epsilon, delta) >= exact_advantage);
        for threshold in [-1.0, 0.5, 2.0, 4.0] {
            let (false_positive, true_positive) = (upper_tail(threshold), upper_tail(threshold - mu));
            let by_pair = true_positive_rate(false_positive, epsilon, delta).unwrap();
            let by_curve = of_curve::true_positive_rate(false_positive, curve).unwrap();
            assert!(by_curve >= true_positive * (1.0 - 1e-14) && by_curve <= by_pair * (1.0 + 1e-9));
            assert!((by_curve - true_positive).abs() < 1e-8);
        }
    }
}

#[test]
fn small_rates_keep_their_digits() {
    for mu in [0.01, 0.3, 2.0] {
        for threshold in [3.0, 6.0, 9.0, 30.0] {
            let (false_positive, true_positive) = (upper_tail(threshold), upper_tail(threshold - mu));
            let got = of_curve::true_positive_rate(false_positive, |epsilon| gaussian::delta(mu, epsilon)).unwrap();
            assert!((got / true_positive - 1.0).abs() < 1e-8, "{mu} {threshold}: {got} {true_positive}");
        }
    }
    let got = of_curve::true_positive_rate(0.0, |epsilon| gaussian::delta(1.0, epsilon)).unwrap();
    assert!(got < 1e-14, "{got}");
}

#[test]
fn the_bayes_factor_is_exceeded_no_more_often_than_stated() {
    for mu in [0.1, 1.0, 4.0] {
        let curve = |epsilon| gaussian::delta(mu, epsilon);
        for failure in [1e-9, 1e-4, 0.05] {
            // The loss is normal with mean mu^2/2 and deviation mu.
            let exceeded = |log_factor: f64| upper_tail((log_factor - 0.5 * mu * mu) / mu);
            let by_curve = of_curve::bayes_factor(failure, curve).unwrap();
            assert!(by_curve.is_finite() && exceeded(by_curve) <= failure, "{mu} {failure}: {by_curve}");
            for epsilon in [1.0, 5.0, 20.0] {
                let (epsilon, delta) = pair(epsilon, gaussian::delta(mu, epsilon).unwrap().min(0.5));
                let by_pair = bayes_factor(failure, epsilon, delta).unwrap();
                assert!(by_pair >= by_curve * (1.0 - 1e-6), "{mu} {failure} {epsilon}: {by_pair} {by_curve}");
            }
        }
    }
    let (epsilon, delta) = pair(1.0, 1e-6);
    assert_eq!(bayes_factor(1e-7, epsilon, delta).unwrap(), f64::INFINITY);
    assert_eq!(bayes_factor(0.0, epsilon, delta).unwrap(), f64::INFINITY);
    assert_eq!(bayes_factor(0.0, epsilon, Delta::ZERO).unwrap(), 1.0);
    assert_eq!(of_curve::bayes_factor(0.5, |_| Ok(1.0)).unwrap(), f64::INFINITY);
}

#[test]
fn posteriors() {
    for prior in [1e-300, 0.01, 0.5, 1.0] {
        for log_factor in [0.0, 1.0, 30.0] {
            let got = posterior(prior, log_factor).unwrap();
            let odds = prior * log_factor.exp() / (1.0 - prior);
            let expected = if prior == 1.0 { 1.0 } else { odds / (1.0 + odds) };
            assert!((got / expected - 1.0).abs() < 1e-13 && got <= 1.0, "{prior} {log_factor}: {got}");
        }
        assert_eq!(posterior(prior, f64::INFINITY).unwrap(), 1.0);
    }
    assert!(posterior(1.1, 1.0).is_err() && posterior(0.5, f64::NAN).is_err() && posterior(0.5, -1.0).is_err());
    let (epsilon, delta) = pair(1.0, 1e-6);
    assert!(true_positive_rate(f64::NAN, epsilon, delta).is_err() && reconstruction(-0.1, epsilon, delta).is_err());
}

/// Attained by an observer who sees only whether the loss is above `s`: normal tails, with `s` chosen so that this alone changes
/// the odds by `e^t`.
#[test]
fn odds_rise_as_often_as_for_whoever_sees_one_threshold() {
    for mu in [0.05, 0.237, 1.0, 4.0, 12.0] {
        let curve = |epsilon| gaussian::delta(mu, epsilon);
        let tails = |s: f64| (upper_tail(s / mu - 0.5 * mu), upper_tail(s / mu + 0.5 * mu));
        for t in [0.01, 0.3, 1.0, 5.0] {
            let (mut low, mut high) = (-50.0, t);
            for _ in 0..200 {
                let s = 0.5 * (low + high);
                let (p, q) = tails(s);
                if p < t.exp() * q { low = s } else { high = s }
            }
            let (exact, of_the_loss) = (tails(high).0, tails(t).0);
            if exact < 1e-250 {
                continue;
            }
            let got = of_curve::odds_beyond(t, curve).unwrap();
            assert!(got >= exact * (1.0 - 1e-9) && got <= exact * (1.0 + 1e-6), "{mu} {t}: {got} {exact}");
            assert!(got > of_the_loss);
            for epsilon in [0.1, 1.0, 4.0] {
                let (epsilon, delta) = pair(epsilon, curve(epsilon).unwrap());
                assert!(odds_beyond(t, epsilon, delta).unwrap() >= got * (1.0 - 1e-6), "{mu} {t} {epsilon:?}");
            }
        }
    }
    let (one, none) = pair(1.0, 0.0);
    assert_eq!(odds_beyond(1.5, one, none).unwrap(), 0.0);
    let response = |epsilon: f64| Ok(((1f64.exp() - epsilon.exp()) / (1.0 + 1f64.exp())).max(0.0));
    assert_eq!(of_curve::odds_beyond(1.5, response).unwrap(), 0.0);
    assert_eq!(of_curve::odds_beyond(2.0, |_| Ok(1.0)).unwrap(), 1.0);
    assert!(odds_beyond(-1.0, one, none).is_err() && of_curve::odds_beyond(f64::NAN, |_| Ok(1.0)).is_err());
}

#[test]
fn a_release_without_a_curve_is_worth_its_statement() {
    let event = DpEvent::ApproximateDp { epsilon: 1.0, delta: 0.9 };
    let (epsilon, delta) = pair(1.0, 0.9);
    let found = Protection::of_event(&event, AdjacencyKind::ReplaceOne, epsilon, delta).unwrap();
    assert!((found.advantage - advantage(epsilon, delta)).abs() < 1e-9);
    assert_eq!(found.failure, 1.0);
    // All its possible outcomes together change the odds tenfold: the others have a tenth of the mass.
    assert_eq!(found.odds_beyond_epsilon, 1.0);
    let nothing = Protection::of_curve(f64::INFINITY, 0.0, f64::INFINITY, |_| Ok(1.0)).unwrap();
    assert_eq!((nothing.advantage, nothing.true_positive_rates[0].at_most), (1.0, 1.0));
    assert!(Protection::of_curve(1.0, f64::NAN, 1.0, |_| Ok(0.0)).is_err());
    let sampled = DpEvent::PoissonSampled { sampling_rate: 0.1, event: Box::new(event) };
    assert!(Protection::of_event(&sampled, AdjacencyKind::ReplaceOne, epsilon, delta).is_err());
}
