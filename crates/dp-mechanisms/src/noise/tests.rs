use core::num::NonZeroUsize;

use dp_accountant::certificate::NoiseMode;
use rand::Rng;

use super::*;
use crate::exact::real::{Binary, Offset, Real};
use crate::exact::source::Words;
use crate::exact::{laws, standard_laplace, standard_normal};
use crate::rng::{SeededRng, Stuck};
use crate::testing::{golden_cases, ks_distance, ks_threshold};

fn add<R: CryptoRng + ?Sized>(
    sampler: Sampler,
    law: Law,
    mut value: Vec<f64>,
    scale: f64,
    grid: Grid,
    rng: &mut R,
) -> Vec<f64> {
    match law {
        Law::Normal => sampler.add_gaussian(&mut value, scale, grid, &mut Drawing::default(), rng),
        Law::Laplace => sampler.add_laplace(&mut value, scale, grid, rng),
    }
    .unwrap();
    value
}

/// Kolmogorov-Smirnov at a false-alarm rate of 1e-9, for both laws in both modes and for values off the grid.
#[test]
fn noise_has_its_law() {
    let normal = |x: f64| 0.5 * statrs::function::erf::erfc(-x / core::f64::consts::SQRT_2);
    let laplace = |x: f64| if x < 0.0 { 0.5 * x.exp() } else { 1.0 - 0.5 * (-x).exp() };
    for (seed, sampler) in [Sampler::Exact, Sampler::Rounded].into_iter().enumerate() {
        for bits in [20, 30, 40] {
            for law in [Law::Normal, Law::Laplace] {
                let grid = Grid::new(1.7, bits).unwrap();
                let value = 12.3 * grid.step();
                let noisy = add(sampler, law, vec![value; 300_000], 1.7, grid, &mut SeededRng::new(seed as u64));
                let mut noise: Vec<f64> = noisy.iter().map(|noisy| (noisy - value) / 1.7).collect();
                let distance = match law {
                    Law::Normal => ks_distance(&mut noise, normal),
                    Law::Laplace => ks_distance(&mut noise, laplace),
                };
                // The grid itself is a distance of at most half a step's density.
                assert!(distance < ks_threshold(noise.len(), 1e-9) + 1e-6, "{sampler:?} {law:?} {bits}: {distance}");
            }
        }
    }
}

/// The block of a vector and the public samplers of single numbers are the same draws, whether one word decides them or not: at
/// 40 bits a third need more.
#[test]
fn blocks_are_rounded_as_single_numbers() {
    for (bits, scale) in [(20, 1.0), (30, 1.9), (40, 1.0), (40, 1.999)] {
        for value in [0.0, 0.3, -1.0 / 3.0, 1e-300, -5e-324, 7.25, -1e10] {
            for law in [Law::Normal, Law::Laplace] {
                let grid = Grid::new(scale, bits).unwrap();
                let (mut one, mut other) = (SeededRng::new(3), SeededRng::new(3));
                let place = grid.place(value);
                for _ in 0..500 {
                    let found = add(Sampler::Exact, law, vec![value], scale, grid, &mut one)[0];
                    let real = match law {
                        Law::Normal => standard_normal(&mut other),
                        Law::Laplace => standard_laplace(&mut other),
                    };
                    let steps = real.unwrap().round(grid.steps_up(scale), place.fraction, &mut other).unwrap();
                    assert_eq!(found, grid.join(&place, steps as f64), "{law:?} {bits} {value}");
                }
            }
        }
    }
}

/// Draws numbers as the definition says: a word for each, then the further words of each number.
fn draw_one_by_one<R: CryptoRng + ?Sized>(noise: &Exact, count: usize, is_short: bool, rng: &mut R) -> Vec<Real> {
    let mut words = vec![[0; 8]; count];
    if is_short {
        words.fill_with(|| rng.next_u64().to_le_bytes());
    } else {
        rng.fill_bytes(words.as_flattened_mut());
    }
    let table = match noise.law {
        Law::Normal => &crate::exact::table::HALF_NORMAL,
        Law::Laplace => &crate::exact::table::EXPONENTIAL,
    };
    let real = |word| laws::signed(table, laws::Word(u64::from_le_bytes(word)), &mut Words(rng)).unwrap();
    words.into_iter().map(real).collect()
}

