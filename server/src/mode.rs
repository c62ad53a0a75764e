//! The two modes of serving and their differences.

/// How the server was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// For one machine and one developer: the well-known key, loopback only.
    Dev,
    /// For production: its own keys, any address, TLS except on loopback.
    Serve,
}

/// Failed credentials of one address per minute after which responses are delayed.
const AUTH_FAILURES_MAX: u32 = 20;

impl Mode {
    /// Whether the well-known emulator key is accepted.
    pub(crate) fn takes_well_known_key(self) -> bool {
        match self {
            Mode::Dev => true,
            Mode::Serve => false,
        }
    }

    /// Failed credentials that are answered without delay; `None` for any number. Test suites often fail on purpose.
    pub(crate) fn auth_failures_max(self) -> Option<u32> {
        match self {
            Mode::Dev => None,
            Mode::Serve => Some(AUTH_FAILURES_MAX),
        }
    }

    /// Name on the start screen.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Mode::Dev => "development mode",
            Mode::Serve => "server mode",
        }
    }
}
