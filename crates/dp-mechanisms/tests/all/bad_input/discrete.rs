//! Mechanisms with countable outcomes: integers, answers, selections.

use dp_accountant::{Epsilon, EventLog, NoiseMultiplier, ReplaceOne, Rho};
use dp_mechanisms::scores::Scores;
use dp_mechanisms::sparse_vector::Answer;
use dp_mechanisms::{
    AboveThreshold, Bounded, DiscreteGaussian, DiscreteLaplace, Error, Exponential, GaussianAboveThreshold,
    L1Sensitivity, L2Sensitivity, LInf, LInfSensitivity, Mechanism, NoisyMax, PermuteAndFlip, RandomizedResponse,
    Secret, SeededRng,
};

use super::constructors::{Constructor, EPSILON, Parameter, Relation, SENSITIVITY, positive};
use super::noise::{Accepted, Law};

/// An integer sensitivity.
const WHOLE_SENSITIVITY: Parameter = Parameter {
    name: "sensitivity",
    never: |x| !(x > 0.0 && x.fract() == 0.0 && x <= 9_007_199_254_740_992.0),
    good: 1.0,
};

/// A probability that is neither 0 nor 1.
const PROPER_PROBABILITY: Parameter =
    Parameter { name: "noise", never: |x| !(x > 0.0 && x < 1.0 && x.is_normal()), good: 0.5 };

fn integer_law(probability_of_0: f64, variance: f64) -> Law {
    if probability_of_0 > 0.01 {
        Law::Discrete { probability_of_likeliest: probability_of_0 }
    } else {
        Law::Continuous { std_dev: variance.sqrt(), kurtosis: 6.0 }
    }
}

fn discrete_laplace(mechanism: DiscreteLaplace<Relation>) -> Result<Accepted, Error> {
    let release = move |rng: &mut SeededRng| {
        let zero = Bounded::with_proven_sensitivity(0_i64, mechanism.sensitivity());
        Ok(mechanism.release(zero, &mut EventLog::new(), rng)?.into_inner() as f64)
    };
    Ok(Accepted { law: integer_law(mechanism.pmf(0), mechanism.variance()), release: Box::new(release) })
}

fn discrete_gaussian(mechanism: DiscreteGaussian<Relation>) -> Result<Accepted, Error> {
    let release = move |rng: &mut SeededRng| {
        let zero = Bounded::with_proven_sensitivity(0_i64, mechanism.sensitivity());
        Ok(mechanism.release(zero, &mut EventLog::new(), rng)?.into_inner() as f64)
    };
    Ok(Accepted { law: integer_law(mechanism.pmf(0), mechanism.variance()), release: Box::new(release) })
}

fn response(mechanism: RandomizedResponse) -> Result<Accepted, Error> {
    let release = move |rng: &mut SeededRng| {
        let answer = mechanism.release(Secret::new(1), &mut EventLog::<ReplaceOne>::new(), rng)?;
        Ok(f64::from(*answer.get() != 1))
    };
    let law = Law::Discrete { probability_of_likeliest: mechanism.probability_of_truth() };
    Ok(Accepted { law, release: Box::new(release) })
}

/// Returns a selection between two candidates whose scores differ by the sensitivity.
fn choice<M>(mechanism: M, sensitivity: f64, law: fn(&M, &Scores) -> Result<Vec<f64>, Error>) -> Result<Accepted, Error>
where
    M: Mechanism<Scores, Relation, Norm = LInf, Output = usize> + 'static,
{
    let scores = Scores::new(vec![0.0, sensitivity])?;
    let probabilities = law(&mechanism, &scores)?;
    assert!((probabilities[0] + probabilities[1] - 1.0).abs() < 1e-8, "{probabilities:?}");
    let bound = LInfSensitivity::new(sensitivity)?;
    let release = move |rng: &mut SeededRng| {
        let input = Bounded::with_proven_sensitivity(scores.clone(), bound);
        Ok(f64::from(*mechanism.release(input, &mut EventLog::new(), rng)?.get() == 0))
    };
    Ok(Accepted { law: Law::Discrete { probability_of_likeliest: probabilities[1] }, release: Box::new(release) })
}

/// One query at the threshold.
fn comparison(mechanism: AboveThreshold<Relation>) -> Result<Accepted, Error> {
    // Noise that is not a double in the units of the queries is still drawn, on the lattice.
    let above = match mechanism.first_answer(&[0.0], 0.0) {
        Err(Error::ScaleOverflow { .. }) => 0.5,
        law => law?[0],
    };
    assert!((above - 0.5).abs() < 1e-6, "{above} {mechanism:?}");
    // Noise far below a step of the lattice, 2^-30 sensitivities, is rounded down to 0 or -1, with probability 1/2 each, and of
    // equal numbers the query is above.
    let below_lattice = mechanism.threshold_epsilon().min(0.5 * mechanism.query_epsilon()) > 2f64.powi(40);
    let above = if below_lattice { 0.75 } else { above };
    let release = move |rng: &mut SeededRng| {
        let mut log = EventLog::new();
        let mut session = mechanism.start(0.0, &mut log, rng)?;
        let query = Bounded::with_proven_sensitivity(0.0, mechanism.sensitivity());
        Ok(f64::from(matches!(session.answer(query, &mut log, rng)?.get(), Answer::Below)))
    };
    Ok(Accepted { law: Law::Discrete { probability_of_likeliest: above }, release: Box::new(release) })
}

