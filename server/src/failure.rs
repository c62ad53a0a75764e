//! Why the program ended, with the exit code that scripts rely on.

use std::process::ExitCode;

/// A reason to end the program that is not success.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line makes no sense; clap's own text.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// A setting has a value that cannot be.
    #[error("{0}")]
    Configuration(String),
    /// An address cannot be listened on.
    #[error("cannot listen on {address} for {api}: {cause}\n  {hint}")]
    Unavailable { address: String, api: &'static str, cause: std::io::Error, hint: String },
    /// The data folder or a file in it cannot be used.
    #[error("{what}: {cause}")]
    Io { what: String, cause: String },
    /// Something else went wrong while running.
    #[error("{0}")]
    Failed(String),
}

impl Failure {
    /// Tells the user and gives the exit code.
    #[allow(clippy::print_stderr)] // the program's last words
    pub(crate) fn report(self) -> ExitCode {
        match &self {
            Failure::Usage(error) => {
                let _ = error.print();
                // Help and version are no errors.
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
