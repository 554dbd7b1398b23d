#![allow(missing_docs)]
use dp_accountant::*;
fn main() {
    let d = Delta::new(1e-5).unwrap();
    for (q, t, targets) in [(0.01f64, 1000u64, 1.533f64), (0.005, 2000, 2.004), (0.001, 10000, 1.460), (0.2, 50, 1.249)]
    {
        // noise where the old path gives the target
        let one = |m: f64| DpEvent::SelfComposed {
            event: Box::new(DpEvent::PoissonSampled {
                sampling_rate: q,
                event: Box::new(DpEvent::Gaussian { std_dev: m, sensitivity: 1.0 }),
            }),
            count: t,
        };
        for m in std::env::args().skip(1).map(|x| x.parse::<f64>().unwrap()) {
            let e = one(m);
            let ar = bound::epsilon(&e, d).unwrap().value;
            let group = bound::epsilon(&DpEvent::Group { size: 2, event: Box::new(e.clone()) }, d).unwrap().value;
            let tw = DpEvent::AddRemoveTwice { event: Box::new(e.clone()) };
            let s = std::time::Instant::now();
            let b = exact::PrivacyCurve::new(&tw).unwrap().epsilon(d).unwrap();
            let el = s.elapsed();
            let s = std::time::Instant::now();
            let bb = bound::epsilon(&tw, d).unwrap();
            println!(
                "q {q} T {t} m {m}: add/remove {ar:.4} path {group:.4} new {:?} {el:?}; bound {bb:?} {:?}; renyi {}",
                b,
                s.elapsed(),
                rdp::RdpCurve::new(&tw).unwrap().epsilon(d)
            );
        }
        let _ = targets;
    }
}
