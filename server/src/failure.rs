//! Why the program ended, with the exit code that scripts rely on.

use std::process::ExitCode;

/// A failure that ends the program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Invalid command line; clap's own text.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// A setting has an invalid value.
    #[error("{0}")]
    Configuration(String),
    /// The server cannot listen on an address.
    #[error("cannot listen on {address} for {api}: {cause}\n  {hint}")]
    Unavailable { address: String, api: &'static str, cause: std::io::Error, hint: String },
    /// The data folder or a file in it cannot be used.
    #[error("{what}: {cause}")]
    Io { what: String, cause: String },
    /// Another failure at run time.
    #[error("{0}")]
    Failed(String),
}

impl Failure {
    /// Prints the failure and returns the exit code.
    #[allow(clippy::print_stderr)] // the program's last words
    pub(crate) fn report(self) -> ExitCode {
        match &self {
            Failure::Usage(error) => {
                let _ = error.print();
                // Help and version are not errors.
                return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
            }
            Failure::Configuration(_)
            | Failure::Unavailable { .. }
            | Failure::Io { .. }
            | Failure::Failed(_) => {
                eprintln!("perihelion: {self}");
            }
        }
        ExitCode::from(match self {
            Failure::Usage(_) => 2,
            Failure::Configuration(_) => 78,
            Failure::Unavailable { .. } => 69,
            Failure::Io { .. } => 74,
            Failure::Failed(_) => 1,
        })
    }
}
