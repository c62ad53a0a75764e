//! When a document expires: from its last write, its own ttl and the container's current default.

use model::DefaultTtl;
use plan::Ttl;

/// The first second at which a document written at `ts` is absent; `None` if it never expires.
pub(crate) fn expires_at(ts: u64, ttl: Ttl, default_ttl: DefaultTtl) -> Option<u64> {
    let seconds = match (default_ttl, ttl) {
        (DefaultTtl::Off, _) | (_, Ttl::Never) | (DefaultTtl::OnDemand, Ttl::Inherit) => return None,
        (_, Ttl::Seconds(seconds)) | (DefaultTtl::Seconds(seconds), Ttl::Inherit) => seconds,
    };
    Some(ts.saturating_add(u64::from(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_overrides_the_default_unless_expiry_is_off() {
        let at = |ttl, default_ttl| expires_at(100, ttl, default_ttl);
        assert_eq!(at(Ttl::Seconds(5), DefaultTtl::Off), None);
        assert_eq!(at(Ttl::Seconds(5), DefaultTtl::OnDemand), Some(105));
        assert_eq!(at(Ttl::Inherit, DefaultTtl::OnDemand), None);
        assert_eq!(at(Ttl::Inherit, DefaultTtl::Seconds(7)), Some(107));
        assert_eq!(at(Ttl::Seconds(5), DefaultTtl::Seconds(7)), Some(105));
        assert_eq!(at(Ttl::Never, DefaultTtl::Seconds(7)), None);
    }
}