/// Adds numbers as the definition says, each with the further words of its rounding.
fn round_one_by_one<F: RealField + Copy, R: CryptoRng + ?Sized>(
    noise: &Exact,
    values: &mut [F],
    reals: Vec<Real>,
    rng: &mut R,
) {
    for (value, real) in values.iter_mut().zip(reals) {
        let unnoised = value.to_subset_unchecked();
        let place = noise.grid.place(unnoised);
        let offset = Offset::half_above(noise.grid.exact_fraction(unnoised, &place));
        let steps = real.floor_affine(noise.multiplier, offset, &mut Words(rng)).unwrap();
        let sum = noise.grid.join_exactly(&place, steps as i64);
        *value = nalgebra::convert(sum.clamp(-largest::<F>(), largest::<F>()));
    }
}

/// Adds noise as the definition says; the numbers of a block and the digits of their rounding have streams of their own.
fn add_one_by_one<F: RealField + Copy>(noise: &Exact, values: &mut [F], rng: &mut SeededRng) {
    let is_short = |len| len <= crate::instructions::SHORT;
    if values.len() < streams::LONG {
        let reals = draw_one_by_one(noise, values.len(), is_short(values.len()), rng);
        return round_one_by_one(noise, values, reals, rng);
    }
    let key = streams::Key::draw(rng).unwrap();
    for (index, values) in values.chunks_mut(streams::BLOCK).enumerate() {
        let (mut numbers, mut digits) = (key.streams(index).numbers(), key.streams(index).digits());
        let is_short = is_short(values.len());
        for values in values.chunks_mut(512) {
            let reals = draw_one_by_one(noise, values.len(), is_short, &mut numbers);
            round_one_by_one(noise, values, reals, &mut digits);
        }
    }
}

/// Values of all kinds: on and off the grid, tiny, far away.
fn mixed<F: RealField + Copy>(len: usize) -> Vec<F> {
    let kinds = [0.0, 0.3, -1.0 / 3.0, 1e-300, -5e-324, 7.25, -1e10, f64::MAX, 0.5, -2.5];
    let value = |i: usize| kinds[i % 10] * if i.is_multiple_of(3) { 0.1 } else { 1.0 };
    (0..len).map(|i| nalgebra::convert(value(i).clamp(-largest::<F>(), largest::<F>()))).collect()
}

fn vectors_are_their_coordinates<F: RealField + Copy>() {
    for (bits, scale) in [(20, 1.0), (30, 1.9), (31, 1.0), (31, 1.99), (32, 1.1), (40, 1.999)] {
        let grid = Grid::new(scale, bits).unwrap();
        for law in [Law::Normal, Law::Laplace] {
            let noise = Exact { law, multiplier: grid.steps_up(scale), grid };
            for len in [1, 2, 16, 17, 64, 65, 255, 256, 511, 513, 4096, 4100, 4608, 9000] {
                let (mut one, mut other) = (SeededRng::new(len as u64), SeededRng::new(len as u64));
                let (mut found, mut expected) = (mixed::<F>(len), mixed::<F>(len));
                Drawing::default().add(&noise, &mut found, &mut one).unwrap();
                add_one_by_one(&noise, &mut expected, &mut other);
                let bits_of = |vector: &[F]| -> Vec<u64> {
                    let bits = |x: &F| f64::to_bits(x.to_subset_unchecked());
                    vector.iter().map(bits).collect()
                };
                assert_eq!(bits_of(&found), bits_of(&expected), "{law:?} {bits} {len}");
                assert_eq!(one.next_u64(), other.next_u64());
            }
        }
    }
}

/// The vectorised loops, in 64-bit integers below a multiplier of `2^32`, and the definition give the same bits.
#[test]
fn vectors_are_rounded_as_single_numbers() {
    vectors_are_their_coordinates::<f64>();
    vectors_are_their_coordinates::<f32>();
}

