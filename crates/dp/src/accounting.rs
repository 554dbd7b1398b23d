//! Questions to the accountant: one of epsilon, delta, noise multiplier, sampling rate and steps from the others.
//!
//! A [`Request`] holds the numbers that are known; [`Question::new`] checks it, and [`answer`] computes the omitted number, between
//! certified bounds. [`Line`] reads a request from JSON. Nothing here reads data.
//!
//! # Examples
//! ```
//! use dp::accounting::{Job, Question, Request, answer};
//!
//! // The least noise for (2, 1e-5) with 10,000 steps of DP-SGD at a sampling rate of 0.01.
//! let request = Request {
//!     epsilon: Some(2.0),
//!     delta: Some(1e-5),
//!     sampling_rate: Some(0.01),
//!     steps: Some(10_000),
//!     ..Request::new(Job::Dpsgd)
//! };
//! let answer = answer(&Question::new(request)?)?;
//! assert!((answer.noise_multiplier.unwrap_or(0.0) - 2.04).abs() < 0.2);
//! # Ok::<(), dp::accounting::Refusal>(())
//! ```

mod answer;
mod choices;
mod line;
mod question;
mod refusal;
mod request;
pub mod solve;

pub use answer::{Answer, SCHEMA, Solution, interval};
pub use choices::{Accountant, Sampling, Unknown, accountant_of};
pub use dp_optim::catalogue::Choice;
pub use line::Line;
pub use question::{LIMITS, NOISE_MULTIPLIERS, POINTS, Question, SAMPLING_RATES, STEPS, name};
pub use refusal::{Refusal, RefusalKind};
pub use request::{Job, Request};
pub use solve::answer;
