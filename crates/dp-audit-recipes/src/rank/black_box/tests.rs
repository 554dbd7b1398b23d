use std::collections::HashSet;

use dp_accountant::{Delta, Epsilon};
use dp_audit::{Auditor, Claimed, Unwatched, Verdict};

use super::*;
use dp_rank::loss::{BayesRank, ListNet};
use dp_rank::scorer::Linear;
use dp_rank::train::{Descent, Document, Grades, ListPresence, WholeList};

const ALL: [Protected; 4] = [Protected::Grades, Protected::ListPresence, Protected::WholeList, Protected::Document];

#[test]
fn pairs_differ_in_one_list_as_the_relation_allows() {
    for protected in ALL {
        let pairs = Pairs::new(protected, true);
        assert_eq!(pairs.leading, 4, "{protected:?}");
        for pair in pairs.all() {
            let [base, neighbour] = [Side::Base, Side::Neighbour].map(|side| pair.query_lists(side).unwrap());
            assert_eq!((base.len() as u64, neighbour.len()), (pair.lists(), base.len()));
            for (i, (one, other)) in base.iter().zip(neighbour.iter()).enumerate() {
                let same = one.features() == other.features() && one.grades() == other.grades();
                assert_eq!(same, i > 0, "{}", pair.describe());
            }
            let (one, other) = (base.list(0), neighbour.list(0));
            match protected {
                Protected::Grades => assert_eq!(one.features(), other.features()),
                Protected::ListPresence => assert_eq!((one.documents(), other.documents()), (2, 1)),
                Protected::WholeList => {}
                Protected::Document => {
                    let changed = |(i, j): (usize, usize)| {
                        one.features().row(i) != other.features().row(j) || one.grades()[i] != other.grades()[j]
                    };
                    let orders = [[(0, 0), (1, 1)], [(0, 1), (1, 0)]];
                    assert!(orders.iter().any(|order| order.iter().filter(|&&ij| changed(ij)).count() == 1));
                }
            }
        }
        let described: HashSet<String> = pairs.all().iter().map(Pair::describe).collect();
        assert_eq!(described.len(), pairs.all().len());
        // Without symmetries of the axes there are at most eight times as many; both counts identify exchanged data sets.
        let each = Pairs::new(protected, false).all().len();
        assert!(each > 4 * pairs.all().len() && each <= 8 * pairs.all().len(), "{protected:?}: {each}");
    }
}

fn recipe<L: ListLoss>(loss: L) -> PrivateRanking<L> {
    let usual = PrivateRanking::new(loss);
    PrivateRanking { descent: Descent { updates: 20, ..usual.descent }, ..usual }
}

/// A training with a third of the noise that its claim needs is refuted, and the correct claim is not, for all protected data.
/// Each outcome fails with probability at most 1e-4.
#[test]
fn rankers_with_a_third_of_the_noise_are_convicted() {
    fn convicted<L, P>(name: &str, recipe: PrivateRanking<L, P>)
    where
        L: ListLoss + Copy + Send + Sync + 'static,
        P: Protect,
    {
        let auditor = Auditor::exactly(10_000).unwrap().with_failure_probability(1e-4).unwrap().with_seed(1);
        let delta = Delta::new(1e-3).unwrap();
        let family = |epsilon: f64| {
            let budget = Budget { epsilon: Epsilon::new(epsilon).unwrap(), delta };
            let pairs = Arc::new(Pairs::new(P::PROTECTED, true));
            Family::new(name, recipe, budget, Linear::new(2).unwrap(), vec![0.0; 2], pairs).unwrap()
        };
        let (honest, pilot) = auditor.audit_among(&family(1.0), &Unwatched).unwrap();
        assert_eq!(honest.verdict, Verdict::NotRefuted, "{name}: {}", honest.epsilon_lower);
        assert!(pilot.tried > 10, "{name}: {pilot:?}");
        // Noise for this epsilon is about a third of that for 1, and not less.
        let broken = family(3.6);
        let noise = |family: &Family<L, Linear, P>| family.plan(2).unwrap().noise_multiplier();
        let ratio = noise(&family(1.0)) / noise(&broken);
        assert!((2.7..=3.0).contains(&ratio), "{name}: {ratio}");
        let (audit, pilot) = auditor.audit_among(&broken, &Unwatched).unwrap();
        assert_eq!(audit.verdict, Verdict::NotRefuted, "{name}: {}", audit.epsilon_lower);
        let claim = Claim { event: DpEvent::ApproximateDp { epsilon: 1.0, delta: delta.get() }, delta: delta.get() };
        let subject = Claimed::new(broken.subject(pilot.chosen).unwrap(), claim);
        let audit = auditor.audit(&subject).unwrap();
        assert_eq!(audit.verdict, Verdict::Refuted, "{name}: {} on {}", audit.epsilon_lower, audit.pair);
    }
    convicted("grades", recipe(BayesRank::TOP_1));
    convicted("presence", recipe(ListNet::TOP_1).protecting(ListPresence));
    convicted("lists", recipe(BayesRank::TOP_1).protecting(WholeList));
    convicted("documents", recipe(BayesRank::TOP_1).protecting(Document));
}

#[test]
fn pairs_of_another_relation_are_refused() {
    let budget = Budget::new(1.0, 1e-3).unwrap();
    let (recipe, pairs) = (recipe(BayesRank::TOP_1), Arc::new(Pairs::new(Protected::WholeList, true)));
    let refused = Family::new("x", recipe.protecting(Grades), budget, Linear::new(2).unwrap(), vec![0.0; 2], pairs);
    assert!(refused.is_err());
}
