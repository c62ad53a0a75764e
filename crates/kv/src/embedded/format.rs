//! The text of the file `FORMAT`: version, engine, spaces, and which engine files must exist.
//!
//! Pure: reads and writes text, no files.
//!
//! ```text
//! perihelion store 4
//! engine fjall 3
//! space records compressed 1       number of its keyspace, "-" as long as nothing was written to it
//! space index plain -
//! own 2                            keyspace of the store's own rows
//! journal 3 871                    newest journal that is known, and number of its first commit, "-" before it is synced
//! checksum 8f0d1c2b3a495867        XXH3 of all lines above, in hexadecimal
//! ```

use std::fmt::Write as _;

use xxhash_rust::xxh3::xxh3_64;

use crate::batch::SpaceOptions;

/// The format that this version writes. Earlier versions would show the marker rows (`marker`) to readers.
pub(super) const FORMAT_VERSION: u32 = 4;

/// The oldest format that this version reads. It only lacks the marker rows and is upgraded when the store is opened.
const FORMAT_VERSION_OLDEST: u32 = 3;

const HEAD: &str = "perihelion store ";
const ENGINE_LINE: &str = "engine fjall 3";
const NONE: &str = "-";

/// Content of the format file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Format {
    pub(super) spaces: Vec<SpaceEntry>,
    /// Keyspace of the internal rows, once it exists.
    pub(super) own: Option<u64>,
    pub(super) journal: Option<JournalEntry>,
}

/// One space of the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SpaceEntry {
    pub(super) name: String,
    pub(super) compressed: bool,
    /// Number of its keyspace, once it exists.
    pub(super) keyspace: Option<u64>,
}

/// The newest known journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct JournalEntry {
    pub(super) number: u64,
    /// Number of its first commit, once that is synced. The checksum of the commit does not cover it.
    pub(super) first_commit: Option<u64>,
}

/// Why a text is not a valid format file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormatFault {
    /// It does not start like a format file.
    NotAStore,
    /// A later version wrote it.
    Newer { found: u32 },
    /// An earlier version wrote it.
    Older { found: u32 },
    /// The start is valid, the rest is not.
    Damaged(&'static str),
}

impl Format {
    /// The format of a store without any keyspace.
    pub(super) fn new(spaces: &[SpaceOptions]) -> Format {
        let spaces = spaces.iter().map(SpaceEntry::new).collect();
        Format { spaces, own: None, journal: None }
    }

    /// Whether something may have been committed. Before that, an open may have been interrupted at any point.
    pub(super) fn has_data(&self) -> bool {
        self.keyspaces().next().is_some()
    }

    /// Numbers of all keyspaces known to exist.
    pub(super) fn keyspaces(&self) -> impl Iterator<Item = u64> {
        self.spaces.iter().map(|space| space.keyspace).chain([self.own]).flatten()
    }

    /// Whether the spaces are a prefix of `wanted`.
    pub(super) fn fits(&self, wanted: &[SpaceOptions]) -> bool {
        let is_same = |(found, wanted): (&SpaceEntry, &SpaceOptions)| {
            found.name == wanted.name && found.compressed == wanted.compressed
        };
        self.spaces.len() <= wanted.len() && self.spaces.iter().zip(wanted).all(is_same)
    }

    /// Adds the new spaces of `wanted`.
    pub(super) fn extend(&mut self, wanted: &[SpaceOptions]) {
        self.spaces.extend(wanted.iter().skip(self.spaces.len()).map(SpaceEntry::new));
    }

    pub(super) fn parse(text: &str) -> Result<Format, FormatFault> {
        let head =
            text.lines().next().and_then(|head| head.strip_prefix(HEAD)).ok_or(FormatFault::NotAStore)?;
        match head.parse().map_err(|_| FormatFault::NotAStore)? {
            FORMAT_VERSION_OLDEST..=FORMAT_VERSION => parse_body(text),
            0 => Err(FormatFault::NotAStore),
            found if found > FORMAT_VERSION => Err(FormatFault::Newer { found }),
            found => Err(FormatFault::Older { found }),
        }
    }

    pub(super) fn print(&self) -> String {
        let mut text = format!("{HEAD}{FORMAT_VERSION}\n{ENGINE_LINE}\n");
        let number = |number: Option<u64>| number.map_or(NONE.to_owned(), |number| number.to_string());
        for space in &self.spaces {
            let _ = writeln!(text, "space {} {} {}", space.name, space.nature(), number(space.keyspace));
        }
        let _ = writeln!(text, "own {}", number(self.own));
        if let Some(journal) = self.journal {
            let _ = writeln!(text, "journal {} {}", journal.number, number(journal.first_commit));
        }
        let checksum = xxh3_64(text.as_bytes());
        let _ = writeln!(text, "checksum {checksum:016x}");
        text
    }
}

impl SpaceEntry {
    fn new(options: &SpaceOptions) -> SpaceEntry {
        SpaceEntry { name: options.name.to_owned(), compressed: options.compressed, keyspace: None }
    }