/// The noise is the same on any number of threads, and however many blocks of it are drawn before the vector is known; that of
/// another vector is not used.
#[test]
fn threads_and_earlier_draws_change_no_bit() {
    const LEN: usize = 70_003;
    // At 40 bits a third of the numbers need further digits for their rounding.
    for (sampler, bits) in [(Sampler::Exact, 30), (Sampler::Exact, 40), (Sampler::Rounded, 30)] {
        let grid = Grid::new(1.3, bits).unwrap();
        let noisy = |threads: usize, begun: Option<usize>, ahead: usize| {
            let (mut rng, mut drawing) = (SeededRng::new(4), Drawing::default());
            drawing.threads = NonZeroUsize::new(threads).unwrap();
            let mut vectors = Vec::new();
            for len in [LEN, LEN, 300, 3] {
                if let Some(begun) = begun.filter(|_| sampler.can_draw_ahead(LEN)) {
                    // The noise of another vector, from a generator of its own.
                    let rng = if begun == len { &mut rng } else { &mut SeededRng::new(9) };
                    drawing.begin(begun, rng).unwrap();
                    let drawn = (0..ahead).take_while(|_| drawing.draw_block()).count();
                    assert_eq!(drawn, ahead.min(begun.div_ceil(streams::BLOCK)));
                }
                let mut value = mixed::<f32>(len);
                sampler.add_gaussian(&mut value, 1.3, grid, &mut drawing, &mut rng).unwrap();
                assert!(!drawing.draw_block() && !drawing.has_begun(begun.unwrap_or(len)));
                vectors.push(value);
            }
            (vectors, rng.next_u64())
        };
        let expected = noisy(1, None, 0);
        assert_ne!(expected.0[0], expected.0[1]);
        for (threads, begun, ahead) in [
            (2, None, 0),
            (8, None, 0),
            (1000, None, 0),
            (1, Some(LEN), 0),
            (1, Some(LEN), 3),
            (3, Some(LEN), 3),
            (3, Some(LEN), 99),
            (2, Some(5_000), 1),
        ] {
            assert_eq!(expected, noisy(threads, begun, ahead), "{sampler:?} {threads} {begun:?} {ahead}");
        }
    }
}

