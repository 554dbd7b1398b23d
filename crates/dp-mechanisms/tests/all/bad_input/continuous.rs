//! Mechanisms that add continuous noise to vectors, and user-defined mechanisms.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Delta, Epsilon, EventLog, NoiseMultiplier, Rho, ZeroOut};
use dp_mechanisms::continual::{Factor, MatrixFactorisation, Participation, TreeAggregation};
use dp_mechanisms::custom::{Claim, CryptoRng, CustomMechanism};
use dp_mechanisms::{
    Bounded, Error, Gaussian, GaussianMixture, L1, L1Sensitivity, L2, L2Sensitivity, Laplace, LaplaceBall, Mechanism,
    Norm, SeededRng, Sensitivity, Staircase,
};

use super::constructors::{Constructor, DELTA, EPSILON, Relation, SENSITIVITY, positive};
use super::noise::{Accepted, Law};

/// One coordinate of a release of zeros.
fn zeros<A, M>(mechanism: M, sensitivity: f64, dim: usize, law: Law) -> Result<Accepted, Error>
where
    M: Mechanism<Vec<f64>, ZeroOut, Output = Vec<f64>, Norm = A> + 'static,
    A: Norm,
{
    let sensitivity = Sensitivity::<A, Relation>::new(sensitivity)?;
    let release = move |rng: &mut SeededRng| {
        let zeros = Bounded::with_proven_sensitivity(vec![0.0; dim], sensitivity);
        Ok(mechanism.release(zeros, &mut EventLog::new(), rng)?.into_inner()[0])
    };
    Ok(Accepted { law, release: Box::new(release) })
}

fn l2(x: f64) -> Result<L2Sensitivity<Relation>, Error> {
    L2Sensitivity::new(x)
}

fn normal(gaussian: Gaussian<Relation>) -> Result<Accepted, Error> {
    let law = Law::Continuous { std_dev: gaussian.std_dev(), kurtosis: 3.0 };
    zeros::<L2, _>(gaussian, gaussian.sensitivity().get(), 1, law)
}

fn laplace(laplace: Laplace<Relation>) -> Result<Accepted, Error> {
    let law = Law::Continuous { std_dev: core::f64::consts::SQRT_2 * laplace.scale(), kurtosis: 6.0 };
    zeros::<L1, _>(laplace, laplace.sensitivity().get(), 1, law)
}

/// Returns the first step of a stream of four: one node, one row.
fn tree(tree: TreeAggregation<Relation>) -> Result<Accepted, Error> {
    let law = Law::Continuous { std_dev: tree.std_dev(), kurtosis: 3.0 };
    let each = L2Sensitivity::new(f64::MIN_POSITIVE)?;
    let release = move |rng: &mut SeededRng| {
        let mut log = EventLog::new();
        let mut session = tree.start(&mut log, rng);
        let zero = Bounded::with_proven_sensitivity(vec![0.0], each);
        Ok(session.step(zero, &mut log, rng)?.get()[0])
    };
    Ok(Accepted { law, release: Box::new(release) })
}

fn matrix(matrix: MatrixFactorisation<Relation>) -> Result<Accepted, Error> {
    let law = Law::Continuous { std_dev: matrix.std_dev(), kurtosis: 3.0 };
    let each = L2Sensitivity::new(f64::MIN_POSITIVE)?;
    let release = move |rng: &mut SeededRng| {
        let mut log = EventLog::new();
        let mut session = matrix.start(&mut log, rng);
        let zero = Bounded::with_proven_sensitivity(vec![0.0], each);
        Ok(session.step(zero, &mut log, rng)?.get().prefix[0])
    };
    Ok(Accepted { law, release: Box::new(release) })
}

fn staircase(staircase: Staircase<Relation>) -> Result<Accepted, Error> {
    let sensitivity = staircase.sensitivity();
    // In units of the sensitivity, as the variance may be out of range. For large epsilons nearly all draws are on the first step, and the
    // law is the heavier-tailed the larger epsilon is: count the draws beyond the first step instead.
    let first_step = staircase.gamma() * sensitivity.get();
    let release = move |rng: &mut SeededRng| {
        let zero = Bounded::with_proven_sensitivity(0.0, sensitivity);
        let noise = staircase.release(zero, &mut EventLog::new(), rng)?.into_inner();
        Ok(f64::from(noise.abs() > first_step))
    };
    let inside = staircase.cdf(first_step) - staircase.cdf(-first_step);
    Ok(Accepted { law: Law::Discrete { probability_of_likeliest: inside }, release: Box::new(release) })
}

fn ball(ball: LaplaceBall<Relation>) -> Result<Accepted, Error> {
    let d = ball.dim() as f64;
    // A coordinate is √W N with W chi-square(d + 1): E W² / (E W)² = (d + 3)/(d + 1).
    let law = Law::Continuous { std_dev: (d + 1.0).sqrt() * ball.scale(), kurtosis: 3.0 * (d + 3.0) / (d + 1.0) };
    zeros::<L2, _>(ball, ball.sensitivity().get(), ball.dim() as usize, law)
}

