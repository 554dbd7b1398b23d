//! The arguments that `cargo test` may pass to every test program.

/// Arguments of the standard test programs, none of which a program with arguments of its own needs.
#[derive(Debug, clap::Args)]
pub struct Harness {
    #[arg(hide = true)]
    filters: Vec<String>,
    #[arg(long, hide = true)]
    nocapture: bool,
    #[arg(long, hide = true)]
    quiet: bool,
    #[arg(long, hide = true)]
    test_threads: Option<usize>,
    #[arg(long, hide = true)]
    format: Option<String>,
    #[arg(long, hide = true)]
    ignored: bool,
}

impl Harness {
    /// Returns whether `cargo test NAME` selects tests other than this one.
    pub fn leaves_out(&self, name: &str) -> bool {
        self.ignored || self.filters.iter().any(|filter| !name.contains(filter.as_str()))
    }
}
