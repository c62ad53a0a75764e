//! The two ways to serve, and what differs between them.

/// How the server was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// For one machine and one developer: the well-known key, loopback only.
    Dev,
    /// For real data: keys of its own, any address, TLS where others can listen.
    Serve,
}

/// Failed credentials of one address in a minute, beyond which the next answers to it are held back.
const AUTH_FAILURES_MAX: u32 = 20;

impl Mode {
    /// Whether the key that everybody knows opens the account.
    pub(crate) fn takes_well_known_key(self) -> bool {
        match self {
            Mode::Dev => true,
            Mode::Serve => false,
        }
    }

    /// Failed credentials that are answered at once; `None` for any number. Test suites fail on purpose, and often.
    pub(crate) fn auth_failures_max(self) -> Option<u32> {
        match self {
            Mode::Dev => None,
            Mode::Serve => Some(AUTH_FAILURES_MAX),
        }
    }

    /// As the first screen calls it.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Mode::Dev => "development mode",
            Mode::Serve => "server mode",
        }
    }
}
