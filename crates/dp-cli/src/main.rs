//! The `dp` command.

fn main() -> std::process::ExitCode {
    dp_cli::main()
}
