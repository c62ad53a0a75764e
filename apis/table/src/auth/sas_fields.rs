//! The fields of a shared access signature, and the texts that they sign.

use super::Claim;
use crate::edm::parse_date_time;
use crate::faults::CredentialFault;
use std::net::IpAddr;

/// From this version on an account signature signs one more line, for the encryption scope.
const VERSION_WITH_SCOPE: &str = "2020-12-06";
const TICKS_PER_SECOND: i64 = 10_000_000;

/// The fields of the query string, empty if absent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields<'a> {
    pub(super) version: &'a str,
    pub(super) permissions: &'a str,
    pub(super) start: &'a str,
    pub(super) expiry: &'a str,
    pub(super) address: &'a str,
    pub(super) protocol: &'a str,
    pub(super) signature: &'a str,
    /// Account signatures only.
    pub(super) services: &'a str,
    pub(super) resource_types: &'a str,
    encryption_scope: &'a str,
    /// Table signatures only.
    pub(super) table: &'a str,
    pub(super) policy: &'a str,
    pub(super) first_partition: Option<&'a str>,
    pub(super) first_row: Option<&'a str>,
    pub(super) last_partition: Option<&'a str>,
    pub(super) last_row: Option<&'a str>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(claim: &'a Claim<'_>) -> Fields<'a> {
        let text = |name| claim.query.get(name).unwrap_or_default();
        Fields {
            version: text("sv"),
            permissions: text("sp"),
            start: text("st"),
            expiry: text("se"),
            address: text("sip"),
            protocol: text("spr"),
            signature: text("sig"),
            services: text("ss"),
            resource_types: text("srt"),
            encryption_scope: text("ses"),
            table: text("tn"),
            policy: text("si"),
            first_partition: claim.query.get("spk"),
            first_row: claim.query.get("srk"),
            last_partition: claim.query.get("epk"),
            last_row: claim.query.get("erk"),
        }
    }

    /// The texts that an account signature may sign.
    pub(super) fn account_payloads(&self, account: &str) -> Vec<String> {
        let Fields {
            permissions, services, resource_types, start, expiry, address, protocol, version, ..
        } = self;
        let payload = format!(
            "{account}\n{permissions}\n{services}\n{resource_types}\n{start}\n{expiry}\n{address}\n{protocol}\n{version}\n"
        );
        match *version >= VERSION_WITH_SCOPE {
            // Some clients for tables do not know the line.
            true => vec![format!("{payload}{}\n", self.encryption_scope), payload],
            false => vec![payload],
        }
    }

    /// The text that a table signature signs.
    pub(super) fn table_payload(&self, account: &str) -> String {
        let Fields { permissions, start, expiry, policy, address, protocol, version, .. } = self;
        let table = self.table.to_ascii_lowercase();
        let [first_partition, first_row, last_partition, last_row] =
            [self.first_partition, self.first_row, self.last_partition, self.last_row]
                .map(Option::unwrap_or_default);
        format!(
            "{permissions}\n{start}\n{expiry}\n/table/{account}/{table}\n{policy}\n{address}\n{protocol}\n{version}\n\
             {first_partition}\n{first_row}\n{last_partition}\n{last_row}"
        )
    }

    /// Refuses a caller from another address, or without TLS.
    pub(super) fn check_connection(&self, claim: &Claim<'_>) -> Result<(), CredentialFault> {
        if !self.address.is_empty() && !is_in_range(self.address, claim.connection.peer)? {
            return Err(CredentialFault::Address);
        }
        match self.protocol {
            "" | "https,http" | "http,https" => Ok(()),
            "https" if claim.connection.secure => Ok(()),
            "https" => Err(CredentialFault::Protocol),
            _ => Err(CredentialFault::SignatureField { field: "spr" }),
        }
    }
}

/// Whether `address` is the one of a field, or between the two of it.
fn is_in_range(field: &str, address: IpAddr) -> Result<bool, CredentialFault> {
    let malformed = |_| CredentialFault::SignatureField { field: "sip" };
    let (first, last) = field.split_once('-').unwrap_or((field, field));
    let (first, last): (IpAddr, IpAddr) =
        (first.parse().map_err(malformed)?, last.parse().map_err(malformed)?);
    let address = address.to_canonical();
    Ok(first.is_ipv4() == address.is_ipv4() && (first..=last).contains(&address))
}

/// Refuses a signature whose time has not come or is over. The expiry is required.
pub(super) fn check_time(start: &str, expiry: &str, now_seconds: u64) -> Result<(), CredentialFault> {
    let seconds = |text: &str, field| {
        let ticks = parse_date_time(text).ok_or(CredentialFault::SignatureField { field })?;
        Ok(ticks.div_euclid(TICKS_PER_SECOND))
    };
    let now = i64::try_from(now_seconds).unwrap_or(i64::MAX);
    if !start.is_empty() && now < seconds(start, "st")? {
        return Err(CredentialFault::Time);
    }
    match now < seconds(expiry, "se")? {
        true => Ok(()),
        false => Err(CredentialFault::Time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_with_both_ends() {
        let inside = |field: &str, address: &str| is_in_range(field, address.parse().unwrap());
        assert_eq!(inside("10.0.0.5", "10.0.0.5"), Ok(true));
        assert_eq!(inside("10.0.0.5", "10.0.0.6"), Ok(false));
        assert_eq!(inside("10.0.0.5-10.0.0.9", "10.0.0.9"), Ok(true));
        assert_eq!(inside("10.0.0.5-10.0.0.9", "10.0.0.10"), Ok(false));
        assert_eq!(inside("10.0.0.5-10.0.0.9", "::ffff:10.0.0.7"), Ok(true));
        assert!(inside("x", "10.0.0.1").is_err() && inside("10.0.0.1-", "10.0.0.1").is_err());
    }

    #[test]
    fn times_have_a_beginning_and_an_end() {
        let check = |start, expiry, now| check_time(start, expiry, now);
        assert_eq!(check("", "1970-01-01T00:00:10Z", 9), Ok(()));
        assert_eq!(check("", "1970-01-01T00:00:10Z", 10), Err(CredentialFault::Time));
        assert_eq!(check("1970-01-01T00:00:05Z", "1970-01-02", 5), Ok(()));
        assert_eq!(check("1970-01-01T00:00:05Z", "1970-01-02", 4), Err(CredentialFault::Time));
        assert!(check("", "", 1).is_err() && check("x", "1970-01-02", 1).is_err());
    }
}
