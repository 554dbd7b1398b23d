//! Checks every sentence about protection against the exact law, computed here independently: masses of small cells of both
//! laws, ordered by their ratio. No such sentence may appear elsewhere.
//!
//! `cargo test -p dp-cli --test commands protection -- --nocapture` prints the table of sentences.

use std::path::{Path, PathBuf};

use crate::support::Workplace;
use dp::protection::Meaning;
use dp_accountant::bound;
use dp_accountant::guarantee::Unit;
use dp_accountant::semantics::Protection;
use dp_accountant::{AdjacencyKind, Delta, DpEvent, Epsilon, MarginLoss};

/// Masses of cells under both neighbours, ordered by decreasing likelihood ratio of the first.
struct Pair(Vec<(f64, f64)>);

impl Pair {
    fn new(mut cells: Vec<(f64, f64)>) -> Self {
        cells.retain(|&(p, q)| p > 0.0 || q > 0.0);
        let share = |(p, q): &(f64, f64)| q / (p + q);
        cells.sort_unstable_by(|a, b| share(a).total_cmp(&share(b)));
        Self(cells)
    }

    fn reversed(&self) -> Self {
        Self::new(self.0.iter().map(|&(p, q)| (q, p)).collect())
    }

    /// The joint release of both.
    fn and(&self, other: &Self) -> Self {
        Self::new(self.0.iter().flat_map(|&(p, q)| other.0.iter().map(move |&(r, s)| (p * r, q * s))).collect())
    }

    /// The most powerful tests: false-positive and true-positive rate at every threshold.
    fn tests(&self) -> impl Iterator<Item = ((f64, f64), (f64, f64))> {
        self.0.iter().scan((0.0, 0.0), |(alpha, power), &(p, q)| {
            let before = (*alpha, *power);
            (*alpha, *power) = (*alpha + q, *power + p);
            Some((before, (p, q)))
        })
    }

    fn advantage(&self) -> f64 {
        self.0.iter().map(|(p, q)| (p - q).max(0.0)).sum()
    }

    fn true_positive_rate(&self, rate: f64) -> f64 {
        self.tests()
            .find(|((alpha, _), (_, q))| alpha + q >= rate)
            .map_or(1.0, |((alpha, power), (p, q))| if q > 0.0 { power + p * (rate - alpha) / q } else { power + p })
    }

    /// Returns the largest probability of an event that alone changes the odds by the factor.
    fn odds_beyond(&self, log_factor: f64) -> f64 {
        let factor = log_factor.exp();
        let mut largest = 0.0;
        for ((alpha, power), (p, q)) in self.tests() {
            if power + p > factor * (alpha + q) {
                largest = power + p;
            } else if p < factor * q {
                // The part of this cell that the factor allows.
                let part = (power - factor * alpha) / (factor * q - p);
                return f64::max(largest, power + p * part.clamp(0.0, 1.0));
            }
        }
        largest
    }

    /// Returns the probability that the privacy loss itself is larger.
    fn loss_beyond(&self, log_factor: f64) -> f64 {
        self.0.iter().filter(|(p, q)| *p > log_factor.exp() * q * (1.0 + 1e-12)).map(|(p, _)| p).sum()
    }

    /// Returns the factor by which an event of this probability can raise the odds.
    fn bayes_factor(&self, failure: f64) -> f64 {
        let found = self.tests().find(|((_, power), (p, _))| power + p >= failure);
        found.map_or(1.0, |((alpha, power), (p, q))| failure / (alpha + q * (failure - power) / p))
    }
}

/// Returns the cells between equally spaced points of a law on the line, given by its distribution function at both
/// neighbours.
fn cells(low: f64, high: f64, count: usize, cdf: impl Fn(f64) -> f64, shift: f64) -> Pair {
    let at = |i: usize| low + (high - low) * i as f64 / count as f64;
    // Masses are computed from the nearer tail to keep the digits of small ones: the law is symmetric.
    let mass = |a: f64, b: f64| if a > 0.0 { cdf(-a) - cdf(-b) } else { cdf(b) - cdf(a) };
    Pair::new((0..count).map(|i| (mass(at(i) - shift, at(i + 1) - shift), mass(at(i), at(i + 1)))).collect())
}