/// One query at the threshold, with Gaussian noise.
fn gaussian_comparison(mechanism: GaussianAboveThreshold<Relation>) -> Result<Accepted, Error> {
    let release = move |rng: &mut SeededRng| {
        let mut log = EventLog::new();
        let mut session = mechanism.start(0.0, &mut log, rng)?;
        let query = Bounded::with_proven_sensitivity(0.0, mechanism.sensitivity());
        Ok(f64::from(matches!(session.answer(query, &mut log, rng)?.get(), Answer::Below)))
    };
    Ok(Accepted { law: Law::Discrete { probability_of_likeliest: 0.5 }, release: Box::new(release) })
}

fn l2(x: f64) -> Result<L2Sensitivity<Relation>, Error> {
    L2Sensitivity::new(x)
}

fn l1(x: f64) -> Result<L1Sensitivity<Relation>, Error> {
    L1Sensitivity::new(x)
}

fn largest(x: f64) -> Result<LInfSensitivity<Relation>, Error> {
    LInfSensitivity::new(x)
}

pub const CONSTRUCTORS: &[Constructor] = &[
    Constructor {
        name: "DiscreteLaplace::new",
        parameters: &[WHOLE_SENSITIVITY, EPSILON],
        build: |x| discrete_laplace(DiscreteLaplace::new(l1(x[0])?, Epsilon::new(x[1])?)?),
    },
    Constructor {
        name: "DiscreteLaplace::from_scale",
        parameters: &[WHOLE_SENSITIVITY, positive("scale")],
        build: |x| discrete_laplace(DiscreteLaplace::from_scale(l1(x[0])?, x[1])?),
    },
    Constructor {
        name: "DiscreteGaussian::from_scale",
        parameters: &[SENSITIVITY, positive("scale")],
        build: |x| discrete_gaussian(DiscreteGaussian::from_scale(l2(x[0])?, x[1], 1)?),
    },
    Constructor {
        name: "DiscreteGaussian::from_zcdp",
        parameters: &[SENSITIVITY, positive("rho")],
        build: |x| discrete_gaussian(DiscreteGaussian::from_zcdp(l2(x[0])?, Rho::new(x[1])?, 1)?),
    },
    Constructor {
        name: "DiscreteGaussian::from_noise_multiplier",
        parameters: &[SENSITIVITY, positive("noise multiplier")],
        build: |x| {
            let noise_multiplier = NoiseMultiplier::new(x[1])?;
            discrete_gaussian(DiscreteGaussian::from_noise_multiplier(l2(x[0])?, noise_multiplier, 1)?)
        },
    },
    Constructor {
        name: "RandomizedResponse::new",
        parameters: &[EPSILON],
        build: |x| response(RandomizedResponse::new(3, Epsilon::new(x[0])?)?),
    },
    Constructor {
        name: "RandomizedResponse::from_noise",
        parameters: &[PROPER_PROBABILITY],
        build: |x| response(RandomizedResponse::from_noise(2, x[0])?),
    },
    Constructor {
        name: "Exponential::new",
        parameters: &[SENSITIVITY, EPSILON],
        build: |x| choice(Exponential::new(largest(x[0])?, Epsilon::new(x[1])?)?, x[0], Exponential::probabilities),
    },
    Constructor {
        name: "Exponential::monotonic",
        parameters: &[SENSITIVITY, EPSILON],
        build: |x| {
            let mechanism = Exponential::new(largest(x[0])?, Epsilon::new(x[1])?)?.monotonic()?;
            choice(mechanism, x[0], Exponential::probabilities)
        },
    },
    Constructor {
        name: "PermuteAndFlip::new",
        parameters: &[SENSITIVITY, EPSILON],
        build: |x| {
            choice(PermuteAndFlip::new(largest(x[0])?, Epsilon::new(x[1])?)?, x[0], PermuteAndFlip::probabilities)
        },
    },
    Constructor {
        name: "NoisyMax::new",
        parameters: &[SENSITIVITY, EPSILON],
        build: |x| choice(NoisyMax::new(largest(x[0])?, Epsilon::new(x[1])?)?, x[0], NoisyMax::probabilities),
    },
    Constructor {
        name: "AboveThreshold::new",
        parameters: &[SENSITIVITY, EPSILON],
        build: |x| comparison(AboveThreshold::new(largest(x[0])?, Epsilon::new(x[1])?, 1)?),
    },
    Constructor {
        name: "AboveThreshold::from_split",
        parameters: &[SENSITIVITY, EPSILON, EPSILON],
        build: |x| {
            let (threshold, queries) = (Epsilon::new(x[1])?, Epsilon::new(x[2])?);
            comparison(AboveThreshold::from_split(largest(x[0])?, threshold, queries, 2)?)
        },
    },
    Constructor {
        name: "GaussianAboveThreshold::new",
        parameters: &[
            SENSITIVITY,
            positive("standard deviation of the threshold"),
            positive("standard deviation of queries"),
        ],
        build: |x| gaussian_comparison(GaussianAboveThreshold::new(largest(x[0])?, x[1], x[2], 2)?),
    },
];
