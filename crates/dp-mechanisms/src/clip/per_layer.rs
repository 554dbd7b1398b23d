//! Clipping layer by layer, and noise of a separate size for each layer.

use dp_accountant::certificate::NoiseMode;
use dp_accountant::{Adjacency, DpEvent, EventLog};
use nalgebra::RealField;

use super::{ClippingNorm, clip_l2, norms_moved};
use crate::additive;
use crate::bounded::Bounded;
use crate::error::{Error, dimension};
use crate::gaussian::Gaussian;
use crate::mechanism::PrivacyEvent;
use crate::release::{self, Cost};
use crate::released::Released;
use crate::rng::ReleaseRng;
use crate::rounding::{quotient_up, root_of_squares_up};
use crate::sensitivity::L2Sensitivity;

/// Per-layer clipping: each layer of a gradient is clipped to its own norm.
///
/// # Formula
/// ```text
/// v_l · min(1, C_l (1 - k_l) / ‖v_l‖) for each layer l;   joint norm √(Σ C_l²), rounded up
/// ```
///
/// # Privacy
/// The norm of each layer as stored is at most `C_l` in exact arithmetic, so the norm of the whole is at most the joint norm. A
/// NaN or an infinity in any layer makes the whole vector zero, so that an invalid record contributes nothing. A sum of such
/// vectors changes by the joint norm if a record is added or zeroed, and by twice that if it is replaced.
///
/// # Examples
/// ```
/// use dp_accountant::ReplaceOne;
/// use dp_mechanisms::clip::{ClippingNorm, LayeredClipping};
/// let layers = LayeredClipping::new(vec![(2, ClippingNorm::new(3.0)?), (1, ClippingNorm::new(4.0)?)])?;
/// let mut gradient = [30.0, 40.0, 1.0];
/// layers.clip(&mut gradient)?;
/// assert!((gradient[0] - 1.8f64).abs() < 1e-14 && gradient[2] == 1.0);
/// assert_eq!(layers.sensitivity::<ReplaceOne>()?.get(), 10.0);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::record::clip::LayeredClippingRecord",
        into = "crate::record::clip::LayeredClippingRecord"
    )
)]
pub struct LayeredClipping {
    layers: Vec<(usize, ClippingNorm)>,
    dim: usize,
    joint_norm: f64,
}

impl LayeredClipping {
    /// Creates the rule from the number of coordinates and the norm of each layer, in order.
    ///
    /// # Errors
    /// [`Error::Length`] for no layer, [`Error::Dimension`] for an empty or too large one, [`Error::NotFinite`] if the joint norm
    /// overflows.
    pub fn new(layers: Vec<(usize, ClippingNorm)>) -> Result<Self, Error> {
        let mut dim = 0u64;
        for &(len, _) in &layers {
            dim = dim.saturating_add(dimension(len as u64)?);
        }
        if layers.is_empty() {
            return Err(Error::Length { name: "layers", found: 0, expected: "at least 1" });
        }
        dimension(dim)?;
        let joint_norm = root_of_squares_up(layers.iter().map(|(_, norm)| norm.get()));
        if !joint_norm.is_finite() {
            return Err(Error::NotFinite { name: "joint clipping norm", value: joint_norm });
        }
        Ok(Self { layers, dim: dim as usize, joint_norm })
    }

    /// Clips a vector in place.
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`] unless its length is the sum of the layers'.
    pub fn clip<F: RealField + Copy>(&self, v: &mut [F]) -> Result<(), Error> {
        if v.len() != self.dim {
            return Err(Error::DimensionMismatch { expected: self.dim as u64, found: v.len() as u64 });
        }
        if !v.iter().all(|entry| entry.is_finite()) {
            v.fill(F::zero());
            return Ok(());
        }
        let mut rest = v;
        for &(len, norm) in &self.layers {
            let (layer, others) = rest.split_at_mut(len);
            clip_l2(layer, norm);
            rest = others;
        }
        Ok(())
    }

    /// Returns each layer's number of coordinates and norm.
    pub fn layers(&self) -> &[(usize, ClippingNorm)] {
        &self.layers
    }

    /// Returns `√(Σ C_l²)`, rounded up.
    pub fn joint_norm(&self) -> f64 {
        self.joint_norm
    }

    /// Returns the sensitivity of an exact sum of such vectors.
    ///
    /// # Errors
    /// [`Error::NotFinite`] if it overflows.
    pub fn sensitivity<A: Adjacency>(&self) -> Result<L2Sensitivity<A>, Error> {
        L2Sensitivity::new(norms_moved::<A>() * self.joint_norm)
    }
}

/// One release of several vectors that depend on the same record, each with Gaussian noise of its own size.
///
/// # Formula
/// ```text
/// output_l = value_l + N(0, s_l² I);   mu = √(Σ (D_l / s_l)²), rounded up
/// ```
///
/// # Privacy
/// Exactly mu-GDP: in units of `s_l` the values are one vector with noise `N(0, I)`, with sensitivity `√(Σ (D_l / s_l)²)`. The
/// event is `Gaussian { std_dev: 1, sensitivity: mu }`, one for all parts, and equals the composition of the parts' separate
/// events.
///
/// # Examples
/// ```
/// use dp_accountant::{DpEvent, EventLog, ZeroOut};
/// use dp_mechanisms::clip::LayeredGaussian;
/// use dp_mechanisms::{Bounded, Gaussian, L2Sensitivity, OsSeeded, PrivacyEvent};
///
/// let (wide, narrow) = (L2Sensitivity::<ZeroOut>::new(3.0)?, L2Sensitivity::<ZeroOut>::new(1.0)?);
/// let noise = LayeredGaussian::new(vec![Gaussian::from_std_dev(wide, 1.0)?, Gaussian::from_std_dev(narrow, 0.25)?])?;
/// assert_eq!(noise.event(), DpEvent::Gaussian { std_dev: 1.0, sensitivity: 5.0 });
///
/// let parts = vec![
///     Bounded::with_proven_sensitivity(vec![1.0, 2.0], wide),
///     Bounded::with_proven_sensitivity(vec![0.5], narrow),
/// ];
/// let released = noise.release(parts, &mut EventLog::new(), &mut OsSeeded::new()?)?;
/// assert_eq!(released.get()[0].len(), 2);
/// # Ok::<(), dp_mechanisms::Error>(())
/// ```
///
/// # References
/// J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", 2019, Theorem 2.7 and Corollary 3.3, arXiv 1905.02383.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::record::clip::LayeredGaussianRecord<A>",
        into = "crate::record::clip::LayeredGaussianRecord<A>",
        bound = ""
    )
)]
pub struct LayeredGaussian<A: Adjacency> {
    parts: Vec<Gaussian<A>>,
    mu: f64,
}