pub const CONSTRUCTORS: &[Constructor] = &[
    Constructor {
        name: "Gaussian::from_std_dev",
        parameters: &[SENSITIVITY, positive("standard deviation")],
        build: |x| normal(Gaussian::from_std_dev(l2(x[0])?, x[1])?),
    },
    Constructor {
        name: "Gaussian::from_noise_multiplier",
        parameters: &[SENSITIVITY, positive("noise multiplier")],
        build: |x| normal(Gaussian::from_noise_multiplier(l2(x[0])?, NoiseMultiplier::new(x[1])?)?),
    },
    Constructor {
        name: "Gaussian::from_zcdp",
        parameters: &[SENSITIVITY, positive("rho")],
        build: |x| normal(Gaussian::from_zcdp(l2(x[0])?, Rho::new(x[1])?)?),
    },
    Constructor {
        name: "Gaussian::from_gdp",
        parameters: &[SENSITIVITY, positive("mu")],
        build: |x| normal(Gaussian::from_gdp(l2(x[0])?, x[1])?),
    },
    Constructor {
        name: "Gaussian::analytic",
        parameters: &[SENSITIVITY, EPSILON, DELTA],
        build: |x| normal(Gaussian::analytic(l2(x[0])?, Epsilon::new(x[1])?, Delta::new(x[2])?)?),
    },
    Constructor {
        name: "Gaussian::classical",
        parameters: &[SENSITIVITY, EPSILON, DELTA],
        build: |x| normal(Gaussian::classical(l2(x[0])?, Epsilon::new(x[1])?, Delta::new(x[2])?)?),
    },
    Constructor {
        name: "GaussianMixture::new",
        parameters: &[positive("sensitivity"), positive("standard deviation")],
        build: |x| {
            let mixture = GaussianMixture::<Relation>::new(x[1], vec![x[0]], vec![1.0])?;
            let law = Law::Continuous { std_dev: mixture.std_dev(), kurtosis: 3.0 };
            zeros::<L2, _>(mixture, x[0], 1, law)
        },
    },
    Constructor {
        name: "Gaussian::from_std_dev, rounded",
        parameters: &[SENSITIVITY, positive("standard deviation")],
        build: |x| normal(Gaussian::from_std_dev(l2(x[0])?, x[1])?.with_noise_mode(NoiseMode::Rounded)?),
    },
    Constructor {
        name: "LaplaceBall::new, rounded",
        parameters: &[SENSITIVITY, EPSILON],
        build: |x| ball(LaplaceBall::new(l2(x[0])?, Epsilon::new(x[1])?, 2)?.with_noise_mode(NoiseMode::Rounded)?),
    },
    Constructor {
        name: "Laplace::new",
        parameters: &[SENSITIVITY, EPSILON],
        build: |x| laplace(Laplace::new(L1Sensitivity::new(x[0])?, Epsilon::new(x[1])?)?),
    },
    Constructor {
        name: "Laplace::from_scale, rounded",
        parameters: &[SENSITIVITY, positive("scale")],
        build: |x| laplace(Laplace::from_scale(L1Sensitivity::new(x[0])?, x[1])?.with_noise_mode(NoiseMode::Rounded)?),
    },
    Constructor {
        name: "TreeAggregation::from_std_dev",
        parameters: &[SENSITIVITY, positive("standard deviation")],
        build: |x| tree(TreeAggregation::from_std_dev(l2(x[0])?, 1, 4, Participation::once(), x[1])?),
    },
    Constructor {
        name: "TreeAggregation::from_noise_multiplier",
        parameters: &[SENSITIVITY, positive("noise multiplier")],
        build: |x| {
            let multiplier = NoiseMultiplier::new(x[1])?;
            tree(TreeAggregation::from_noise_multiplier(l2(x[0])?, 1, 4, Participation::once(), multiplier)?)
        },
    },
    Constructor {
        name: "MatrixFactorisation::from_std_dev",
        parameters: &[SENSITIVITY, positive("standard deviation")],
        build: |x| {
            let factor = Factor::square_root(4)?;
            matrix(MatrixFactorisation::from_std_dev(factor, Participation::once(), l2(x[0])?, 1, x[1])?)
        },
    },
    Constructor {
        name: "Staircase::new",
        parameters: &[SENSITIVITY, EPSILON],
        build: |x| staircase(Staircase::new(L1Sensitivity::new(x[0])?, Epsilon::new(x[1])?)?),
    },
    Constructor {
        name: "LaplaceBall::new",
        parameters: &[SENSITIVITY, EPSILON],
        build: |x| ball(LaplaceBall::new(l2(x[0])?, Epsilon::new(x[1])?, 1)?),
    },
    Constructor {
        name: "LaplaceBall::from_scale",
        parameters: &[SENSITIVITY, positive("scale")],
        build: |x| ball(LaplaceBall::from_scale(l2(x[0])?, x[1], 3)?),
    },
    Constructor {
        name: "CustomMechanism::new",
        parameters: &[SENSITIVITY, positive("mu")],
        build: |x| {
            let coin = |_: Vec<f64>, rng: &mut dyn CryptoRng| Ok(vec![f64::from(rng.next_u32() & 1)]);
            let mechanism = CustomMechanism::new("a coin", Claim::Gdp(x[1]), l2(x[0])?, coin)?;
            zeros::<L2, _>(mechanism, x[0], 1, Law::Discrete { probability_of_likeliest: 0.5 })
        },
    },
];
