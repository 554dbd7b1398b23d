//! Scorers and losses selected at run time.

use dp_rank::Features;
use dp_rank::loss::{BayesRank, ListLoss, ListMle, ListNet, LossBuffers, RankingLoss};
use dp_rank::metrics::Cutoff;
use dp_rank::scorer::{Linear, LinearWorkspace, Mlp, MlpWorkspace, ParameterBlock, Scorer};
use dp_rank::sensitivity::{Gram, ImageBounds};

use super::NamedLoss;

/// A scorer selected at run time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AnyScorer {
    /// A weighted sum of features.
    Linear(Linear),
    /// One hidden layer.
    Mlp(Mlp),
}

impl AnyScorer {
    /// Returns the initial weights: 0, or those of a network from a public seed.
    pub fn start(&self, seed: u64) -> Vec<f64> {
        match self {
            Self::Linear(linear) => vec![0.0; linear.parameters()],
            Self::Mlp(network) => network.initial(seed),
        }
    }
}

impl Scorer for AnyScorer {
    type Workspace = (LinearWorkspace, MlpWorkspace);

    fn features(&self) -> usize {
        match self {
            Self::Linear(scorer) => scorer.features(),
            Self::Mlp(scorer) => scorer.features(),
        }
    }

    fn parameters(&self) -> usize {
        match self {
            Self::Linear(scorer) => scorer.parameters(),
            Self::Mlp(scorer) => scorer.parameters(),
        }
    }

    fn blocks(&self) -> Vec<ParameterBlock> {
        match self {
            Self::Linear(scorer) => scorer.blocks(),
            Self::Mlp(scorer) => scorer.blocks(),
        }
    }

    fn scores(&self, parameters: &[f64], list: Features<'_>, workspace: &mut Self::Workspace, out: &mut [f64]) {
        match self {
            Self::Linear(scorer) => scorer.scores(parameters, list, &mut workspace.0, out),
            Self::Mlp(scorer) => scorer.scores(parameters, list, &mut workspace.1, out),
        }
    }

    fn add_gradient(
        &self,
        parameters: &[f64],
        list: Features<'_>,
        score_gradient: &[f64],
        workspace: &mut Self::Workspace,
        sum: &mut [f64],
    ) {
        match self {
            Self::Linear(scorer) => scorer.add_gradient(parameters, list, score_gradient, &mut workspace.0, sum),
            Self::Mlp(scorer) => scorer.add_gradient(parameters, list, score_gradient, &mut workspace.1, sum),
        }
    }

    fn gram(&self, parameters: &[f64], list: Features<'_>, workspace: &mut Self::Workspace, out: &mut [f64]) {
        match self {
            Self::Linear(scorer) => scorer.gram(parameters, list, &mut workspace.0, out),
            Self::Mlp(scorer) => scorer.gram(parameters, list, &mut workspace.1, out),
        }
    }

    fn gram_terms(&self) -> usize {
        match self {
            Self::Linear(scorer) => scorer.gram_terms(),
            Self::Mlp(scorer) => scorer.gram_terms(),
        }
    }
}

/// A loss for private training, selected at run time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AnyLoss {
    /// BayesRank.
    BayesRank(BayesRank),
    /// ListNet.
    ListNet(ListNet),
    /// ListMLE.
    ListMle(ListMle),
}

impl AnyLoss {
    /// Returns the named loss; `None` for k = 0.
    pub fn new(named: NamedLoss) -> Option<Self> {
        Some(match named {
            NamedLoss::Bayesrank { k } => Self::BayesRank(BayesRank::new(Cutoff::new(k).ok()?)),
            NamedLoss::Listnet { k } => Self::ListNet(ListNet::new(Cutoff::new(k).ok()?)),
            NamedLoss::Listmle {} => Self::ListMle(ListMle),
        })
    }

    /// Returns its name.
    pub fn named(&self) -> NamedLoss {
        match self {
            Self::BayesRank(loss) => NamedLoss::Bayesrank { k: loss.k() },
            Self::ListNet(loss) => NamedLoss::Listnet { k: loss.k() },
            Self::ListMle(ListMle) => NamedLoss::Listmle {},
        }
    }
}

impl RankingLoss for AnyLoss {
    fn evaluate(&self, scores: &[f64], grades: &[u32], buffers: &mut LossBuffers, gradient: &mut [f64]) -> f64 {
        match self {
            Self::BayesRank(loss) => loss.evaluate(scores, grades, buffers, gradient),
            Self::ListNet(loss) => loss.evaluate(scores, grades, buffers, gradient),
            Self::ListMle(loss) => loss.evaluate(scores, grades, buffers, gradient),
        }
    }
}

impl ListLoss for AnyLoss {
    fn usual_step(&self) -> f64 {
        match self {
            Self::BayesRank(loss) => loss.usual_step(),
            Self::ListNet(loss) => loss.usual_step(),
            Self::ListMle(loss) => loss.usual_step(),
        }
    }

    fn has_known_image(&self) -> bool {
        match self {
            Self::BayesRank(loss) => loss.has_known_image(),
            Self::ListNet(loss) => loss.has_known_image(),
            Self::ListMle(loss) => loss.has_known_image(),
        }
    }

    fn image(&self, scores: &[f64], gram: &Gram<'_>, thinned: bool) -> Result<ImageBounds, dp_rank::Error> {
        match self {
            Self::BayesRank(loss) => loss.image(scores, gram, thinned),
            Self::ListNet(loss) => loss.image(scores, gram, thinned),
            Self::ListMle(loss) => loss.image(scores, gram, thinned),
        }
    }

    fn has_public_centre(&self) -> bool {
        match self {
            Self::BayesRank(loss) => loss.has_public_centre(),
            Self::ListNet(loss) => loss.has_public_centre(),
            Self::ListMle(loss) => loss.has_public_centre(),
        }
    }

    fn public_centre(&self, scores: &[f64], buffers: &mut LossBuffers, centre: &mut [f64]) {
        match self {
            Self::BayesRank(loss) => loss.public_centre(scores, buffers, centre),
            Self::ListNet(loss) => loss.public_centre(scores, buffers, centre),
            Self::ListMle(loss) => loss.public_centre(scores, buffers, centre),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_keep_their_names() {
        for k in [1, 2, 10, usize::MAX] {
            for loss in [NamedLoss::Bayesrank { k }, NamedLoss::Listnet { k }, NamedLoss::Listmle {}] {
                assert_eq!(loss.loss().map(|loss| loss.named()), Some(loss));
            }
        }
        assert_eq!((NamedLoss::Listnet { k: 0 }.loss(), NamedLoss::Bayesrank { k: 0 }.loss()), (None, None));
    }

    #[test]
    fn listnet_goes_through_orders() {
        assert_eq!(NamedLoss::Listnet { k: 2 }.orders(150), 150.0 * 149.0);
        assert_eq!(NamedLoss::Listnet { k: 5 }.orders(3), 6.0);
        for loss in [NamedLoss::Listnet { k: 1 }, NamedLoss::Bayesrank { k: 2 }, NamedLoss::Listmle {}] {
            assert_eq!(loss.orders(150), 1.0);
        }
    }
}
