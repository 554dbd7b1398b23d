//! A synthetic hospital table for demonstrations and tests; it describes no real person.
//!
//! One row per discharge, with six numeric and six categorical columns and a label: whether the patient returned within
//! thirty days. The label follows a logistic model with an interaction and noise, so that a linear model predicts well but
//! not perfectly. Ranges and categories in [`SCHEMA`] are facts of the generator, known without looking at a table.

use std::fmt::Write as _;

use dp_mechanisms::SeededRng;
use rand::RngExt;

/// The reviewed schema of the table.
pub const SCHEMA: &str = include_str!("clinic.schema.toml");

const SEXES: [(&str, f64); 2] = [("female", 0.54), ("male", 0.46)];
const ADMISSIONS: [(&str, f64); 4] = [("emergency", 0.46), ("elective", 0.31), ("urgent", 0.17), ("transfer", 0.06)];
const WARDS: [(&str, f64); 7] = [
    ("internal", 0.28),
    ("surgery", 0.22),
    ("cardiology", 0.16),
    ("oncology", 0.09),
    ("neurology", 0.10),
    ("orthopaedics", 0.11),
    ("geriatrics", 0.04),
];
const DIAGNOSES: [(&str, f64, f64); 9] = [
    ("circulatory", 0.24, 0.35),
    ("respiratory", 0.14, 0.45),
    ("digestive", 0.13, 0.05),
    ("endocrine", 0.11, 0.30),
    ("injury", 0.12, -0.55),
    ("neoplasm", 0.08, 0.80),
    ("renal", 0.07, 0.75),
    ("mental", 0.05, 0.40),
    ("other", 0.06, -0.10),
];
const SMOKING: [(&str, f64); 3] = [("never", 0.55), ("former", 0.27), ("current", 0.18)];
const DISCHARGES: [(&str, f64); 4] = [("home", 0.66), ("home-care", 0.17), ("nursing", 0.12), ("against-advice", 0.05)];

/// Generates a table as CSV text with a header, reproducibly from `seed`.
pub fn csv(rows: usize, seed: u64) -> String {
    let mut rng = SeededRng::new(seed);
    let mut out = String::with_capacity(rows * 110 + 200);
    out.push_str(
        "age,sex,admission,ward,diagnosis,nights,visits_last_year,medications,creatinine,body_mass_index,smoking,\
         discharge,readmitted\n",
    );
    for _ in 0..rows {
        row(&mut rng, &mut out);
    }
    out
}

/// Returns the share of the larger class in the table of [`csv`].
pub fn majority(rows: usize, seed: u64) -> f64 {
    let table = csv(rows, seed);
    let positive = table.lines().skip(1).filter(|line| line.ends_with(",yes")).count();
    positive.max(rows - positive) as f64 / rows as f64
}

fn row(rng: &mut SeededRng, out: &mut String) {
    let age = (18.0 + 80.0 * uniform(rng).powf(0.6)).floor();
    let elderly = (age - 60.0) / 20.0;
    let sex = pick(rng, &SEXES);
    let admission = pick(rng, &ADMISSIONS);
    let ward = if age > 78.0 && uniform(rng) < 0.3 { "geriatrics" } else { pick(rng, &WARDS) };
    let (diagnosis, diagnosis_risk) = pick_diagnosis(rng);
    let nights =
        exponential(rng, 3.0 + 1.5 * f64::from(admission == "emergency") + elderly.max(0.0)).ceil().clamp(1.0, 90.0);
    let visits = exponential(rng, 0.9 + 0.5 * elderly.max(0.0)).floor().min(40.0);
    let medications = (2.0 + exponential(rng, 3.5 + 2.0 * elderly.max(0.0))).floor().min(40.0);
    let creatinine =
        (0.85 * (0.35 * normal(rng) + 0.25 * f64::from(diagnosis == "renal") * 4.0).exp()).clamp(0.2, 15.0);
    let bmi = (26.5 + 4.8 * normal(rng)).clamp(13.0, 60.0);
    let smoking = pick(rng, &SMOKING);
    let discharge = pick(rng, &DISCHARGES);

    let score = -1.75
        + 0.55 * elderly
        + 0.65 * (1.0 + visits).ln()
        + 0.30 * (1.0 + nights).ln()
        + 0.05 * (medications - 6.0)
        + 0.60 * creatinine.ln()
        + diagnosis_risk
        + match admission {
            "emergency" => 0.45,
            "elective" => -0.70,
            _ => 0.0,
        }
        + match discharge {
            "against-advice" => 1.10,
            "nursing" => 0.40,
            "home-care" => 0.15,
            _ => -0.10,
        }
        + match smoking {
            "current" => 0.30,
            "former" => 0.10,
            _ => 0.0,
        }
        + if ward == "oncology" { 0.5 } else { 0.0 }
        + 0.25 * elderly * f64::from(discharge == "home");
    let readmitted = uniform(rng) < 1.0 / (1.0 + (-1.6 * score).exp());
    let label = if readmitted { "yes" } else { "no" };
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{age},{sex},{admission},{ward},{diagnosis},{nights},{visits},{medications},{creatinine:.2},{bmi:.1},{smoking},\
         {discharge},{label}"
    );
}

fn uniform(rng: &mut SeededRng) -> f64 {
    rng.random::<f64>()
}

fn exponential(rng: &mut SeededRng, mean: f64) -> f64 {
    -mean * (1.0 - uniform(rng)).ln()
}

fn normal(rng: &mut SeededRng) -> f64 {
    // Box-Muller: this is data, not privacy noise.
    (-2.0 * (1.0 - uniform(rng)).ln()).sqrt() * (core::f64::consts::TAU * uniform(rng)).cos()
}

fn pick(rng: &mut SeededRng, choices: &[(&'static str, f64)]) -> &'static str {
    let mut left = uniform(rng);
    for (name, probability) in choices {
        left -= probability;
        if left < 0.0 {
            return name;
        }
    }
    choices[choices.len() - 1].0
}

fn pick_diagnosis(rng: &mut SeededRng) -> (&'static str, f64) {
    let mut left = uniform(rng);
    for (name, probability, risk) in DIAGNOSES {
        left -= probability;
        if left < 0.0 {
            return (name, risk);
        }
    }
    ("other", -0.10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_reproducible_and_balanced() {
        let table = csv(5_000, 7);
        assert_eq!(table, csv(5_000, 7));
        assert_ne!(table, csv(5_000, 8));
        let yes = table.lines().skip(1).filter(|line| line.ends_with(",yes")).count();
        assert_eq!(table.lines().count(), 5_001);
        assert!((1_200..2_600).contains(&yes), "{yes} of 5000 readmitted");
    }
}
