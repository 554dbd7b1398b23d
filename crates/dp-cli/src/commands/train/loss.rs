//! The loss for each kind of label.

use dp::training::REGRESSION_WIDTH;
use dp_data::schema::{Label, LabelKind};
use dp_losses::{HuberRegression, HuberSvm, LogCosh, LossKind, Softmax};

use crate::args::{Loss, word};
use crate::failure::Failure;
use crate::input::conflict;

/// Losses for labels of two classes, the default first.
const FOR_TWO: &[Loss] = &[Loss::Logistic, Loss::HuberSvm, Loss::Hinge, Loss::Squared];
/// Losses for labels of several classes.
const FOR_SEVERAL: &[Loss] = &[Loss::Softmax];
/// Losses of each model in one-vs-rest classification.
const FOR_ONE_AGAINST_THE_REST: &[Loss] = &[Loss::Logistic, Loss::HuberSvm, Loss::Hinge];
/// Losses for numeric labels, the default first. Log-cosh and Huber's loss have bounded gradients, so they need no radius,
/// and their sensitivity does not grow with one.
const FOR_NUMBERS: &[Loss] = &[Loss::LogCosh, Loss::HuberRegression, Loss::Squared, Loss::Absolute];

/// The requested loss. The label decides the default and the number of classes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AskedLoss {
    name: Option<Loss>,
    huber_width: Option<f64>,
    /// True for one-vs-rest classification.
    one_vs_all: bool,
}

impl AskedLoss {
    /// Checks the flags.
    ///
    /// # Errors
    /// `usage.value`, `usage.conflict`.
    pub fn new(name: Option<Loss>, huber_width: Option<f64>) -> Result<Self, Failure> {
        let takes_width = name.is_none_or(has_width);
        if huber_width.is_some() && !takes_width {
            return Err(conflict(
                "--huber-width",
                "--huber-width belongs to --loss huber-svm, huber-regression and log-cosh",
            ));
        }
        let asked = Self { name, huber_width, one_vs_all: false };
        // Checks the width, which is independent of the label.
        asked.of(name.unwrap_or(Loss::LogCosh), 2).map(|_| asked)
    }

    /// Returns the loss for one model per class, each a two-class loss.
    ///
    /// # Errors
    /// `usage.conflict` for a loss that is not a two-class loss.
    pub fn one_against_the_rest(self) -> Result<Self, Failure> {
        match self.name {
            Some(name) if !FOR_ONE_AGAINST_THE_REST.contains(&name) => {
                let names: Vec<String> = FOR_ONE_AGAINST_THE_REST.iter().map(word).collect();
                Err(conflict("--one-vs-all", format!("--loss {} does not tell one class from the rest", word(&name)))
                    .expected(names.join(", "))
                    .help("omit --loss, or --one-vs-all"))
            }
            _ => Ok(Self { one_vs_all: true, ..self }),
        }
    }

    /// Returns a loss for checks of other settings before the label is known.
    pub fn provisional(self) -> LossKind {
        self.of(self.name.unwrap_or_default(), 2).unwrap_or(LossKind::Logistic)
    }

    /// Returns the loss for this label.
    ///
    /// # Errors
    /// `usage.value` for a loss that does not fit the label, `usage.conflict` for a width that the loss does not have.
    pub fn for_label(self, label: &Label) -> Result<LossKind, Failure> {
        let (fitting, what, classes) = match &label.kind {
            LabelKind::TwoClasses { .. } => (FOR_TWO, "a label of two classes".to_owned(), 2),
            LabelKind::Classes { classes, .. } => {
                let fitting = if self.one_vs_all { FOR_ONE_AGAINST_THE_REST } else { FOR_SEVERAL };
                (fitting, format!("a label of {} listed classes", classes.len()), classes.len() as u32)
            }
            _ => (FOR_NUMBERS, "a label that is a number".to_owned(), 2),
        };
        if self.one_vs_all && !matches!(label.kind, LabelKind::Classes { .. }) {
            return Err(conflict("--one-vs-all", format!("--one-vs-all does not fit {what}"))
                .at_column(&label.column)
                .expected("a label whose classes are listed")
                .help("omit --one-vs-all, or list the classes in [label] of the schema or with --classes"));
        }
        let name = match self.name {
            None => fitting[0],
            Some(name) if fitting.contains(&name) => name,
            Some(name) => {
                let names: Vec<String> = fitting.iter().map(word).collect();
                return Err(Failure::usage("--loss", format!("--loss {} does not fit {what}", word(&name)))
                    .at_column(&label.column)
                    .expected(names.join(", "))
                    .help("omit --loss, or say in [label] of the schema what the label holds"));
            }
        };
        if self.huber_width.is_some() && !has_width(name) {
            return Err(conflict("--huber-width", format!("--huber-width does not belong to {}", word(&name)))
                .help("add --loss huber-svm, huber-regression or log-cosh, or omit --huber-width"));
        }
        self.of(name, classes)
    }

