//! The unique key policy: which values must be unique in a logical partition.

use crate::limits::{UNIQUE_KEY_PATHS_MAX, UNIQUE_KEYS_MAX};
use crate::{DecodeFault, Decoder, DefinitionList, DefinitionPart, DefinitionRule, Encoder, RequestFault};
use value::PropertyPath;

const PART: DefinitionPart = DefinitionPart::UniqueKeys;

/// The unique key constraints of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniqueKeyPolicy {
    /// The constraints, in the order of the definition.
    pub keys: Vec<UniqueKey>,
}

/// One constraint: no two documents of a logical partition have equal values at all these paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueKey {
    /// The paths.
    pub paths: Vec<PropertyPath>,
}

impl UniqueKeyPolicy {
    /// Refuses too many constraints, and constraints with too few or too many paths.
    pub(crate) fn check(&self) -> Result<(), RequestFault> {
        UniqueKeyPolicy::check_count(self.keys.len())?;
        self.keys.iter().try_for_each(|key| UniqueKey::check_count(key.paths.len()))
    }

    /// Refuses more constraints than the limit.
    pub fn check_count(count: usize) -> Result<(), RequestFault> {
        match count > UNIQUE_KEYS_MAX {
            true => Err(PART.violates(DefinitionRule::Count {
                list: DefinitionList::UniqueKeys,
                given: count,
                max: UNIQUE_KEYS_MAX,
            })),
            false => Ok(()),
        }
    }
}

impl UniqueKey {
    /// A constraint over the properties at these paths.
    pub fn over(texts: &[&str]) -> Result<UniqueKey, RequestFault> {
        let parse = |text: &&str| {
            PropertyPath::parse(text)
                .map_err(|error| PART.violates(DefinitionRule::Path { path: (*text).to_owned(), error }))
        };
        Ok(UniqueKey { paths: texts.iter().map(parse).collect::<Result<_, _>>()? })
    }

    /// Refuses a constraint without paths or with too many.
    pub fn check_count(count: usize) -> Result<(), RequestFault> {
        if (1..=UNIQUE_KEY_PATHS_MAX).contains(&count) {
            return Ok(());
        }
        Err(PART.violates(DefinitionRule::PathCount { given: count, min: 1, max: UNIQUE_KEY_PATHS_MAX }))
    }
}

impl UniqueKeyPolicy {
    pub(crate) fn encode(&self, out: &mut Encoder) {
        out.list(&self.keys, |out, key| out.list(&key.paths, Encoder::path));
    }

    pub(crate) fn decode(input: &mut Decoder<'_>) -> Result<UniqueKeyPolicy, DecodeFault> {
        let key = |input: &mut Decoder<'_>| {
            let paths = input.list("paths of a unique key", |input| input.path("path of a unique key"))?;
            Ok(UniqueKey { paths })
        };
        Ok(UniqueKeyPolicy { keys: input.list("unique keys", key)? })
    }
}
