//! scratch
#![allow(missing_docs)]
use dp_accountant::{Delta, DpEvent, RdpOrder, rdp::RdpCurve};
use std::time::Instant;
fn time(name: &str, event: &DpEvent, delta: f64) {
    let delta = Delta::new(delta).unwrap();
    let curve = RdpCurve::new(event).unwrap();
    let start = Instant::now();
    let mut n = 0;
    let mut e = 0.0;
    while n < 2000 && start.elapsed().as_millis() < 300 {
        e = curve.epsilon(delta);
        n += 1;
    }
    let t = start.elapsed().as_secs_f64() / n as f64;
    println!("{name:40} eps {e:.10} in {:.1} us", t * 1e6);
}
fn times(n: u64, e: DpEvent) -> DpEvent {
    DpEvent::SelfComposed { event: Box::new(e), count: n }
}
fn poisson(q: f64, e: DpEvent) -> DpEvent {
    DpEvent::PoissonSampled { sampling_rate: q, event: Box::new(e) }
}
fn wor(q: f64, e: DpEvent) -> DpEvent {
    DpEvent::SampledWithoutReplacement { sampling_rate: q, event: Box::new(e) }
}
fn g(s: f64) -> DpEvent {
    DpEvent::Gaussian { std_dev: s, sensitivity: 1.0 }
}
fn l(s: f64) -> DpEvent {
    DpEvent::Laplace { scale: s, sensitivity: 1.0 }
}
fn all(v: Vec<DpEvent>) -> DpEvent {
    DpEvent::Composed { events: v }
}
fn main() {
    time("gaussians", &times(100, g(10.0)), 1e-6);
    time("laplace+gauss", &all(vec![times(100, l(30.0)), times(10, g(10.0))]), 1e-6);
    time("dpsgd", &times(10000, poisson(0.01, g(1.0))), 1e-5);
    time("dpsgd 256/60000", &times(14062, poisson(256.0 / 60000.0, g(1.1))), 1e-5);
    time("q=.001 s=.6", &times(20000, poisson(0.001, g(0.6))), 1e-7);
    time("q=.001 s=100", &times(1000, poisson(0.001, g(100.0))), 1e-12);
    time("q=1e-4 s=.8", &times(1000000, poisson(1e-4, g(0.8))), 1e-8);
    time("q=1e-4 s=.01", &times(10, poisson(1e-4, g(0.01))), 1e-8);
    time("q=.5 s=1000", &times(10, poisson(0.5, g(1000.0))), 1e-300);
    time("poisson laplace", &times(1000, poisson(0.01, l(1.0))), 1e-6);
    time("poisson laplace+gauss", &times(1000, poisson(0.01, all(vec![l(5.0), g(2.0)]))), 1e-6);
    time("poisson zcdp", &times(1000, poisson(0.01, DpEvent::Zcdp { rho: 0.5 })), 1e-6);
    time("wor gauss", &times(1000, wor(0.01, g(4.0))), 1e-6);
    time("wor laplace", &times(1000, wor(0.01, l(1.0))), 1e-6);
    time("wor laplace 5", &times(1000, wor(0.01, l(5.0))), 1e-6);
    time("wor pure", &times(1000, wor(0.01, DpEvent::PureDp { epsilon: 1.0 })), 1e-6);
    time("group of dpsgd", &DpEvent::Group { size: 3, event: Box::new(times(10000, poisson(0.01, g(1.0)))) }, 1e-5);
    let mut nest = l(2.0);
    for i in 0..60 {
        nest = poisson(0.5, all(vec![nest, l(3.0 + i as f64), g(7.0)]));
    }
    time("nested poisson 60", &nest, 1e-5);
    let mut nest = l(2.0);
    for i in 0..60 {
        nest = wor(0.5, all(vec![nest, l(3.0 + i as f64), g(7.0)]));
    }
    time("nested wor 60", &nest, 1e-5);
    let mut nest = l(2.0);
    for i in 0..60 {
        nest = DpEvent::Group { size: 50, event: Box::new(poisson(0.5, all(vec![nest, l(3.0 + i as f64), g(7.0)]))) };
    }
    time("nested group poisson 60", &nest, 1e-5);
    let wide = all((0..60).map(|i| poisson(0.01, all(vec![l(30.0 + i as f64), g(17.0)]))).collect());
    time("wide poisson 60", &wide, 1e-5);
    let wide = all((0..60).map(|i| wor(0.01, g(17.0 + i as f64))).collect());
    time("wide wor 60", &wide, 1e-5);
    let wide = all((0..1000).map(|i| poisson(0.01, g(17.0 + i as f64))).collect());
    time("wide dpsgd 1000", &wide, 1e-5);
    let curve = RdpCurve::new(&poisson(0.01, g(1.0))).unwrap();
    for a in [1.001, 1.5, 3.0, 8.0, 64.5, 1000.0, 1e6] {
        let o = RdpOrder::new(a).unwrap();
        let s = Instant::now();
        for _ in 0..1000 {
            std::hint::black_box(curve.at(std::hint::black_box(o)));
        }
        println!("order {a}: {:.2} us", s.elapsed().as_secs_f64() * 1e3);
    }
}
