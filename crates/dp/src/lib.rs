//! Private models of tables and of ranked lists, from training to verification.
//!
//! [`Training`] turns a table into a [`ModelFile`]: a released model, its certificate, and the hashes that bind them.
//! [`verify`] recomputes the guarantee from the file alone. A model contains the encoder for raw records; [`metrics`]
//! evaluates its predictions. [`RankerTraining`] and [`RankerFile`] do the same for rankers, the module `network` (feature
//! `networks`) for image classifiers. [`steps`] provides noise and certificate for a training that another program
//! runs. [`accounting`] answers questions about planned releases. [`report`] and [`protection`] describe the guarantee in
//! words.
//!
//! ```no_run
//! use dp_data::{Schema, read::Input};
//!
//! let schema = Schema::parse("schema.toml", &std::fs::read_to_string("schema.toml")?)?;
//! let file = dp::Training::new(1.0, 1e-6)?.on_csv(&schema, Input::open("people.csv")?)?;
//! std::fs::write("model.json", file.to_text()?)?;
//!
//! let file = dp::ModelFile::parse(&std::fs::read("model.json")?)?;
//! let verified = dp::verify::model(&file, dp::verify::WORK)?;
//! println!("epsilon = {}, delta = {}", verified.epsilon, verified.delta);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;

pub mod accounting;
pub mod canonical;
mod error;
mod linear_form;
pub mod metrics;
pub mod model;
#[cfg(feature = "networks")]
pub mod network;
pub mod planning;
pub mod protection;
pub mod ranker;
pub mod ranking;
pub mod report;
pub mod sealed;
pub mod shapes;
#[cfg(feature = "signatures")]
pub mod signature;
pub mod sql;
pub mod steps;
pub mod training;
pub mod verify;
pub mod wording;
pub mod words;

pub use error::{Error, ErrorKind};
pub use linear_form::LinearForm;
pub use model::{Model, ModelFile, ModelKind, Prediction};
pub use ranker::{Ranker, RankerFile};
pub use ranking::{RankerTrainError, RankerTraining};
pub use sealed::Sealed;
pub use training::{TrainError, Training};