impl<A: Adjacency> LayeredGaussian<A> {
    /// Creates the release from the mechanism of each part; all must have the same noise mode.
    ///
    /// # Errors
    /// [`Error::Length`] for no part; [`Error::UnavailableNoise`] for mixed modes; [`Error::OutOfRange`] if the joint mu is not a
    /// normal double.
    pub fn new(parts: Vec<Gaussian<A>>) -> Result<Self, Error> {
        let Some(first) = parts.first() else {
            return Err(Error::Length { name: "parts", found: 0, expected: "at least 1" });
        };
        if let Some(other) = parts.iter().find(|part| part.noise_mode() != first.noise_mode()) {
            return Err(Error::UnavailableNoise { mode: other.noise_mode() });
        }
        let each: Vec<f64> = parts.iter().map(|part| quotient_up(part.sensitivity().get(), part.std_dev())).collect();
        let joint = |mus: &[f64]| root_of_squares_up(mus.iter().copied());
        let mu = each.iter().copied().find(|mu| !mu.is_normal()).unwrap_or_else(|| joint(&each));
        if !mu.is_normal() {
            return Err(Error::OutOfRange { name: "mu of all parts", value: mu, range: "normal positive numbers" });
        }
        Ok(Self { parts, mu })
    }

    /// Releases all parts at once.
    ///
    /// # Errors
    /// [`Error::Length`] unless there is one vector for each part; otherwise those of
    /// [`Mechanism::release`](crate::Mechanism::release) of each part. In this case nothing is drawn or logged.
    pub fn release<F: RealField + Copy, R: ReleaseRng + ?Sized>(
        &self,
        inputs: Vec<Bounded<Vec<F>, A>>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Vec<Vec<F>>>, Error> {
        self.release_as(self.event(), inputs, log, rng)
    }

    /// As [`release`](Self::release), logged as another event that costs at least as much.
    pub(super) fn release_as<F: RealField + Copy, R: ReleaseRng + ?Sized>(
        &self,
        event: DpEvent,
        inputs: Vec<Bounded<Vec<F>, A>>,
        log: &mut EventLog<A>,
        rng: &mut R,
    ) -> Result<Released<Vec<Vec<F>>>, Error> {
        if inputs.len() != self.parts.len() {
            return Err(Error::Length { name: "vectors", found: inputs.len(), expected: "as many as parts" });
        }
        for (input, part) in inputs.iter().zip(&self.parts) {
            release::check_sensitivity(input, part.sensitivity())?;
            additive::check_range::<F>(part.std_dev())?;
        }
        let cost = Cost { event, noise: self.noise_mode(), assumptions: Vec::new() };
        release::together(inputs, cost, log, rng, |mut values: Vec<Vec<F>>, rng| {
            values.iter().try_for_each(|value| additive::check_vector(value))?;
            values.iter_mut().zip(&self.parts).try_for_each(|(value, part)| part.add_noise(value, rng))?;
            Ok(values)
        })
    }

    /// Returns the mechanism of each part.
    pub fn parts(&self) -> &[Gaussian<A>] {
        &self.parts
    }

    /// Returns `√(Σ (D_l / s_l)²)`, rounded up.
    pub fn mu(&self) -> f64 {
        self.mu
    }

    /// Returns the noise mode.
    pub fn noise_mode(&self) -> NoiseMode {
        // There is at least one part.
        self.parts.first().map_or(NoiseMode::Rounded, Gaussian::noise_mode)
    }
}

impl<A: Adjacency> PrivacyEvent for LayeredGaussian<A> {
    fn event(&self) -> DpEvent {
        DpEvent::Gaussian { std_dev: 1.0, sensitivity: self.mu }
    }
}

#[cfg(test)]
mod tests;
