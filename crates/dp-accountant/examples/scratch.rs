#![allow(missing_docs)]
use dp_accountant::*;
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    s.split(' ').next().unwrap().parse::<f64>().unwrap() * 1e-9
}
fn sg(q: f64, s: f64, n: u64) -> DpEvent {
    DpEvent::SelfComposed {
        event: Box::new(DpEvent::PoissonSampled {
            sampling_rate: q,
            event: Box::new(DpEvent::Gaussian { std_dev: s, sensitivity: 1.0 }),
        }),
        count: n,
    }
}
fn n(e: DpEvent, n: u64) -> DpEvent {
    DpEvent::SelfComposed { event: Box::new(e), count: n }
}
fn main() {
    let ball = |s, d| DpEvent::LaplaceBall { scale: s, sensitivity: 1.0, dim: d };
    let lap = |s| DpEvent::Laplace { scale: s, sensitivity: 1.0 };
    let cases: Vec<(&str, DpEvent, f64, f64)> = vec![
        ("sg3", sg(0.01, 1.0, 3), 1e-5, 0.3),
        ("sg 1e-9", sg(1e-9, 2.28, 4980), 2.668e-251, 0.0387),
        ("sg 5e7", sg(0.1508, 0.659, 50440000), 1e-5, 0.6374),
        ("sg 1000 .0036", sg(0.01, 0.0036, 1000), 1e-5, 1e5),
        ("sg 20 .37 .999", sg(0.632, 0.369, 20), 0.999, 1.0),
        ("ball50", n(ball(2.0, 50), 10), 1e-6, 0.5),
        ("ball500", n(ball(2.0, 500), 10), 1e-6, 0.5),
        ("ball3000", n(ball(200.0, 3000), 10000), 1e-6, 0.5),
        ("lap10", n(lap(10.0), 10), 1e-6, 0.5),
        ("lap .0046", n(lap(0.01), 10), 1e-100, 900.0),
        ("rr", n(DpEvent::RandomizedResponse { buckets: 7, noise: 0.5 }, 100), 1e-6, 50.0),
        ("dg", n(DpEvent::DiscreteGaussian { scale: 20.0, sensitivity: 1.0, dim: 1 }, 200), 1e-6, 1.0),
        ("shuf", n(DpEvent::Shuffled { epsilon: 1.0, records: 100000 }, 10), 1e-6, 0.1),
    ];
    for (name, e, d, eps) in cases {
        for lim in [f64::INFINITY, 1e8, 0.0] {
            let t = cpu();
            let a = work::limited(lim, || exact::epsilon(&e, Delta::new(d).unwrap()));
            let ta = cpu() - t;
            let t = cpu();
            let b = work::limited(lim, || exact::delta(&e, eps));
            let tb = cpu() - t;
            let sh = |x: Result<exact::Bracket, Error>| match x {
                Ok(b) => format!("{:.6e} {:.6e}", b.lower, b.upper),
                Err(e) => e.to_string(),
            };
            println!(
                "{name:15} {lim:7.0e} eps {:.3}s {:.2e} {} {} | del {:.3}s {:.2e} {} {}",
                ta,
                a.spent,
                a.is_short,
                sh(a.value),
                tb,
                b.spent,
                b.is_short,
                sh(b.value)
            );
        }
    }
}
