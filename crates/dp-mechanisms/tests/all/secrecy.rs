//! Types that contain a private value or a generator's state cannot be printed, compared, copied, serialised or read.
//!
//! The compiler checks everything here: the file compiles unless a forbidden trait is implemented. *Uses* of these types that
//! must not compile (a second release, mixed norms and relations) are in the documentation tests.

use dp_accountant::ZeroOut;
use dp_mechanisms::clip::{ClippedSum, ExactSum, NormCount, RankOneSum};
use dp_mechanisms::continual::{MatrixSession, TreeSession};
use dp_mechanisms::scores::Scores;
use dp_mechanisms::sparse_vector::Session;
use dp_mechanisms::{Bounded, L1, L2, LInf, OsSeeded, Secret, SeededRng};

/// Compiles only if the type does not implement the trait: otherwise the method below is ambiguous.
macro_rules! lacks {
    ($type:ty: $($trait:path),+ $(,)?) => {
        $(const _: fn() = || {
            trait Ambiguous<A> {
                fn method() {}
            }
            impl<T: ?Sized> Ambiguous<()> for T {}
            #[allow(dead_code)]
            struct Implemented;
            impl<T: ?Sized + $trait> Ambiguous<Implemented> for T {}
            let _ = <$type as Ambiguous<_>>::method;
        };)+
    };
}

/// Neither trait exposes a value.
macro_rules! keeps_its_secret {
    ($($type:ty),+ $(,)?) => {
        $(lacks!($type:
            Clone, Copy, Default, PartialEq, PartialOrd, core::hash::Hash,
            core::fmt::Display, core::fmt::LowerExp, core::fmt::LowerHex,
            core::ops::Deref, core::ops::DerefMut, core::ops::Index<usize>,
            AsRef<[f64]>, AsMut<[f64]>, AsRef<Vec<f64>>, core::borrow::Borrow<Vec<f64>>,
            Into<Vec<f64>>, Into<f64>, Iterator, IntoIterator, ToString,
            serde::Serialize, serde::de::DeserializeOwned,
        );)+
    };
}

keeps_its_secret!(
    Secret<f64>,
    Secret<u64>,
    Secret<Vec<f64>>,
    Bounded<f64, ZeroOut, LInf>,
    Bounded<Vec<i64>, ZeroOut, L1>,
    Bounded<Vec<f64>, ZeroOut, L2>,
    Bounded<Scores, ZeroOut, LInf>,
    Session<ZeroOut>,
    ClippedSum<f64, ZeroOut>,
    ExactSum<ZeroOut>,
    RankOneSum<ZeroOut>,
    NormCount<ZeroOut>,
    TreeSession<ZeroOut>,
    MatrixSession<ZeroOut>,
    OsSeeded,
    SeededRng,
);

// A generator is not printed in any form; the others are printed without their value.
lacks!(OsSeeded: core::fmt::Debug, rand::SeedableRng, AsRef<[u8]>);
lacks!(SeededRng: core::fmt::Debug, rand::SeedableRng, AsRef<[u8]>);
lacks!(dp_mechanisms::DerivedRng: core::fmt::Debug, rand::SeedableRng, AsRef<[u8]>);
lacks!(dp_mechanisms::LentRng<'static>: core::fmt::Debug, rand::SeedableRng, AsRef<[u8]>);

const PRIVATE: f64 = 8_675_309.25;

#[test]
fn debug_shows_what_is_public() {
    let sensitivity = dp_mechanisms::L2Sensitivity::<ZeroOut>::new(1.0).unwrap();
    let secret = Secret::new(vec![PRIVATE]);
    let bounded = Bounded::with_proven_sensitivity(vec![PRIVATE], sensitivity);
    let scores = Scores::new(vec![PRIVATE, 1.0]).unwrap();
    for text in [format!("{secret:?}{secret:#?}"), format!("{bounded:?}{bounded:#?}"), format!("{scores:?}{scores:#?}")]
    {
        assert!(text.contains("..") && !text.contains("8675309"), "{text}");
    }
}

/// A generator's state is wiped when it is dropped.
#[test]
fn generators_wipe_their_state() {
    fn wiped<T: zeroize::ZeroizeOnDrop>() {}
    // The component of both generators.
    wiped::<chacha20::ChaCha20Rng>();
    assert_eq!(size_of::<OsSeeded>(), size_of::<chacha20::ChaCha20Rng>());
    assert_eq!(size_of::<SeededRng>(), size_of::<chacha20::ChaCha20Rng>());
}