    fn nature(&self) -> &'static str {
        if self.compressed { "compressed" } else { "plain" }
    }

    /// Name and properties, for messages.
    pub(super) fn describe(&self) -> String {
        format!("{} {}", self.name, self.nature())
    }
}

fn parse_body(text: &str) -> Result<Format, FormatFault> {
    let wrong_checksum = || FormatFault::Damaged("its checksum does not match");
    let end = text.rfind("checksum ").ok_or_else(wrong_checksum)?;
    let (body, checksum) = text.split_at(end);
    if checksum != format!("checksum {:016x}\n", xxh3_64(body.as_bytes())) {
        return Err(wrong_checksum());
    }
    let mut format = Format { spaces: Vec::new(), own: None, journal: None };
    for line in body.lines().skip(1) {
        let words: Vec<&str> = line.split(' ').collect();
        let understood = match words.as_slice() {
            _ if line == ENGINE_LINE => Some(()),
            ["space", name, nature, keyspace] => parse_space(name, nature, keyspace).map(|space| {
                format.spaces.push(space);
            }),
            ["own", keyspace] => parse_number(keyspace).map(|own| format.own = own),
            ["journal", number, first_commit] => parse_journal(number, first_commit).map(|journal| {
                format.journal = Some(journal);
            }),
            _ => None,
        };
        understood.ok_or(FormatFault::Damaged("a line makes no sense"))?;
    }
    Ok(format)
}

fn parse_space(name: &str, nature: &str, keyspace: &str) -> Option<SpaceEntry> {
    let (compressed, keyspace) = (parse_nature(nature)?, parse_number(keyspace)?);
    Some(SpaceEntry { name: name.to_owned(), compressed, keyspace })
}

fn parse_nature(nature: &str) -> Option<bool> {
    match nature {
        "compressed" => Some(true),
        "plain" => Some(false),
        _ => None,
    }
}

/// A number or none; the outer `None` if it is neither.
#[allow(
    clippy::option_option,
    reason = "the inner option is the value, the outer one says whether it was read"
)]
fn parse_number(text: &str) -> Option<Option<u64>> {
    if text == NONE { Some(None) } else { text.parse().ok().map(Some) }
}

fn parse_journal(number: &str, first_commit: &str) -> Option<JournalEntry> {
    Some(JournalEntry { number: number.parse().ok()?, first_commit: parse_number(first_commit)? })
}

/// A format file of another version, with the right checksum.
#[cfg(test)]
pub(super) fn with_version(text: &str, version: u32) -> String {
    let body = text.replacen(&format!("{HEAD}{FORMAT_VERSION}"), &format!("{HEAD}{version}"), 1);
    let (body, _) = body.split_once("checksum ").unwrap_or_default();
    format!("{body}checksum {:016x}\n", xxh3_64(body.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACES: [SpaceOptions; 2] = [
        SpaceOptions { name: "records", compressed: true },
        SpaceOptions { name: "index", compressed: false },
    ];

    #[test]
    fn a_format_is_read_as_it_was_written() {
        let mut format = Format::new(&SPACES);
        assert_eq!(Format::parse(&format.print()), Ok(format.clone()));
        format.spaces[1].keyspace = Some(4);
        format.own = Some(7);
        format.journal = Some(JournalEntry { number: 12, first_commit: Some(871) });
        assert_eq!(Format::parse(&format.print()), Ok(format.clone()));
        assert!(format.fits(&SPACES) && !format.fits(&SPACES[..1]));
        assert_eq!(format.keyspaces().collect::<Vec<_>>(), [4, 7]);
    }

    #[test]
    fn other_formats_are_told_apart() {
        let text = Format::new(&SPACES).print();
        let other = |version: &str| Format::parse(&text.replacen("store 4", version, 1));
        assert_eq!(other("store 5"), Err(FormatFault::Newer { found: 5 }));
        for found in [1, 2] {
            assert_eq!(other(&format!("store {found}")), Err(FormatFault::Older { found }));
        }
        for nonsense in ["store 0", "store", "shop 4"] {
            assert_eq!(other(nonsense), Err(FormatFault::NotAStore), "{nonsense}");
        }
    }

    #[test]
    fn the_format_before_is_read_and_written_as_the_current_one() {
        let text = Format::new(&SPACES).print();
        let before = with_version(&text, FORMAT_VERSION_OLDEST);
        assert!(before.starts_with("perihelion store 3\n"));
        assert_eq!(Format::parse(&before).unwrap().print(), text);
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let text = Format::new(&SPACES).print();
        for position in 0..text.len() {
            for bit in 0..8 {
                let mut bytes = text.clone().into_bytes();
                bytes[position] ^= 1 << bit;
                let Ok(changed) = String::from_utf8(bytes) else { continue };
                assert!(Format::parse(&changed).is_err(), "byte {position}, bit {bit}: {changed}");
            }
        }
    }
}
