//! The table of the dissertation's algorithms of chapters 3 to 5 and of newer ones.

use dp_losses::LossKind;

use super::Effort;
use super::renyi::{accuracy_above_objective, better, curves, no_worse};
use super::renyi_5;
use crate::algorithm::Algorithm;
use crate::dataset::DataSet;
use crate::figure::{Figure, Measure, Panel, Series};
use crate::setting::{Privacy, Setting};

/// The algorithms compared with the two current ones, one line each.
const LINEUP: [Algorithm; 28] = [
    Algorithm::NoisyMoments,
    Algorithm::ObjPert,
    Algorithm::ObjPertCms11,
    Algorithm::ObjPertKst12,
    Algorithm::ObjPertRdp,
    Algorithm::Amp,
    Algorithm::DpNewton,
    Algorithm::DpFtrl,
    Algorithm::DpSvrg,
    Algorithm::RsgdAr,
    Algorithm::Nsgd,
    Algorithm::OutPertGd,
    Algorithm::Ours,
    Algorithm::DpGd,
    Algorithm::DpSgd,
    Algorithm::DpAdam,
    Algorithm::DpAdamBc,
    Algorithm::SsAdmm,
    Algorithm::MpAdmm,
    Algorithm::DpAdmm,
    Algorithm::AdmmObjPert,
    Algorithm::DpBlgd,
    Algorithm::DpBlsgd,
    Algorithm::DpBlsgdAc,
    Algorithm::DpAgd,
    Algorithm::PrivGene,
    Algorithm::Bst14,
    Algorithm::Scs13,
];
const OF_TODAY: [Algorithm; 2] = [Algorithm::Auto, Algorithm::ObjPertCentred];

const SETS: [DataSet; 7] = [
    DataSet::Adult,
    DataSet::Bank,
    DataSet::Covertype,
    DataSet::Higgs,
    DataSet::Occupancy,
    DataSet::Banknote,
    DataSet::KddCup,
];

/// Coefficient of the penalty that replaces λ for proximal methods.
const L1: f64 = 1e-4;

fn settings(data: DataSet, algorithm: Algorithm, epsilon: f64) -> Vec<Setting> {
    let settings = renyi_5::settings(data, LossKind::Logistic, algorithm, epsilon).into_iter();
    let change = |setting: Setting| {
        let setting = Setting { privacy: with_delta(setting.privacy), ..setting };
        let batches = setting.batch_size.min(super::renyi::training_rows(data) / 9);
        match algorithm {
            Algorithm::SsAdmm | Algorithm::MpAdmm | Algorithm::DpAdmm | Algorithm::AdmmObjPert => {
                let batch_size = super::renyi::root_of_rows(data);
                let passes = if algorithm == Algorithm::MpAdmm { 100 } else { setting.passes };
                Setting { lambda: 0.0, l1: L1, batch_size, passes, ..setting }
            }
            Algorithm::RsgdAr | Algorithm::Nsgd => Setting { batch_size: batches, ..setting },
            Algorithm::Ours | Algorithm::Bst14 | Algorithm::Scs13 => {
                Setting { batch_size: 50, step: crate::setting::Step::Usual, ..setting }
            }
            _ => setting,
        }
    };
    settings.map(change).collect()
}

/// Sets δ = 1e-8 for all data sets.
fn with_delta(privacy: Privacy) -> Privacy {
    match privacy {
        Privacy::WithDelta { epsilon, .. } => Privacy::WithDelta { epsilon, delta: 1e-8 },
        other => other,
    }
}

pub(super) fn figure(effort: Effort) -> Figure {
    let lineup = [&[Algorithm::Minimiser], &OF_TODAY[..], &LINEUP[..]].concat();
    let column = |data: DataSet| {
        let mut lineup = lineup.clone();
        if data == DataSet::KddCup {
            // Candidates times rounds times records: minutes for each run.
            lineup.retain(|&algorithm| algorithm != Algorithm::PrivGene);
        }
        (data.title().to_owned(), curves(&lineup, effort, |a, e| settings(data, a, e)))
    };
    let mut panels = accuracy_above_objective(SETS.map(column).to_vec());
    // A penalised model has another objective.
    let admm = [Algorithm::SsAdmm, Algorithm::MpAdmm, Algorithm::DpAdmm, Algorithm::AdmmObjPert];
    let penalised = |series: &Series| admm.iter().any(|a| a.title() == series.name);
    for panel in panels.iter_mut().filter(|panel: &&mut Panel| panel.measure == Measure::Objective) {
        panel.series.retain(|series| !penalised(series));
    }
    let mut claims = Vec::new();
    for one in OF_TODAY {
        for other in LINEUP {
            claims.push(no_worse(&panels, Measure::Accuracy, one, other));
        }
        for other in [Algorithm::RsgdAr, Algorithm::DpSgd, Algorithm::DpBlsgd, Algorithm::SsAdmm] {
            claims.push(better(&panels, Measure::Accuracy, one, other));
        }
    }
    Figure {
        id: "renyi-table",
        title: "Rényi DP: algorithms, data sets and budgets",
        description: "Logistic regression, λ = 0.001, δ = 1e-8, add-remove: test accuracy and training objective of \
                      the algorithms of chapters 3 to 5, of earlier papers and of the algorithms recommended today. \
                      Settings are those of figure 5.3; the four ADMM have λ‖w‖₁ with λ = 0.0001 in place of \
                      (λ/2)‖w‖², ssADMM and mpADMM ten and a hundred passes; bolt-on, BST14 and SCS13 have batches \
                      of 50. Auto and ObjPert around a centre choose their own regulariser. PrivGene, whose rounds \
                      grow with the records, is omitted on KDD Cup 99.",
        columns: 7,
        claims,
        panels,
        repetitions: effort.repetitions(10),
    }
}
