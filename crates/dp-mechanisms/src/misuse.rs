//! Programs that must not compile, for every mechanism: a bound in another norm, a value or a log of another relation, a second
//! release. Each group begins with the same program without the mistake, which must compile.

/// The programs of one mechanism: `$call` releases `value` with `noise`.
macro_rules! must_not_compile {
    ($name:ident: $call:literal on $mechanism:literal of $value:literal in $norm:literal not in $($other:literal)or+) => {
        #[doc = must_not_compile!(@program "no_run", $call, $mechanism, $value, $norm, "ZeroOut", "ZeroOut", "")]
        $(#[doc = must_not_compile!(
            @program "compile_fail,E0308", $call, $mechanism, $value, $other, "ZeroOut", "ZeroOut", ""
        )])+
        #[doc = must_not_compile!(
            @program "compile_fail,E0308", $call, $mechanism, $value, $norm, "ReplaceOne", "ZeroOut", ""
        )]
        #[doc = must_not_compile!(
            @program "compile_fail,E0308", $call, $mechanism, $value, $norm, "AddRemoveOne", "ZeroOut", ""
        )]
        #[doc = must_not_compile!(
            @program "compile_fail,E0308", $call, $mechanism, $value, $norm, "ZeroOut", "ReplaceOne", ""
        )]
        #[doc = must_not_compile!(
            @program "compile_fail,E0382", $call, $mechanism, $value, $norm, "ZeroOut", "ZeroOut", $call
        )]
        struct $name;
    };
    (@program $kind:literal, $call:expr, $mechanism:expr, $value:expr, $norm:expr, $of_value:expr, $of_log:expr, $again:expr) => {
        concat!(
            "```", $kind, "\n#![allow(unused)]\n",
            "use dp_accountant::{AddRemoveOne, EventLog, ReplaceOne, ZeroOut};\n",
            "use dp_mechanisms::{*, clip::*, continual::*, scores::Scores, sparse_vector::Session};\n",
            "fn release(value: Bounded<", $value, ", ", $of_value, ", ", $norm, ">, mut noise: ", $mechanism,
            "<ZeroOut>, log: &mut EventLog<", $of_log, ">, rng: &mut OsSeeded) {\n",
            "    let released = ", $call, ";\n",
            "    ", $again, ";\n",
            "}\n```"
        )
    };
}

must_not_compile!(OfGaussian: "noise.release(value, log, rng)" on "Gaussian" of "Vec<f64>" in "L2" not in "L1" or "LInf");
must_not_compile!(OfMixture: "noise.release(value, log, rng)" on "GaussianMixture" of "Vec<f64>" in "L2" not in "L1" or "LInf");
must_not_compile!(OfBall: "noise.release(value, log, rng)" on "LaplaceBall" of "Vec<f32>" in "L2" not in "L1" or "LInf");
must_not_compile!(OfCoordinateLaplace: "noise.release(value, log, rng)" on "Laplace" of "Vec<f64>" in "L1" not in "L2" or "LInf");
must_not_compile!(OfStaircase: "noise.release(value, log, rng)" on "Staircase" of "f64" in "L1" not in "L2" or "LInf");
must_not_compile!(OfLaplaces: "noise.release(value, log, rng)" on "DiscreteLaplace" of "Vec<i64>" in "L1" not in "L2" or "LInf");
must_not_compile!(OfLaplace: "noise.release(value, log, rng)" on "DiscreteLaplace" of "i64" in "L1" not in "L2" or "LInf");
must_not_compile!(OfDiscreteGaussian: "noise.release(value, log, rng)" on "DiscreteGaussian" of "Vec<i64>" in "L2" not in "L1" or "LInf");
must_not_compile!(OfExponential: "noise.release(value, log, rng)" on "Exponential" of "Scores" in "LInf" not in "L1" or "L2");
must_not_compile!(OfPermuteAndFlip: "noise.release(value, log, rng)" on "PermuteAndFlip" of "Scores" in "LInf" not in "L1" or "L2");
must_not_compile!(OfNoisyMax: "noise.release(value, log, rng)" on "NoisyMax" of "Scores" in "LInf" not in "L1" or "L2");
must_not_compile!(OfSession: "noise.answer(value, log, rng)" on "Session" of "f64" in "LInf" not in "L1" or "L2");
must_not_compile!(OfTree: "noise.step(value, log, rng)" on "TreeSession" of "Vec<f64>" in "L2" not in "L1" or "LInf");
must_not_compile!(OfMatrix: "noise.step(value, log, rng)" on "MatrixSession" of "Vec<f64>" in "L2" not in "L1" or "LInf");
must_not_compile!(OfAdaptiveNorm: "noise.release(value, noise.count(), log, rng)" on "AdaptiveNorm" of "Vec<f64>" in "L2" not in "L1" or "LInf");

/// The noise mode and scale of a mechanism cannot be changed after construction:
/// ```compile_fail,E0070
/// fn change(noise: &mut dp_mechanisms::Gaussian<dp_accountant::ZeroOut>) {
///     noise.noise_mode() = dp_accountant::certificate::NoiseMode::Rounded;
/// }
/// ```
/// ```compile_fail,E0616
/// fn change(noise: &mut dp_mechanisms::Gaussian<dp_accountant::ZeroOut>) {
///     noise.std_dev = 0.0;
/// }
/// ```
/// A mechanism cannot be built as a literal, without its constructor:
/// ```compile_fail,E0423
/// let choose = dp_mechanisms::Exponential::<dp_accountant::ZeroOut>(unreachable!());
/// ```
/// A sensitivity is not a number, and cannot be created without a check:
/// ```compile_fail,E0308
/// let noise = dp_mechanisms::Gaussian::<dp_accountant::ZeroOut>::from_std_dev(1.0, 1.0);
/// ```
/// ```compile_fail,E0277
/// let sensitivity: dp_mechanisms::L2Sensitivity<dp_accountant::ZeroOut> = 1.0.into();
/// ```
struct OfConstructors;
