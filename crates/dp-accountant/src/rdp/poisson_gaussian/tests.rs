use super::rdp;

/// Returns the binomial sum at an integer order: all terms positive.
fn binomial_sum(order: u32, rate: f64, mu: f64) -> f64 {
    let a = f64::from(order);
    let mut log_binomial = 0.0;
    let mut logs = Vec::new();
    for k in 1..=order {
        let j = f64::from(k);
        log_binomial += ((a - j + 1.0) / j).ln();
        if k >= 2 {
            let exponent = 0.5 * j * (j - 1.0) * mu * mu;
            let log_exp_m1 = crate::logspace::log_exp_m1(exponent);
            logs.push(log_binomial + j * rate.ln() + (a - j) * (-rate).ln_1p() + log_exp_m1);
        }
    }
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let log = top + logs.iter().map(|log| (log - top).exp()).sum::<f64>().ln();
    crate::logspace::log_one_plus_exp(log) / (a - 1.0)
}

#[test]
fn is_the_binomial_sum_at_integer_orders() {
    for order in [2, 3, 5, 17, 64, 255, 1000] {
        for rate in [1e-9, 1e-4, 0.01, 0.3, 0.9, 1.0 - 1e-9] {
            for mu in [1e-4, 1e-2, 0.3, 0.9, 1.7, 4.0, 20.0, 100.0] {
                let (got, expected) = (rdp(order.into(), rate, mu), binomial_sum(order, rate, mu));
                let error = got / expected - 1.0;
                // The sum itself is accurate to about 1e-16 times the largest exponent.
                assert!(error.abs() < 1e-11, "order {order}, rate {rate}, mu {mu}: {got} {expected} {error:e}");
            }
        }
    }
}

/// From 40-digit trapezoid sums of the defining integral.
#[test]
fn matches_high_precision_values_at_real_orders() {
    for (order, rate, mu, expected) in REFERENCE {
        let error = rdp(order, rate, mu) / expected - 1.0;
        // Where the two peaks are about equally large, the result is ill-conditioned in the order.
        let tolerance = if order < 1e3 { 1e-12 } else { 1e-11 };
        assert!(error.abs() < tolerance && error > -1e-14, "{order} {rate} {mu}: {error:e}");
    }
}

#[rustfmt::skip]
const REFERENCE: [(f64, f64, f64, f64); 20] = [
    (1.0001, 1e-09, 0.0001, 5.000500025002501e-27),
    (1.0001, 0.5, 1.0, 0.1385956678289324),
    (1.0001, 0.001, 0.01, 5.0007495335178417e-11),
    (1.5, 1e-09, 1.0, 1.2887113696029476e-18),
    (1.01, 0.999, 3.0, 4.536606452278166),
    (1.3, 1e-06, 12.0, 33.73292182167276),
    (2.5, 1e-05, 20.0, 480.81179089171627),
    (7.3, 0.01, 1.0, 0.0007584451070574613),
    (33.3, 0.0001, 0.7, 1.0553385407499346e-07),
    (1000.5, 1e-09, 0.2, 2.0415590632985706e-17),
    (12345.6, 0.01, 0.01, 6.249801312939014e-05),
    (10000.0, 0.001, 0.1, 43.091553876405506),
    (100000.0, 0.001, 0.001, 5.0005020571984524e-08),
    (3.7, 0.3, 0.5, 0.05198462689927251),
    (64.2, 1e-06, 1.6666666666666667, 75.1325562581017),
    (1.7, 0.9, 0.01, 6.885046817264801e-05),
    (1.001, 1e-07, 5.0, 5.904813599485668e-08),
    (500.5, 1e-09, 0.3, 1.7577461433900035),
    (10000.5, 0.2, 0.02, 0.47426352334557853),
    (2000.25, 1e-09, 0.14, 1.9795816051739078e-17),
];

#[test]
fn is_finite_positive_and_monotone_in_everything() {
    let orders = [1.0, 1.0 + 1e-12, 1.0001, 1.3, 1.999, 2.0, 2.001, 5.5, 40.0, 999.9, 3e4, 1e6, 1e12, 1e15];
    let rates = [1e-300, 1e-100, 1e-9, 1e-5, 0.01, 0.4, 0.9, 1.0 - 1e-9, 1.0 - f64::EPSILON];
    let mus = [1e-150, 1e-80, 1e-20, 1e-4, 0.01, 0.3, 1.0, 3.0, 30.0, 100.0, 1e4, 1e50, 1e100];
    let tiny = f64::MIN_POSITIVE;
    for (i, &order) in orders.iter().enumerate() {
        for (j, &rate) in rates.iter().enumerate() {
            for (k, &mu) in mus.iter().enumerate() {
                let value = rdp(order, rate, mu);
                assert!(value > 0.0 && !value.is_nan() && value <= 0.5 * order * mu * mu * (1.0 + 1e-12) + tiny);
                let before = |order, rate, mu| assert!(rdp(order, rate, mu) <= value * (1.0 + 1e-9) + tiny);
                if i > 0 {
                    before(orders[i - 1], rate, mu);
                }
                if j > 0 {
                    before(order, rates[j - 1], mu);
                }
                if k > 0 {
                    before(order, rate, mus[k - 1]);
                }
            }
        }
    }
}

/// `E[w ln w]` is the divergence of order 1.
#[test]
fn the_order_one_limit_is_reached() {
    for (rate, mu) in [(1e-4, 0.5), (0.3, 1.0), (0.9, 4.0)] {
        let step = 1e-3;
        let mean: f64 = (-20_000..40_000)
            .map(|i| f64::from(i) * step)
            .map(|y: f64| {
                let v = rate * (mu * y - 0.5 * mu * mu).exp_m1();
                crate::normal::density(y) * ((1.0 + v) * v.ln_1p() - v) * step
            })
            .sum();
        assert!((rdp(1.0, rate, mu) / mean - 1.0).abs() < 1e-6, "{rate} {mu}");
        assert!((rdp(1.0 + 1e-9, rate, mu) / rdp(1.0, rate, mu) - 1.0).abs() < 1e-6);
    }
}