/// Computes Phi by its continued fraction and series.
fn normal(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x > 0.0 {
        return 1.0 - normal(-x);
    }
    if x > -4.0 {
        // Phi(x) = 1/2 + phi(x) (x + x^3/3 + x^5/15 + ...).
        let (mut term, mut sum) = (x, x);
        for k in 1..120 {
            term *= x * x / f64::from(2 * k + 1);
            sum += term;
        }
        return 0.5 + density * sum;
    }
    let mut fraction = -x;
    for k in (1..80).rev() {
        fraction = -x + f64::from(k) / fraction;
    }
    density / fraction
}

fn laplace(x: f64) -> f64 {
    if x < 0.0 { 0.5 * x.exp() } else { 1.0 - 0.5 * (-x).exp() }
}

fn gaussian(mu: f64) -> Pair {
    cells(-9.0, 9.0 + mu, 200_000, normal, mu)
}

/// The density `e^-|x|` in three dimensions at distance `x`: cells of radius and cosine, evaluated at their midpoints.
fn ball_of_three(x: f64) -> Pair {
    let (radii, cosines) = (1500, 700);
    let mut found = Vec::with_capacity(radii * cosines);
    for i in 0..radii {
        let r = 40.0 * (i as f64 + 0.5) / radii as f64;
        let of_radius = 0.5 * r * r * (-r).exp() * 40.0 / radii as f64 / cosines as f64;
        for j in 0..cosines {
            let cosine = -1.0 + 2.0 * (j as f64 + 0.5) / cosines as f64;
            let other = (r * r - 2.0 * r * x * cosine + x * x).sqrt();
            found.push((of_radius, of_radius * (r - other).exp()));
        }
    }
    // Nearly all of the mass; the two directions of the pair are mirror images.
    Pair::new(found)
}

fn response(epsilon: f64) -> Pair {
    let truth = epsilon.exp() / (1.0 + epsilon.exp());
    Pair::new(vec![(truth, 1.0 - truth), (1.0 - truth, truth)])
}

fn k_ary(buckets: u32, noise: f64) -> Pair {
    let other = noise / f64::from(buckets);
    let truth = 1.0 - noise + other;
    Pair::new(vec![(truth, other), (other, truth), (1.0 - truth - other, 1.0 - truth - other)])
}

/// The pair that attains `(epsilon, delta)` exactly.
fn approximate(epsilon: f64, delta: f64) -> Pair {
    let mut cells: Vec<_> = response(epsilon).0.iter().map(|(p, q)| (p * (1.0 - delta), q * (1.0 - delta))).collect();
    cells.extend([(delta, 0.0), (0.0, delta)]);
    Pair::new(cells)
}

/// One record in a batch with this probability; its presence shifts the sum by `1/sigma`.
fn sampled(rate: f64, sigma: f64) -> Pair {
    let plain = |x: f64| normal(x);
    let (count, low, high) = (200_000, -9.0, 9.0 + 1.0 / sigma);
    let at = |i: usize| low + (high - low) * i as f64 / count as f64;
    let mass = |a: f64, b: f64| if a > 0.0 { plain(-a) - plain(-b) } else { plain(b) - plain(a) };
    let cell = |i: usize| {
        let (a, b) = (at(i), at(i + 1));
        (rate * mass(a - 1.0 / sigma, b - 1.0 / sigma) + (1.0 - rate) * mass(a, b), mass(a, b))
    };
    Pair::new((0..count).map(cell).collect())
}

/// A composition's pair with few cells: neighbouring ratios are merged, which is post-processing.
fn merged(pair: Pair, count: usize) -> Pair {
    let size = pair.0.len().div_ceil(count);
    Pair::new(pair.0.chunks(size).map(|part| part.iter().fold((0.0, 0.0), |(a, b), (p, q)| (a + p, b + q))).collect())
}

/// A release with its exact law, and the allowed factor of a number over the exact one.
struct Case {
    name: &'static str,
    event: DpEvent,
    relation: AdjacencyKind,
    delta: f64,
    pair: Pair,
    loose: f64,
}

fn repeated(event: DpEvent, count: u64) -> DpEvent {
    DpEvent::SelfComposed { event: Box::new(event), count }
}

