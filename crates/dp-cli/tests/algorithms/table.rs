//! The table of private algorithms: what each can do, what its certificate rests on, and what it refuses.

/// A private algorithm on a small table.
pub struct Row {
    /// Its value of `--algorithm`.
    pub name: &'static str,
    /// Relations that it is proved under, its default first.
    pub relations: &'static [&'static str],
    /// Flags of each way of running it that is worth a test; they hold `--epsilon`.
    pub runs: &'static [&'static [&'static str]],
    /// A flag with a value that it does not take.
    pub untaken: [&'static str; 2],
    /// Numbers of the certificate's `derivation` on which noise or sensitivity depends in the first run: each is
    /// changed by a tenth or by one, and the seals repaired.
    pub decisive: &'static [&'static str],
    /// Combinations that are refused: flags, exit code, error code, a word of the message.
    pub refused: &'static [(&'static [&'static str], i32, &'static str, &'static str)],
}

/// Every one but those that are not private.
pub const ALGORITHMS: &[Row] = &[
    Row {
        name: "auto",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6"],
            &["--epsilon", "1"],
            &["--epsilon", "2", "--delta", "1e-6", "--loss", "hinge", "--noise", "rounded", "--float", "f32"],
            &["--epsilon", "1", "--delta", "1e-6", "--loss", "squared", "--lambda", "0.01", "--passes", "7"],
            &["--epsilon", "1", "--radius", "3", "--loss", "hinge"],
        ],
        untaken: ["--batch-size", "5"],
        decisive: &["/noise/scale", "/release/scale", "/regularization", "/n", "/recipe/row_norm"],
        refused: &[
            (&["--epsilon", "1", "--radius", "1e200"], 4, "privacy.refused", "radius"),
            (&["--epsilon", "1", "--loss", "softmax"], 2, "usage.value", "--loss"),
        ],
    },
    Row {
        name: "bolt-on-convex",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--passes", "3"],
            &["--epsilon", "1", "--delta", "1e-6", "--output-noise", "gaussian"],
            &["--epsilon", "2", "--noise", "rounded", "--float", "f32"],
        ],
        untaken: ["--clip", "1"],
        decisive: &["/noise/scale", "/recipe/passes", "/recipe/schedule/step", "/recipe/row_norm", "/dim"],
        refused: &[
            (&["--epsilon", "1", "--output-noise", "gaussian"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--loss", "squared", "--radius", "1e200"], 4, "privacy.refused", "radius"),
        ],
    },
    Row {
        name: "bolt-on-strongly-convex",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--lambda", "0.05"],
            &["--epsilon", "1", "--delta", "1e-6", "--output-noise", "gaussian", "--averaging", "uniform"],
            &["--epsilon", "1", "--loss", "huber-svm", "--stop", "certified"],
        ],
        untaken: ["--steps", "5"],
        decisive: &["/noise/scale", "/recipe/lambda", "/recipe/row_norm", "/dim"],
        refused: &[(&["--epsilon", "1", "--lambda", "0"], 4, "privacy.refused", "--lambda")],
    },
    Row {
        name: "bst14-convex",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--passes", "3", "--radius", "5"],
            &["--epsilon", "1", "--delta", "1e-6", "--batch-size", "20", "--averaging", "suffix"],
        ],
        untaken: ["--clip", "1"],
        decisive: &["/std_dev", "/n", "/recipe/batch_size", "/recipe/passes", "/recipe/radius"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--sampling", "passes"], 4, "privacy.refused", "drawn"),
        ],
    },
    Row {
        name: "bst14-strongly-convex",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--lambda", "0.05"],
            &["--epsilon", "1", "--delta", "1e-6", "--noise", "rounded"],
        ],
        untaken: ["--step-size", "0.5"],
        decisive: &["/std_dev", "/n", "/recipe/batch_size", "/recipe/passes", "/recipe/radius"],
        refused: &[(&["--epsilon", "1", "--delta", "1e-6", "--lambda", "0"], 4, "privacy.refused", "lambda")],
    },
    Row {
        name: "dp-sgd",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--batch-size", "20", "--clip", "0.5", "--step-size", "0.5"],
            &["--epsilon", "1", "--delta", "1e-6", "--steps", "30", "--noise", "rounded"],
            &["--epsilon", "1", "--delta", "1e-6", "--sampling", "passes", "--batch-size", "100", "--passes", "3"],
        ],
        untaken: ["--stop", "certified"],
        decisive: &["/std_dev", "/n", "/recipe/batch_size", "/recipe/passes", "/recipe/clipping"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--sampling", "fixed"], 4, "privacy.refused", "replace-one"),
            (&["--epsilon", "1", "--delta", "1e-6", "--loss", "squared"], 4, "privacy.refused", "radius"),
        ],
    },
    Row {
        name: "dp-gd",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6"],
            &["--epsilon", "1", "--delta", "1e-6", "--passes", "5", "--penalty", "scad:0.01:9", "--noise", "rounded"],
            &["--epsilon", "1", "--delta", "1e-6", "--l1", "0.01", "--averaging", "last", "--loss", "hinge"],
        ],
        untaken: ["--batch-size", "5"],
        decisive: &["/std_dev", "/recipe/passes", "/recipe/row_norm"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--penalty", "mcp:1:0.0001"], 4, "privacy.refused", "gamma"),
        ],
    },
    Row {
        name: "dp-ftrl",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--batch-size", "50", "--passes", "2", "--clip", "0.5"],
            &["--epsilon", "1", "--delta", "1e-6", "--in-order", "--lambda", "0.001", "--noise", "rounded"],
            &["--epsilon", "1", "--delta", "1e-6", "--bands", "1", "--batch-size", "20", "--float", "f32"],
            &["--epsilon", "2", "--delta", "1e-6", "--loss", "hinge", "--radius", "5", "--averaging", "last"],
        ],
        untaken: ["--sampling", "poisson"],
        decisive: &["/std_dev", "/bands", "/recipe/passes", "/recipe/clipping"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--bands", "0"], 2, "usage.value", "--bands"),
            (&["--epsilon", "1", "--delta", "1e-6", "--loss", "squared"], 4, "privacy.refused", "radius"),
        ],
    },
    Row {
        name: "dp-newton",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--curvature", "once", "--steps", "4"],
            &["--epsilon", "1", "--delta", "1e-6"],
            &["--epsilon", "2", "--delta", "1e-6", "--loss", "huber-svm", "--curvature-share", "0.2", "--float", "f32"],
            &["--epsilon", "1", "--delta", "1e-6", "--lambda", "0.01", "--noise", "rounded"],
        ],
        untaken: ["--passes", "2"],
        decisive: &["/std_dev", "/moments_std_dev", "/recipe/steps", "/recipe/row_norm"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--loss", "hinge"], 4, "privacy.refused", "smooth"),
            (&["--epsilon", "1", "--delta", "1e-6", "--curvature-share", "1"], 2, "usage.value", "--curvature-share"),
        ],
    },
    Row {
        name: "dp-adam",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--batch-size", "20", "--clip", "0.5"],
            &["--epsilon", "1", "--delta", "1e-6", "--steps", "30", "--step-size", "0.1", "--float", "f32"],
        ],
        untaken: ["--l1", "0.1"],
        decisive: &["/std_dev", "/n", "/recipe/batch_size", "/recipe/passes", "/recipe/clipping"],
        refused: &[(&["--epsilon", "1"], 4, "privacy.refused", "delta")],
    },
    Row {
        name: "dp-adambc",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--batch-size", "20", "--clip", "0.5", "--lambda", "0.001"],
            &["--epsilon", "1", "--delta", "1e-6", "--sampling", "passes", "--batch-size", "100", "--passes", "3"],
        ],
        untaken: ["--rho", "0.1"],
        decisive: &["/std_dev", "/n", "/recipe/batch_size", "/recipe/passes", "/recipe/clipping"],
        refused: &[(
            &["--epsilon", "1", "--delta", "1e-6", "--lambda", "1e9", "--step-size", "1"],
            4,
            "privacy.refused",
            "radius",
        )],
    },
    Row {
        name: "ss-admm",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--batch-size", "20", "--clip", "0.5"],
            &["--epsilon", "1", "--delta", "1e-6", "--penalty", "elastic-net:0.01:0.1", "--step-size", "0.5"],
            &["--epsilon", "1", "--delta", "1e-6", "--l1", "0.02", "--averaging", "uniform", "--noise", "rounded"],
        ],
        untaken: ["--output-noise", "gaussian"],
        decisive: &["/std_dev", "/n", "/recipe/batch_size", "/recipe/passes", "/recipe/clipping"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--rho", "1e9"], 4, "privacy.refused", "--rho"),
            (&["--epsilon", "1", "--delta", "1e-6", "--penalty", "elastic-net:1:9"], 4, "privacy.refused", "rho"),
        ],
    },
    Row {
        name: "mp-admm",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6"],
            &["--epsilon", "1", "--delta", "1e-6", "--l1", "0.02", "--rho", "1", "--passes", "4"],
        ],
        untaken: ["--sampling", "poisson"],
        decisive: &["/std_dev", "/recipe/passes", "/recipe/row_norm"],
        refused: &[(&["--epsilon", "1"], 4, "privacy.refused", "delta")],
    },
    Row {
        name: "dp-admm",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--parties", "3", "--clip", "0.5"],
            &["--epsilon", "1", "--delta", "1e-6", "--l1", "0.02", "--rho", "1", "--passes", "4", "--noise", "rounded"],
        ],
        untaken: ["--batch-size", "5"],
        decisive: &["/std_dev", "/recipe/passes", "/recipe/clipping"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--parties", "0"], 2, "usage.value", "--parties"),
            (&["--epsilon", "1", "--delta", "1e-6", "--parties", "9999999"], 4, "privacy.refused", "--parties"),
            (&["--epsilon", "1", "--delta", "1e-6", "--penalty", "mcp:0.1:99"], 4, "privacy.refused", "convex"),
        ],
    },
    Row {
        name: "dp-svrg",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--batch-size", "50", "--clip", "0.5", "--passes", "4"],
            &["--epsilon", "1", "--delta", "1e-6", "--full-share", "0.5", "--steps", "3", "--noise", "rounded"],
            &["--epsilon", "2", "--delta", "1e-6", "--loss", "hinge", "--averaging", "last", "--float", "f32"],
        ],
        untaken: ["--rho", "1"],
        decisive: &["/std_dev", "/full_std_dev", "/n", "/recipe/batch_size", "/recipe/epochs", "/recipe/clipping"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--full-share", "1"], 2, "usage.value", "--full-share"),
            (&["--epsilon", "1", "--delta", "1e-6", "--sampling", "passes"], 4, "privacy.refused", "drawn"),
            (&["--epsilon", "1", "--delta", "1e-6", "--loss", "squared"], 4, "privacy.refused", "radius"),
        ],
    },
    Row {
        name: "noisy-moments",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6"],
            &["--epsilon", "2", "--loss", "squared", "--lambda", "0.01", "--noise", "rounded"],
            &["--epsilon", "1", "--delta", "1e-6", "--loss", "hinge", "--float", "f32"],
        ],
        untaken: ["--passes", "2"],
        decisive: &["/noise/std_dev", "/dim", "/recipe/row_norm", "/recipe/target_bound"],
        refused: &[(&["--epsilon", "1", "--lambda", "-1"], 2, "usage.value", "--lambda")],
    },
    Row {
        name: "obj-pert",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--centre-share", "0.1"],
            &["--epsilon", "2", "--delta", "1e-6", "--lambda", "0.01", "--noise", "rounded"],
            &["--epsilon", "1", "--delta", "1e-6", "--loss", "huber-svm", "--output-noise", "gaussian"],
            &["--epsilon", "1"],
        ],
        untaken: ["--passes", "2"],
        decisive: &[
            "/noise/std_dev",
            "/release/std_dev",
            "/centre/std_dev",
            "/regularization",
            "/n",
            "/recipe/row_norm",
        ],
        refused: &[
            (&["--epsilon", "1", "--output-noise", "gaussian"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--centre-share", "1"], 2, "usage.value", "--centre-share"),
            (&["--epsilon", "1", "--delta", "1e-6", "--loss", "squared"], 4, "privacy.refused", "bounded"),
            (&["--epsilon", "1", "--delta", "1e-6", "--float", "f32"], 2, "usage.conflict", "double"),
            (&["--epsilon", "1", "--delta", "1e-6", "--variant", "published"], 2, "usage.conflict", "cms11"),
            (&["--epsilon", "1", "--variant", "kst12"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--variant", "cms11", "--output-noise", "least"], 2, "usage.conflict", "--variant"),
            (&["--epsilon", "1", "--variant", "cms11", "--centre-share", "0.1"], 4, "privacy.refused", "centre"),
        ],
    },
    Row {
        name: "amp",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6"],
            &["--epsilon", "2", "--delta", "1e-6", "--lambda", "0.01", "--tolerance", "1e-6", "--noise", "rounded"],
        ],
        untaken: ["--output-noise", "gaussian"],
        decisive: &["/noise/std_dev", "/release/std_dev", "/regularization", "/n", "/recipe/row_norm"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--tolerance", "0"], 2, "usage.value", "--tolerance"),
            (&["--epsilon", "1", "--delta", "1e-6", "--variant", "rdp"], 2, "usage.conflict", "published"),
        ],
    },
    Row {
        name: "admm-obj-pert",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--output-noise", "gaussian", "--l1", "0.01"],
            &["--epsilon", "2", "--delta", "1e-6", "--steps", "2", "--rho", "0.1", "--noise", "rounded"],
            &["--epsilon", "1", "--loss", "huber-svm", "--penalty", "elastic-net:0.01:0.1"],
        ],
        untaken: ["--passes", "2"],
        decisive: &["/noise/std_dev", "/release/std_dev", "/rho", "/n", "/recipe/iterations", "/recipe/row_norm"],
        refused: &[
            (&["--epsilon", "1", "--output-noise", "gaussian"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--rho", "0"], 2, "usage.value", "--rho"),
            (&["--epsilon", "1", "--delta", "1e-6", "--loss", "squared"], 4, "privacy.refused", "bounded"),
            (&["--epsilon", "1", "--delta", "1e-6", "--float", "f32"], 2, "usage.conflict", "double"),
        ],
    },
    Row {
        name: "phased-sgd",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--step-size", "0.5"],
            &["--epsilon", "2", "--delta", "1e-6", "--lambda", "0.05", "--schedule", "strongly-convex"],
            &["--epsilon", "1", "--delta", "1e-6", "--loss", "squared", "--radius", "2", "--noise", "rounded"],
        ],
        untaken: ["--averaging", "uniform"],
        decisive: &["/noise_multiplier", "/recipe/step", "/recipe/row_norm", "/recipe/radius", "/dim"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--step-size", "100"], 4, "privacy.refused", "smoothness"),
        ],
    },
    Row {
        name: "phased-erm",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--step-size", "0.5"],
            &["--epsilon", "2", "--delta", "1e-6", "--lambda", "0.05", "--schedule", "strongly-convex"],
            &["--epsilon", "1", "--delta", "1e-6", "--loss", "huber-svm", "--radius", "2", "--noise", "rounded"],
        ],
        untaken: ["--passes", "2"],
        decisive: &["/noise_multiplier", "/recipe/step", "/recipe/slack", "/recipe/row_norm", "/dim"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--loss", "squared"], 4, "privacy.refused", "slopes"),
        ],
    },
    Row {
        name: "pnsgd",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--passes", "3", "--step-size", "0.5"],
            &["--epsilon", "2", "--delta", "1e-6", "--lambda", "0.05", "--schedule", "strongly-convex"],
            &["--epsilon", "1", "--delta", "1e-6", "--radius", "2", "--noise", "rounded"],
        ],
        untaken: ["--averaging", "uniform"],
        decisive: &[
            "/std_dev",
            "/recipe/passes",
            "/recipe/batching/size",
            "/recipe/schedule/step",
            "/recipe/row_norm",
            "/dim",
        ],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--step-size", "100"], 4, "privacy.refused", "8.0"),
            (&["--epsilon", "1", "--delta", "1e-6", "--loss", "squared"], 4, "privacy.refused", "radius"),
        ],
    },
    Row {
        name: "priv-gene",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--steps", "30"],
            &["--epsilon", "1", "--step-size", "0.25", "--steps", "5", "--loss", "hinge", "--float", "f32"],
            &["--epsilon", "1", "--delta", "1e-6", "--loss", "squared", "--clip", "2"],
        ],
        untaken: ["--passes", "5"],
        decisive: &["/epsilon_of_round", "/rounds", "/recipe/row_norm", "/dim"],
        refused: &[
            (&["--epsilon", "1", "--noise", "rounded"], 2, "usage.conflict", "--noise"),
            (&["--epsilon", "1", "--loss", "squared"], 4, "privacy.refused", "slope"),
        ],
    },
    Row {
        name: "majority",
        relations: &["replace-one", "add-remove"],
        runs: &[&["--epsilon", "1"], &["--epsilon", "0.5", "--delta", "1e-6", "--noise", "rounded", "--loss", "hinge"]],
        untaken: ["--clip", "1"],
        decisive: &["/scale", "/recipe/target_bound", "/dim"],
        refused: &[(&["--epsilon", "1", "--loss", "softmax"], 4, "privacy.refused", "classes")],
    },
    Row {
        name: "dp-blgd",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--steps", "8", "--lambda", "0.001"],
            &["--epsilon", "1", "--delta", "1e-6", "--line-search", "selection", "--clip", "0.5", "--loss", "hinge"],
            &["--epsilon", "2", "--delta", "1e-6", "--clip-loss", "2", "--noise", "rounded", "--float", "f32"],
        ],
        untaken: ["--passes", "5"],
        decisive: &["/budget/rho", "/recipe/row_norm", "/dim"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--clip-loss", "0"], 2, "usage.value", "--clip-loss"),
        ],
    },
    Row {
        name: "dp-blsgd",
        relations: &["add-remove"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--steps", "10"],
            &["--epsilon", "2", "--delta", "1e-6", "--batch-size", "100", "--line-search", "selection"],
        ],
        untaken: ["--sampling", "fixed"],
        decisive: &["/budget/order", "/budget/divergence", "/recipe/row_norm", "/dim"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--batch-size", "0"], 2, "usage.value", "--batch-size"),
        ],
    },
    Row {
        name: "dp-blsgd-ac",
        relations: &["add-remove"],
        runs: &[&["--epsilon", "1", "--delta", "1e-6", "--steps", "10", "--noise", "rounded"]],
        untaken: ["--passes", "5"],
        decisive: &["/budget/order", "/budget/divergence", "/recipe/row_norm", "/dim"],
        refused: &[(&["--epsilon", "1"], 4, "privacy.refused", "delta")],
    },
    Row {
        name: "dp-agd",
        relations: &["add-remove", "replace-one"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6"],
            &["--epsilon", "1", "--delta", "1e-6", "--steps", "5", "--step-size", "1", "--loss", "squared"],
        ],
        untaken: ["--line-search", "selection"],
        decisive: &["/budget/rho", "/recipe/row_norm", "/dim"],
        refused: &[(&["--epsilon", "1"], 4, "privacy.refused", "delta")],
    },
    Row {
        name: "rsgd-ar",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--lambda", "0.01", "--batch-size", "100", "--passes", "4"],
            &["--epsilon", "1", "--delta", "1e-6", "--schedule", "per-pass", "--restart-every", "3"],
            &["--epsilon", "2", "--delta", "1e-6", "--loss", "huber-svm", "--noise", "rounded", "--float", "f32"],
        ],
        untaken: ["--averaging", "uniform"],
        decisive: &[
            "/noise/std_dev",
            "/recipe/passes",
            "/recipe/batch_size",
            "/recipe/step",
            "/recipe/restart_every",
            "/recipe/lambda",
            "/recipe/row_norm",
            "/dim",
        ],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--schedule", "square-root"], 2, "usage.conflict", "restart"),
            (&["--epsilon", "1", "--delta", "1e-6", "--restart-every", "0"], 2, "usage.value", "--restart-every"),
            (&["--epsilon", "1", "--delta", "1e-6", "--loss", "hinge"], 4, "privacy.refused", "kink"),
        ],
    },
    Row {
        name: "nsgd",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--lambda", "0.01", "--batch-size", "100", "--passes", "4"],
            &["--epsilon", "1", "--delta", "1e-6", "--schedule", "constant", "--radius", "3"],
        ],
        untaken: ["--restart-every", "2"],
        decisive: &["/noise/std_dev", "/recipe/passes", "/recipe/step", "/recipe/row_norm", "/dim"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--delta", "1e-6", "--schedule", "restart"], 2, "usage.conflict", "per-pass"),
        ],
    },
    Row {
        name: "out-pert-gd",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6", "--passes", "20"],
            &["--epsilon", "1", "--delta", "1e-6", "--lambda", "0.1", "--step-size", "2", "--noise", "rounded"],
        ],
        untaken: ["--batch-size", "5"],
        decisive: &["/noise/std_dev", "/recipe/passes", "/recipe/step", "/recipe/row_norm", "/n", "/dim"],
        refused: &[(&["--epsilon", "1"], 4, "privacy.refused", "delta")],
    },
    Row {
        name: "snowball-sgd",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--delta", "1e-6"],
            &["--epsilon", "2", "--delta", "1e-6", "--radius", "3", "--schedule", "halving"],
            &["--epsilon", "1", "--delta", "1e-6", "--lambda", "0.05", "--noise", "rounded"],
        ],
        untaken: ["--batch-size", "5"],
        decisive: &["/std_dev", "/rho", "/updates", "/recipe/distance", "/recipe/row_norm", "/dim"],
        refused: &[
            (&["--epsilon", "1"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1e-9", "--delta", "1e-6"], 4, "privacy.refused", "records"),
        ],
    },
    Row {
        name: "scs13",
        relations: &["replace-one", "add-remove"],
        runs: &[
            &["--epsilon", "1", "--passes", "2"],
            &[
                "--epsilon",
                "1",
                "--delta",
                "1e-6",
                "--output-noise",
                "gaussian",
                "--averaging",
                "uniform",
                "--clip",
                "0.5",
            ],
            &["--epsilon", "2", "--noise", "rounded", "--float", "f32", "--batch-size", "1", "--radius", "2"],
        ],
        untaken: ["--stop", "certified"],
        decisive: &["/noise/scale", "/recipe/passes", "/recipe/row_norm", "/dim"],
        refused: &[
            (&["--epsilon", "1", "--output-noise", "gaussian"], 4, "privacy.refused", "delta"),
            (&["--epsilon", "1", "--loss", "squared"], 4, "privacy.refused", "radius"),
        ],
    },
];
