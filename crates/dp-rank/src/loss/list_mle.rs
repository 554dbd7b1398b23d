//! ListMLE: the likelihood of the documents sorted by grade.

use super::{ListLoss, LossBuffers, RankingLoss, check_lengths};

/// The negative Plackett–Luce log-likelihood of the documents in descending order of grades.
///
/// # Formula
/// ```text
/// L = Σ_t [ log Z_t - s_{o_t} ],  Z_t = Σ_{v >= t} exp(s_{o_v}),  g_{o_t} = exp(s_{o_t}) Σ_{u <= t} 1/Z_u - 1
/// ```
/// with `o` the documents sorted by grade. Documents of equal grade keep the given order, so the loss *depends on that order*.
/// Call [`shuffle_documents`](crate::QueryLists::shuffle_documents) first if the order carries information.
///
/// # Examples
/// ```
/// use dp_rank::loss::{ListMle, RankingLoss};
/// let mut gradient = [0.0; 2];
/// let loss = ListMle.evaluate(&[0.0, 0.0], &[0, 2], &mut Default::default(), &mut gradient);
/// assert!((loss - 2.0_f64.ln()).abs() < 1e-15);
/// assert_eq!(gradient, [0.5, -0.5]);
/// ```
///
/// # References
/// F. Xia, T.-Y. Liu, J. Wang, W. Zhang and H. Li 2008, "Listwise approach to learning to rank: theory and algorithm".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListMle;

impl RankingLoss for ListMle {
    fn evaluate(&self, scores: &[f64], grades: &[u32], buffers: &mut LossBuffers, gradient: &mut [f64]) -> f64 {
        check_lengths(scores, grades, gradient);
        let LossBuffers { weights: log_sums, order, .. } = buffers;
        order.clear();
        order.extend(0..scores.len());
        order.sort_by_key(|&document| core::cmp::Reverse(grades[document]));
        // log Z_t from the last position up.
        log_sums.clear();
        log_sums.resize(scores.len(), 0.0);
        let mut log_sum = f64::NEG_INFINITY;
        for (log_z, &document) in log_sums.iter_mut().zip(order.iter()).rev() {
            log_sum = log_add(log_sum, scores[document]);
            *log_z = log_sum;
        }
        // log Σ_{u <= t} 1/Z_u from the first position down.
        let (mut loss, mut log_inverse) = (0.0, f64::NEG_INFINITY);
        for (log_z, &document) in log_sums.iter().zip(order.iter()) {
            loss += log_z - scores[document];
            log_inverse = log_add(log_inverse, -log_z);
            gradient[document] = (scores[document] + log_inverse).exp() - 1.0;
        }
        loss
    }
}

impl ListLoss for ListMle {}

/// Returns `log(exp a + exp b)`.
fn log_add(a: f64, b: f64) -> f64 {
    let (least, largest) = if a < b { (a, b) } else { (b, a) };
    if least == f64::NEG_INFINITY { largest } else { largest + (least - largest).exp().ln_1p() }
}