fn events() -> Vec<Case> {
    let gaussian_event = |mu: f64| DpEvent::Gaussian { std_dev: 1.0, sensitivity: mu };
    let laplace_event = |x: f64| DpEvent::Laplace { scale: 1.0, sensitivity: x };
    let mut cases = Vec::new();
    let mut add = |name, event, delta, pair, loose| {
        let relation = match event {
            DpEvent::RandomizedResponse { .. } => AdjacencyKind::ReplaceOne,
            _ => AdjacencyKind::ZeroOut,
        };
        cases.push(Case { name, event, relation, delta, pair, loose });
    };
    // (1, 1e-6); the others have other epsilons and deltas.
    add("Gaussian, mu 0.2367", gaussian_event(0.236_704_48), 1e-6, gaussian(0.236_704_48), 1e-3);
    add("Gaussian, mu 0.05", gaussian_event(0.05), 1e-8, gaussian(0.05), 1e-3);
    add("Gaussian, mu 2", gaussian_event(2.0), 1e-3, gaussian(2.0), 1e-3);
    add("Gaussian, mu 1", gaussian_event(1.0), 0.3, gaussian(1.0), 1e-3);
    add("Laplace, 1", laplace_event(1.0), 0.0, cells(-50.0, 51.0, 101_000, laplace, 1.0), 1e-3);
    add("Laplace, 3", laplace_event(3.0), 1e-3, cells(-50.0, 53.0, 103_000, laplace, 3.0), 1e-3);
    let ball = |x| DpEvent::LaplaceBall { scale: 1.0, sensitivity: x, dim: 3 };
    add("ball of dimension 3, 1", ball(1.0), 0.0, ball_of_three(1.0), 2e-2);
    add("ball of dimension 3, 2", ball(2.0), 1e-2, ball_of_three(2.0), 2e-2);
    add("randomised response, 10", DpEvent::RandomizedResponse { buckets: 10, noise: 0.5 }, 0.0, k_ary(10, 0.5), 1e-3);
    add("pure, 0.1", DpEvent::PureDp { epsilon: 0.1 }, 0.0, response(0.1), 1e-3);
    add("pure, 2", DpEvent::PureDp { epsilon: 2.0 }, 1e-2, response(2.0), 1e-3);
    let approximate_event = |epsilon, delta| DpEvent::ApproximateDp { epsilon, delta };
    add("approximate, (1, 0.01)", approximate_event(1.0, 0.01), 0.01, approximate(1.0, 0.01), 1e-3);
    add(
        "approximate, (1, 0.9999999)",
        approximate_event(1.0, 0.999_999_9),
        0.999_999_9,
        approximate(1.0, 0.999_999_9),
        1e-3,
    );
    let step = |rate, sigma| DpEvent::PoissonSampled {
        sampling_rate: rate,
        event: Box::new(DpEvent::Gaussian { std_dev: sigma, sensitivity: 1.0 }),
    };
    add("sampled Gaussian, once", step(0.01, 1.0), 1e-5, sampled(0.01, 1.0), 1e-3);
    let twice = merged(sampled(0.1, 2.0), 1500);
    add("sampled Gaussian, twice", repeated(step(0.1, 2.0), 2), 1e-4, twice.and(&twice), 2e-2);
    // Twenty answers: the number of the rarer one is binomial.
    let answers = response(0.2);
    let mut many = Pair::new(vec![(1.0, 1.0)]);
    for _ in 0..20 {
        many = merged_equal(many.and(&answers));
    }
    add("pure 0.2, 20 times", repeated(DpEvent::PureDp { epsilon: 0.2 }, 20), 1e-5, many, 1e-3);
    let both = DpEvent::Composed { events: vec![gaussian_event(0.5), laplace_event(0.5)] };
    let coarse = merged(gaussian(0.5), 3000);
    let pair = coarse.and(&merged(cells(-40.0, 40.5, 80_500, laplace, 0.5), 600));
    add("Gaussian and Laplace, 0.5 each", both, 1e-5, pair, 2e-2);
    // Compared with the Gaussian mechanism at the same noise, which costs slightly less.
    let perturbed = DpEvent::ObjectivePerturbation { std_dev: 5.0, regularization: 20.0, loss: MarginLoss::Logistic };
    add("objective perturbation", perturbed, 1e-6, gaussian(0.2), 1e-3);
    cases
}

/// Merges cells of equal ratio, which is exact.
fn merged_equal(pair: Pair) -> Pair {
    let mut merged: Vec<(f64, f64)> = Vec::new();
    for (p, q) in pair.0 {
        match merged.last_mut() {
            Some((r, s)) if (*r * q - p * *s).abs() <= 1e-9 * p * *s => (*r, *s) = (*r + p, *s + q),
            _ => merged.push((p, q)),
        }
    }
    Pair::new(merged)
}

