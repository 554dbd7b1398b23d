//! The terms of the field, as this project uses them.

/// A term with its definition.
#[derive(Debug, Clone, Copy)]
pub struct Term {
    /// Its names, the usual one first, in lower case with hyphens.
    pub names: &'static [&'static str],
    /// The definition.
    pub text: &'static str,
}

/// The terms, in alphabetical order.
pub const TERMS: &[Term] = &[
    Term {
        names: &["accountant", "accounting"],
        text: "Computes the epsilon and delta of everything that was released, from the noise and the number of releases. \
               `dp account` computes an upper and a lower bound, which usually agree to many digits.",
    },
    Term {
        names: &["add-remove", "zero-out"],
        text: "The neighbouring relation in which one record is replaced by a null record that contributes nothing, or the \
               reverse. Training publishes the number of records, so this is what the literature calls zero-out or \
               replace-special; under add-remove with a secret number of records, which some accounting jobs support, even \
               that number is protected. A guarantee under add-remove implies one under replace-one with twice the epsilon and a \
               larger delta.",
    },
    Term {
        names: &["adjacency", "neighbouring-relation", "neighbors"],
        text: "It states which pairs of data sets a guarantee compares: those that differ in one record under add-remove or replace-one. \
               Guarantees under different relations do not compose, and their epsilons are not comparable.",
    },
    Term {
        names: &["amplification", "subsampling"],
        text: "A step that uses a random part of the records protects each record more than the same step on all of them. It \
               needs batches that are drawn at random in secret and an analysis of this sampling.",
    },
    Term {
        names: &["auc", "roc"],
        text: "Area under the curve of the true-positive rate against the false-positive rate of a classifier over all \
               thresholds: the probability that a random positive record has a higher score than a random negative one. 0.5 \
               is guessing, 1 is perfect.",
    },
    Term {
        names: &["base-rate"],
        text: "The share of positive records. `--threshold base-rate` decides at a noisy base rate instead of probability \
               0.5, which balances the error rates of a rare and a frequent class.",
    },
    Term {
        names: &["batch-size", "batch"],
        text: "The number of records whose gradients are added up in one step. Under Poisson sampling it is the expected number.",
    },
    Term {
        names: &["budget", "privacy-budget"],
        text: "The epsilon and delta that all releases on the same people may cost together. Two releases cost more than one: \
               see composition.",
    },
    Term {
        names: &["calibration"],
        text: "Of noise: the smallest noise with which the guarantee holds. Of predictions: among records predicted with \
               probability 0.7, seven in ten are positive; `dp evaluate --curves` shows it.",
    },
    Term {
        names: &["certificate"],
        text: "The part of a model file that states what was released and under which assumptions. `dp verify` recomputes \
               epsilon and delta from it without the data.",
    },
    Term {
        names: &["clipping-norm", "clipping", "clip"],
        text: "A gradient or row that is longer is scaled down to this norm, so that no record contributes more. It is a public \
               number, chosen without looking at the data. An adaptive norm begins with such a number and follows noisy counts.",
    },
    Term {
        names: &["composition"],
        text: "The joint guarantee of several releases on the same people. The joint epsilon is at most the sum; the exact figure is \
               smaller, about the square root of the number of releases times one epsilon for Gaussian noise. `dp account` \
               computes it.",
    },
    Term {
        names: &["cosines", "curves"],
        text: "Functions of a numeric column that become features, so that its contribution is a curve instead of a line \
               (`--curves`). More functions fit more shapes and cost more noise.",
    },
    Term {
        names: &["delta"],
        text: "The second parameter of (epsilon, delta)-differential privacy: for every event the probability with the record \
               is at most e to the epsilon times that without it, plus delta. Choose it far below one over the number of \
               records, since a mechanism that publishes one random record satisfies delta = 1/n. With delta = 0 the guarantee \
               is pure.",
    },
    Term {
        names: &["differential-privacy", "dp"],
        text: "A property of a randomised computation: whatever it publishes is about as probable with any one record as \
               without it. It bounds what anyone can learn about a person from the result, whatever else they know.",
    },
    Term { names: &["epoch", "pass"], text: "One pass over all records." },
    Term {
        names: &["epsilon"],
        text: "The privacy parameter: with and without one record the probability of any result differs at most by the factor \
               e to the epsilon, apart from delta. Smaller is more private: 0.1 is a factor of 1.1, 1 of 2.7, 5 of 148. `dp \
               plan` shows what an epsilon is expected to cost in accuracy; the report of a model says what its guarantee \
               means for an attacker.",
    },
    Term {
        names: &["expected-loss"],
        text: "The fraction of the possible gain over the majority class (for numbers: over the mean) that privacy is \
               expected to cost, from public numbers alone.",
    },
    Term {
        names: &["fourier-features", "random-fourier-features"],
        text: "Cosines of random directions through all columns that become features (`--fourier`), so that a model learns \
               interactions of columns. They follow from the schema and from a public seed. Where columns do not interact they only \
               add noise; `--fourier-if-better` trains without and with them and chooses privately.",
    },
    Term {
        names: &["gaussian-mechanism", "gaussian"],
        text: "Normal noise on each coordinate, in proportion to the L2 sensitivity. Needs delta > 0.",
    },
    Term {
        names: &["gradient-perturbation"],
        text: "Noise on the gradient of each step, as in DP-SGD. Every iterate is protected, and all steps compose.",
    },
    Term {
        names: &["group-privacy", "group"],
        text: "The guarantee for several records at once. For k records epsilon is at most k times as large, and delta grows \
               faster. `dp account ... --group K` computes it; `dp train --unit` protects all rows of a person.",
    },
    Term {
        names: &["held-out"],
        text: "Records that were not used for training. Metrics on held-out private records are not covered by the model's \
               guarantee.",
    },
    Term {
        names: &["lambda", "regularisation"],
        text: "Coefficient of the L2 penalty (lambda/2)|w|^2 in the mean loss. It limits the norm of the weights and makes the \
               objective strongly convex, which lowers the sensitivity.",
    },
    Term {
        names: &["laplace-ball"],
        text: "Noise with density in proportion to exp(-|z|/scale) for the L2 norm: pure differential privacy for a vector of \
               known L2 sensitivity. In few dimensions it is smaller than Gaussian noise.",
    },
    Term { names: &["learning-rate", "step-size"], text: "The factor of the gradient in an update of the weights." },
    Term {
        names: &["noise-multiplier"],
        text: "The scale of the noise (for Gaussian noise its standard deviation) divided by the sensitivity.",
    },
    Term {
        names: &["null-record"],
        text: "A record whose contribution to every sum is 0. It takes the place of a record that is left out, so that the \
               number of records stays the same.",
    },
    Term {
        names: &["objective-perturbation"],
        text: "A random linear term in the objective, whose minimiser is released. The whole model costs about what one noisy \
               gradient costs.",
    },
    Term {
        names: &["one-hot"],
        text: "A category as one feature for each declared value, of which the present one is 1 and all others are 0.",
    },
    Term {
        names: &["output-perturbation"],
        text: "Noise on the trained weights, in proportion to how much one record can move them. Bolt-on algorithms do this.",
    },
    Term {
        names: &["poisson-sampling"],
        text: "Each record is in a batch with the same probability, independently of the others, so that the size of the batch is \
               random.",
    },
    Term {
        names: &["post-processing"],
        text: "What is computed from a released result alone, such as predictions, another threshold or a picture of the \
               coefficients, costs no further privacy.",
    },
    Term {
        names: &["privacy-loss-distribution", "pld"],
        text: "The distribution of the logarithm of the likelihood ratio between two neighbouring data sets. From it the \
               accountant computes exact compositions.",
    },
    Term {
        names: &["public"],
        text: "Known to everyone, or chosen without looking at the records: ranges, categories and settings. What is taken from \
               the records and still assumed public is listed in the certificate.",
    },
    Term {
        names: &["renyi-dp", "rdp", "zcdp", "gdp"],
        text: "Other measures of the same protection, which compose by addition: Renyi divergences of each order (RDP), \
               zero-concentrated (zCDP) and Gaussian (GDP) differential privacy. Each implies a curve of (epsilon, delta) pairs.",
    },
    Term {
        names: &["replace-one"],
        text: "The neighbouring relation in which one record is replaced by any other. The number of records is public.",
    },
    Term {
        names: &["row-norm", "row-normalisation"],
        text: "The bound on the L2 norm of an encoded row, usually 1. Rows are divided by their norm or clipped to it, so that \
               no record has a longer gradient than any other.",
    },
    Term { names: &["sampling-rate"], text: "The probability with which a record is in a batch." },
    Term {
        names: &["schema"],
        text: "The file that states what is publicly known about the columns: types, ranges, categories, the label. Ranges must \
               not be read off the records.",
    },
    Term {
        names: &["sensitivity"],
        text: "The largest change of a computed value when one record changes. Noise is calibrated to it.",
    },
    Term {
        names: &["standard-error"],
        text: "The standard deviation that the privacy noise gives a coefficient. The error of the sample is not part of it.",
    },
    Term {
        names: &["trade-off", "trade-off-curve"],
        text: "For each false-positive rate of an attacker who tests whether a record was used, the largest true-positive rate \
               that the guarantee allows. It says more than a single epsilon.",
    },
    Term {
        names: &["unit", "unit-of-privacy"],
        text: "Who is protected: a record, or all rows with one value of a column, such as those of one patient (`--unit`).",
    },
    Term {
        names: &["warm-start", "centre"],
        text: "A first estimate from which training starts, or to which the regulariser pulls instead of 0. It is released \
               with noise, for a share of the budget.",
    },
];

/// Returns the term with this name, however it is spelt.
pub fn find(name: &str) -> Option<&'static Term> {
    let name = name.trim().to_lowercase().replace([' ', '_'], "-");
    TERMS.iter().find(|term| term.names.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_in_order_and_every_name_is_unique() {
        assert!(TERMS.windows(2).all(|pair| pair[0].names[0] < pair[1].names[0]));
        let names: Vec<&str> = TERMS.iter().flat_map(|term| term.names).copied().collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
        }
        for term in TERMS {
            assert!(term.text.ends_with('.') && term.text.len() > 20, "{:?}", term.names);
        }
        assert!(find("Clipping Norm").is_some() && find("ZERO_OUT").is_some() && find("magic").is_none());
    }
}