    /// Returns the loss for a label of so many classes, or a number where the loss is for numbers.
    ///
    /// # Errors
    /// `usage.value` for a loss that does not fit the classes.
    pub fn without_label(self, classes: Option<u32>) -> Result<LossKind, Failure> {
        let several = classes.is_some_and(|classes| classes > 2);
        let name = self.name.unwrap_or(if several { Loss::Softmax } else { Loss::Logistic });
        match (name, classes) {
            (Loss::Softmax, None) => {
                Err(Failure::usage("--classes", "--loss softmax needs the number of classes")
                    .help("add --classes NUMBER"))
            }
            (name, Some(_)) if several != (name == Loss::Softmax) => Err(Failure::usage(
                "--loss",
                format!("--loss {} does not fit {} classes", word(&name), classes.unwrap_or(2)),
            )
            .expected("softmax for more than two classes, other losses for two")),
            (name, classes) => self.of(name, classes.unwrap_or(2)),
        }
    }

    /// Returns the loss for an audit, whose canaries are records of two classes or numeric.
    ///
    /// # Errors
    /// `usage.value` for a loss of several classes.
    pub fn for_audit(self) -> Result<LossKind, Failure> {
        match self.name.unwrap_or_default() {
            Loss::Softmax => Err(Failure::usage("--loss", "there are no canaries of several classes")
                .expected("a loss of two classes or of numbers")),
            name => self.of(name, 2),
        }
    }

    /// Returns the loss of this name.
    fn of(self, name: Loss, classes: u32) -> Result<LossKind, Failure> {
        let refused = |flag: &str, error: dp_losses::Error| Failure::usage(flag, error.to_string());
        let width = |usual: f64| self.huber_width.unwrap_or(usual);
        let width_refused = |error| refused("--huber-width", error).expected("a positive number, such as 0.1");
        Ok(match name {
            Loss::Logistic => LossKind::Logistic,
            Loss::HuberSvm => LossKind::HuberSvm(HuberSvm::new(width(HuberSvm::USUAL.h())).map_err(width_refused)?),
            Loss::Hinge => LossKind::Hinge,
            Loss::Squared => LossKind::Squared,
            Loss::HuberRegression => {
                LossKind::HuberRegression(HuberRegression::new(width(REGRESSION_WIDTH)).map_err(width_refused)?)
            }
            Loss::LogCosh => LossKind::LogCosh(LogCosh::new(width(REGRESSION_WIDTH)).map_err(width_refused)?),
            Loss::Absolute => LossKind::Absolute,
            Loss::Softmax => LossKind::Softmax(Softmax::new(classes).map_err(|error| refused("--loss", error))?),
        })
    }
}

/// Returns whether the loss has a smoothing width.
fn has_width(loss: Loss) -> bool {
    matches!(loss, Loss::HuberSvm | Loss::HuberRegression | Loss::LogCosh)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;
    use dp_data::schema::{LabelRange, Others};

    use super::*;

    fn labels() -> [Label; 3] {
        [
            Label::two_classes("y", vec!["1".into()], vec!["0".into()], Others::Error),
            Label::classes("y", ["a", "b", "c"].map(String::from).to_vec()),
            Label::number("y", LabelRange { min: 0.0, max: 1.0 }),
        ]
    }

    #[test]
    fn every_loss_fits_some_label_and_says_which_targets_it_takes() {
        for &loss in Loss::value_variants() {
            let asked = AskedLoss::new(Some(loss), None).unwrap();
            let fits: Vec<LossKind> = labels().iter().filter_map(|label| asked.for_label(label).ok()).collect();
            assert!(!fits.is_empty(), "{loss:?}");
            assert!(fits.iter().all(|fit| fit.name() == word(&loss)));
        }
        for label in labels() {
            let chosen = AskedLoss::new(None, None).unwrap().for_label(&label).unwrap();
            assert_eq!(chosen, dp::training::usual_loss(&label).unwrap());
            let expected = match &label.kind {
                LabelKind::TwoClasses { .. } => Some(2),
                LabelKind::Classes { classes, .. } => Some(classes.len() as u32),
                _ => None,
            };
            assert_eq!(chosen.classes(), expected);
            assert!(label.target_bound() <= chosen.usual_target_bound());
        }
    }

    #[test]
    fn a_loss_that_does_not_fit_is_named_with_those_that_do() {
        for (label, loss, expected) in [
            (0, Loss::Softmax, "logistic, huber-svm, hinge, squared"),
            (1, Loss::Logistic, "softmax"),
            (2, Loss::Softmax, "log-cosh, huber-regression, squared, absolute"),
        ] {
            let failure = AskedLoss::new(Some(loss), None).unwrap().for_label(&labels()[label]).unwrap_err();
            assert_eq!((failure.code, failure.details.expected.as_deref()), ("usage.value", Some(expected)));
            assert_eq!(failure.details.location.flag.as_deref(), Some("--loss"));
        }
    }

    #[test]
    fn widths_belong_to_the_losses_that_are_rounded_off() {
        assert_eq!(AskedLoss::new(Some(Loss::Squared), Some(0.5)).unwrap_err().code, "usage.conflict");
        for width in [0.0, -1.0, f64::NAN] {
            assert_eq!(AskedLoss::new(None, Some(width)).unwrap_err().code, "usage.value");
        }
        let any = AskedLoss::new(None, Some(0.25)).unwrap();
        let [two, several, number] = labels().map(|label| any.for_label(&label).map_err(|failure| failure.code));
        assert_eq!((two, several), (Err("usage.conflict"), Err("usage.conflict")));
        assert_eq!(number.unwrap().to_string(), "log-cosh:0.25");
    }
}