/// Returns the numbers of a sentence.
fn numbers(sentence: &str) -> Vec<f64> {
    sentence.split([' ', ',']).map(|word| word.trim_end_matches('.')).filter_map(|word| word.parse().ok()).collect()
}

#[test]
#[allow(clippy::print_stdout, reason = "the table is what people run this test for")]
fn every_number_of_a_sentence_bounds_the_exact_law_and_is_near_it() {
    let mut table = String::new();
    let mut checked = 0;
    for case in events() {
        let delta = Delta::new(case.delta).unwrap();
        let reached = bound::epsilon(&case.event, delta).unwrap().value.max(1e-9);
        let epsilon = Epsilon::new(reached).unwrap();
        let protection = Protection::of_event(&case.event, case.relation, epsilon, delta).unwrap();
        let (failure, largest) = (protection.failure, protection.log_bayes_factor);
        let meaning = Meaning::new(protection, case.relation, &Unit::Record);
        let both = [case.pair.reversed(), case.pair];
        let exactly = |f: &dyn Fn(&Pair) -> f64| both.iter().map(f).fold(0.0, f64::max);
        let text = meaning.text();
        let sentences: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  ")).collect();
        assert!(sentences.len() >= 5, "{text}");
        table.push_str(&format!("{}: epsilon {reached:.4} at delta {}\n", case.name, case.delta));
        for sentence in meaning.short().iter().map(String::as_str).skip(1) {
            assert!(sentences.contains(&sentence), "{sentence} is not in {text}");
        }
        let mut factors = 0;
        for sentence in sentences {
            let found = numbers(sentence);
            let (stated, exact) = match found[..] {
                [right] if sentence.starts_with("Where both answers are equally likely") => {
                    (right, 0.5 + 0.5 * exactly(&|pair| pair.advantage()))
                }
                [rate, at_most] if sentence.starts_with("At a false-positive rate") => {
                    (at_most, exactly(&|pair| pair.true_positive_rate(rate)))
                }
                [factor, probability] if sentence.contains("rise by a factor above") => {
                    factors += 1;
                    // A statement must hold for the printed factor, which is rounded up, and for the output itself.
                    let shown = factor.ln();
                    for exact in [exactly(&|pair| pair.odds_beyond(shown)), exactly(&|pair| pair.loss_beyond(shown))] {
                        assert!(probability >= exact * (1.0 - 1e-6), "{}: {sentence} {exact}", case.name);
                    }
                    // It must also be near the exact value: first for epsilon, then for the probability.
                    match factors {
                        1 => (probability, exactly(&|pair| pair.odds_beyond(reached))),
                        _ => (factor, exactly(&|pair| pair.bayes_factor(failure))),
                    }
                }
                [factor] if sentence.contains("rise by a factor of at most") => (factor, reached.exp()),
                [prior, at_most, ..] if sentence.starts_with("A belief of") => {
                    let factor =
                        if failure > 0.0 { exactly(&|pair| pair.bayes_factor(failure)) } else { largest.exp() };
                    (at_most, prior * factor / (1.0 - prior + prior * factor))
                }
                _ => panic!("{sentence}"),
            };
            table.push_str(&format!("  {stated:<10} exact {exact:<12.6} {sentence}\n"));
            assert!(stated >= exact * (1.0 - 1e-6), "{}: {sentence} The exact number is {exact}", case.name);
            // Three digits, rounded up, are accurate to 1 %.
            let most = exact * (1.0 + 0.01 + case.loose) + 1e-12;
            assert!(stated <= most, "{}: {sentence} The exact number is {exact}", case.name);
            checked += 1;
        }
    }
    println!("{table}");
    assert!(checked > 100, "{checked}");
}