/// Several threads draw the blocks ahead, each once and each in its place, up to a limit.
#[test]
fn blocks_are_drawn_ahead_on_several_threads() {
    let mut drawing = Drawing::default();
    assert!(!drawing.draw_block());
    let len = 40 * streams::BLOCK - 1;
    drawing.begin(len, &mut SeededRng::new(1)).unwrap();
    let drawn = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while drawing.draw_block() {
                    drawn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(drawn.into_inner(), 40);
    let grid = Grid::new(1.0, 30).unwrap();
    let noisy = |drawing: &mut Drawing, rng: &mut SeededRng| {
        let mut value = vec![0.0f64; len];
        Sampler::Exact.add_gaussian(&mut value, 1.0, grid, drawing, rng).unwrap();
        value
    };
    let of_one = noisy(&mut Drawing::default(), &mut SeededRng::new(1));
    assert!(noisy(&mut drawing, &mut SeededRng::new(2)) == of_one);

    assert_eq!(drawing.begin(300, &mut Stuck(5)), Err(Error::StuckGenerator));
    assert!(!drawing.has_begun(300) && !drawing.draw_block());
    drawing.begin(usize::MAX, &mut SeededRng::new(1)).unwrap();
    assert_eq!((0..).take_while(|_| drawing.draw_block()).count(), 1024);
}

/// Realised noise is never below the claimed noise: the multiplier is rounded up.
#[test]
fn multipliers_are_rounded_up() {
    for (scale, bits, expected) in [
        (1.0, 20, 1 << 20),
        (1.0 + f64::EPSILON, 20, (1 << 20) + 1),
        (1.3, 20, 1_363_149),
        (2.0f64.next_down(), 40, 1 << 41),
    ] {
        let grid = Grid::new(scale, bits).unwrap();
        assert_eq!(grid.steps_up(scale), expected);
        assert!(grid.steps_up(scale) as f64 * grid.step() >= scale);
    }
}

/// A value below the least double, in steps, still has a sign, which decides an apparent tie.
#[test]
fn fractions_below_the_least_double_count() {
    let grid = Grid::new(1e290, 20).unwrap();
    for (value, expected) in [(5e-324, 1), (-5e-324, 0), (0.0, 1)] {
        let place = grid.place(value);
        let offset = Offset::half_above(grid.exact_fraction(value, &place));
        // Exactly 1/2 with all its digits: 2 · 1/4.
        let real = Real { head: 1 << 40, head_bits: 42, known: vec![0; 90] };
        assert_eq!(real.floor_affine(2, offset, &mut Words(&mut Stuck(0))), Ok(expected), "{value}");
    }
}

/// Frequencies of rounded numbers of small multipliers, by Bernstein's inequality at 1e-9 each: the golden ones, and all
/// integers of the multipliers 1 to 5 with fractions.
#[test]
fn rounded_normals_have_their_frequencies() {
    const COUNT: usize = 400_000;
    let fits = |found: usize, probability: f64| {
        let log = (2.0 / 1e-9f64).ln();
        let n = COUNT as f64;
        let allowance = log / 3.0 + (log * log / 9.0 + 2.0 * n * probability * (1.0 - probability) * log).sqrt();
        (found as f64 - n * probability).abs() < allowance
    };
    let draw = |multiplier: u64, fraction: f64, seed: u64| -> Vec<i64> {
        let mut rng = SeededRng::new(seed);
        (0..COUNT).map(|_| standard_normal(&mut rng).unwrap().round(multiplier, fraction, &mut rng).unwrap()).collect()
    };
    let mut golden = 0;
    for case in golden_cases("mechanisms.json", "rounded_gaussian") {
        let (scale, k) = (case.input("s"), case.input("k") as i64);
        if scale.fract() == 0.0 {
            let found = draw(scale as u64, 0.0, k as u64).iter().filter(|&&drawn| drawn == k).count();
            assert!(fits(found, case.output("pmf")), "{} {found}", case.id);
            golden += 1;
        }
    }
    assert!(golden >= 3 || std::env::var_os("DP_GOLDEN_DIR").is_some());
    let cdf = |x: f64| 0.5 * statrs::function::erf::erfc(-x / core::f64::consts::SQRT_2);
    for multiplier in 1..=5u32 {
        let fraction = f64::from(multiplier) * 0.17 - 0.5;
        let sample = draw(u64::from(multiplier), fraction, 50);
        let position = |edge: f64| cdf((edge - fraction) / f64::from(multiplier));
        for k in -20..=20i64 {
            let found = sample.iter().filter(|&&drawn| drawn == k).count();
            let probability = position(k as f64 + 0.5) - position(k as f64 - 0.5);
            assert!(fits(found, probability), "{multiplier} {k} {found}");
        }
    }
}

#[test]
fn modes() {
    assert_eq!(Sampler::of(NoiseMode::Exact), Ok(Sampler::Exact));
    assert_eq!(Sampler::of(NoiseMode::Rounded), Ok(Sampler::Rounded));
    assert_eq!(Sampler::of(NoiseMode::None), Err(Error::UnavailableNoise { mode: NoiseMode::None }));
    for sampler in [Sampler::Exact, Sampler::Rounded] {
        assert_eq!(Sampler::of(sampler.mode()), Ok(sampler));
    }
}

/// For any repeated word of a generator, each sampler ends; zeros and ones, which would give no noise, are refused.
#[test]
fn stuck_generators_end() {
    let grid = Grid::new(1.0, 30).unwrap();
    for word in [0, u64::MAX, 1, 1 << 63, 0x5555_5555_5555_5555, 0x0123_4567_89ab_cdef, 0xffff_ffff_0000_0000] {
        let stuck = || Stuck(word);
        let ends = [
            Sampler::Exact.add_gaussian(&mut [0.0f64; 3], 1.0, grid, &mut Drawing::default(), &mut stuck()).is_err(),
            Sampler::Exact.add_laplace(&mut [0.0f64; 3], 1.0, grid, &mut stuck()).is_err(),
            Sampler::Exact.add_laplace_ball(&mut [0.0f64; 3], 1.0, grid, &mut stuck()).is_err(),
            crate::exact::discrete_laplace(3, 2, &mut stuck()).is_err(),
            crate::exact::discrete_gaussian(9, 2, &mut stuck()).is_err(),
            standard_normal(&mut stuck()).and_then(|real| real.round(7, 0.1, &mut stuck())).is_err(),
        ];
        if word == 0 || word == u64::MAX {
            assert_eq!(ends, [true; 6], "{word:x}");
        }
        let _ = crate::exact::uniform_below(10, &mut stuck());
        let _ = crate::exact::bernoulli_exp(1, 1, &mut stuck());
        let _ = crate::exact::bernoulli_exp(u128::MAX, 1, &mut stuck());
        let _ = crate::exact::bernoulli_f64(0.3, &mut stuck());
        let _ = laws::exponential(&mut Words(&mut stuck()));
        // Of any word there is no key for a long vector.
        let long = &mut [0.0f64; streams::LONG];
        let stuck_key = Err(Error::StuckGenerator);
        assert_eq!(Sampler::Exact.add_laplace(long, 1.0, grid, &mut stuck()), stuck_key);
        assert_eq!(Sampler::Rounded.add_laplace(long, 1.0, grid, &mut stuck()), stuck_key);
        // A stuck generator gives no release.
        assert_eq!(crate::rng::refuse_stuck(&mut stuck()), Err(Error::StuckGenerator));
    }
    assert!(matches!(Binary::ZERO.floor_big(10), (zero, true) if zero == num_bigint::BigInt::ZERO));
}