/// A delta that protects no one is reported in every result, even if standard error is silent.
#[test]
fn a_delta_that_allows_whole_records_is_loud() {
    let place = Workplace::new();
    place.write("people.csv", crate::support::people(300, 1));
    let train = |delta: &str, out: &str, report: &str| {
        let data =
            ["train", "--data", "people.csv", "--label", "earns", "--positive", "yes", "--schema-from-data", "-q"];
        place
            .dp(&[&data[..], &["--epsilon", "1", "--delta", delta, "--out", out, "--report", report, "--json"]]
                .concat())
    };
    let said = |delta: &str, published: u32| {
        format!("delta = {delta} is not below 1/n = 1/300: publishing {published} of the 300 records, drawn at random")
    };
    for (delta, published) in [("0.01", 3), ("0.9999999", 299)] {
        let said = said(delta, published);
        let trained = train(delta, &format!("{published}.json"), &format!("{published}.md"));
        assert!(trained.stderr.is_empty(), "{trained:?}");
        assert!(trained.json()["warnings"][0].as_str().unwrap().starts_with(&said));
        let report = place.read(&format!("{published}.md"));
        assert!(report.contains(&format!("- **WARNING: {said}")), "{report}");
        let model = format!("{published}.json");
        assert!(place.dp(&["verify", &model, "-q"]).ok().contains(&format!("WARNING    {said}")));
        let verified = place.dp(&["verify", &model, "-q", "--json"]).json();
        assert!(verified["warnings"][0].as_str().unwrap().starts_with(&said), "{verified}");
    }
    let nearly_one = place.read("299.md");
    assert!(nearly_one.contains("a guess is right with probability at most 1."), "{nearly_one}");
    assert!(nearly_one.contains("the true-positive rate is at most 1."), "{nearly_one}");
    let trained = train("1e-6", "well.json", "well.md");
    assert!(trained.json()["warnings"].is_null());
    assert!(!place.read("well.md").contains("WARNING") && !place.dp(&["verify", "well.json"]).ok().contains("WARNING"));
}

/// Words of a sentence about what an attacker can infer, or of a judgement about a guarantee.
const WORDS: [&str; 22] = [
    "odds ",
    "accuse",
    "innocent",
    "participant",
    "strong protection",
    "moderate protection",
    "weak protection",
    "formal protection",
    "strong privacy",
    "weak privacy",
    "strong guarantee",
    "weak guarantee",
    "by convention",
    "except with probability",
    "false-positive rate",
    "true-positive rate",
    "bayes factor",
    "e^epsilon",
    "protected less",
    "times less",
    "failure probability",
    "plausible deniability",
];

/// Files that may contain them: the module that defines such sentences, and descriptions of measured attacks and of classifiers, which are
/// not bounds.
const ALLOWED: [&str; 6] = [
    "dp/src/protection.rs",
    "dp-cli/src/commands/audit/",
    "dp-cli/src/commands/evaluate",
    "dp-cli/src/commands/explain/terms.rs",
    "dp/src/metrics/",
    "dp-audit/README.md",
];

fn texts(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            texts(&path, ending, found);
        } else if path.extension().is_some_and(|found| found == ending) {
            found.push(path);
        }
    }
}

/// A hand-written sentence about protection would not be checked.
#[test]
fn no_sentence_about_protection_stands_elsewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    texts(&root.join("crates/dp/src"), "rs", &mut files);
    texts(&root.join("crates/dp-cli/src"), "rs", &mut files);
    files.push(root.join("README.md"));
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        let readme = entry.unwrap().path().join("README.md");
        files.extend(readme.exists().then_some(readme));
    }
    assert!(files.len() > 80, "{}", files.len());
    // The example of a README equals the module's output.
    let (epsilon, delta) = (Epsilon::new(1.0).unwrap(), Delta::new(1e-6).unwrap());
    let std_dev = dp_accountant::gaussian::noise_multiplier(epsilon, delta).unwrap().get();
    let event = DpEvent::Gaussian { std_dev, sensitivity: 1.0 };
    let protection = Protection::of_event(&event, AdjacencyKind::ZeroOut, epsilon, delta).unwrap();
    let example = Meaning::new(protection, AdjacencyKind::ZeroOut, &Unit::Record).text().trim().to_owned();
    let readme = std::fs::read_to_string(root.join("crates/dp-cli/README.md")).unwrap();
    assert!(readme.contains(&example), "the README is to say:\n{example}");
    let mut found = Vec::new();
    for file in files {
        let name = file.to_string_lossy().replace('\\', "/");
        if ALLOWED.iter().any(|allowed| name.contains(allowed)) {
            continue;
        }
        // Sentences are wrapped, in string literals with a backslash.
        let text = std::fs::read_to_string(&file).unwrap().replace(&example, "").to_lowercase().replace('\\', " ");
        let text = text.split_whitespace().filter(|word| *word != "///" && *word != "//").collect::<Vec<_>>().join(" ");
        found.extend(WORDS.iter().filter(|words| text.contains(**words)).map(|words| format!("{name}: {words}")));
    }
    assert!(found.is_empty(), "to be said by dp/src/protection.rs alone:\n{}", found.join("\n"));
}
