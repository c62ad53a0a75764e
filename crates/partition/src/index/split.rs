//! The index of a partition that is split: both children use its runs, and in each the documents of the other are dead.
//!
//! The documents of a run that belong to the second child depend on the run and the cut only, so they are determined
//! before the split, while the partition serves requests. Segments are not shared: the children replay the log after
//! the position of the manifest.

use crate::index::dead::DeadSet;
use crate::index::index_writer::IndexWriter;
use crate::index::leaf::Leaf;
use crate::index::lookup::Lookup;
use crate::index::manifest::{Manifest, put_dead};
use crate::index::path::LOGICAL_KEYS;
use crate::index::piece::{Piece, RunPiece};
use crate::index::reader::IndexReader;
use crate::index::run::Run;
use crate::index::run_cursor::RunSource;
use crate::keyspace::PartitionId;
use kv::{Batch, Direction};
use model::{EffectiveKey, EffectiveRange, Fault};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// The documents of a run by the child that owns them.
#[derive(Clone, Debug)]
pub(crate) struct RunHalves {
    run: Arc<Run>,
    /// The ranks of the documents from the cut on.
    second: RoaringBitmap,
}

impl RunHalves {
    /// Determines which documents of a run are at or after the cut.
    pub(crate) async fn of(
        source: &RunSource,
        piece: &RunPiece,
        cut: &EffectiveKey,
    ) -> Result<RunHalves, Fault> {
        let lookup = Lookup::Effective(EffectiveRange { min: cut.clone(), max: EffectiveKey::max() });
        let found = Leaf::new(&lookup).matches(source, &Piece::Run(piece.clone())).await?;
        match found.certain {
            Some(certain) if certain != found.possible => {
                Err(Fault::Internal("the index does not know which documents are after a cut".to_owned()))
            }
            Some(_) | None => Ok(RunHalves { run: Arc::clone(&piece.run), second: found.possible }),
        }
    }

    /// Adds the halves of those runs that are not in `known`.
    pub(crate) async fn add_missing(
        source: &RunSource,
        pieces: &[Piece],
        cut: &EffectiveKey,
        known: &mut Vec<RunHalves>,
    ) -> Result<(), Fault> {
        for piece in pieces {
            match piece {
                Piece::Run(piece) if !known.iter().any(|halves| Arc::ptr_eq(&piece.run, &halves.run)) => {
                    known.push(RunHalves::of(source, piece, cut).await?);
                }
                Piece::Run(_) | Piece::Segment(_) => {}
            }
        }
        Ok(())
    }
}

/// The index of a partition that no longer writes.
#[derive(Debug)]
pub(crate) struct SealedIndex {
    manifest: Manifest,
    runs: Vec<RunPiece>,
}

/// Which child of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    First,
    Second,
}

impl SealedIndex {
    /// The runs of the index.
    pub(crate) fn runs(&self) -> Arc<[Arc<Run>]> {
        self.runs.iter().map(|piece| Arc::clone(&piece.run)).collect()
    }

    /// Determines the halves of those runs that are not in `known`, and drops what is not needed of it.
    pub(crate) async fn complete(
        &self,
        source: &RunSource,
        cut: &EffectiveKey,
        known: &mut Vec<RunHalves>,
    ) -> Result<(), Fault> {
        known.retain(|halves| self.runs.iter().any(|piece| Arc::ptr_eq(&piece.run, &halves.run)));
        for piece in &self.runs {
            if !known.iter().any(|halves| Arc::ptr_eq(&piece.run, &halves.run)) {
                known.push(RunHalves::of(source, piece, cut).await?);
            }
        }
        Ok(())
    }

    /// Writes the manifest and the dead sets of one child.
    pub(crate) fn put_child(&self, child: PartitionId, half: Half, known: &[RunHalves], batch: &mut Batch) {
        let mut manifest = self.manifest.clone();
        manifest.runs.clear();
        for piece in &self.runs {
            let Some(halves) = known.iter().find(|halves| Arc::ptr_eq(&piece.run, &halves.run)) else {
                continue;
            };
            let mut dead = DeadSet::clone(&piece.dead);
            let universe = u32::try_from(piece.run.numbers.len()).unwrap_or(u32::MAX);
            #[cfg(feature = "planted-faults")]
            let is_masked = !crate::planted::is_planted(crate::planted::PlantedFault::SiblingIsNotMasked);
            #[cfg(not(feature = "planted-faults"))]
            let is_masked = true;
            if is_masked {
                match half {
                    Half::First => dead.insert_all(&halves.second),
                    Half::Second => {
                        let mut first = RoaringBitmap::new();
                        first.insert_range(0..universe);
                        dead.insert_all(&(first - &halves.second));
                    }
                }
            }
            let of_child =
                RunPiece { run: Arc::clone(&piece.run), dead: Arc::new(dead), saved: Arc::default() };
            if of_child.live_count() > 0 {
                put_dead(child, &of_child, batch);
                manifest.runs.push(piece.run.meta.clone());
            }
        }
        manifest.put(child, batch);
    }
}

impl IndexWriter {
    /// The index as it is on disk, with the present dead documents; `None` if it has no manifest.
    pub(crate) fn sealed(&self) -> Option<SealedIndex> {
        let manifest = self.saved_manifest()?;
        Some(SealedIndex { manifest, runs: self.run_pieces().to_vec() })
    }
}

/// The position in the order of logical keys where the documents of a partition are divided.
#[derive(Debug, Default)]
pub(crate) struct SplitPoint {
    /// Where the walk continues.
    from: Option<Vec<u8>>,
    documents: u64,
    /// The last logical key of the first half and the first one of the second half, with the documents before each.
    pub(crate) candidates: Vec<(Vec<u8>, u64)>,
}

/// Logical keys per step of the search for a split point.
const KEYS_AT_A_TIME: usize = 4096;
/// Logical keys after the middle that are candidates; more only if their hashes are equal.
const CANDIDATES_MAX: usize = 64;

impl SplitPoint {
    /// Walks on over the logical keys of an index. Returns whether there are more to walk over. `half` is the number of
    /// documents wanted before the split point.
    pub(crate) async fn search(&mut self, index: &IndexReader, half: u64) -> Result<bool, Fault> {
        let mut walk = index.walk(&LOGICAL_KEYS, Direction::Forward, self.from.take(), None).await?;
        for _ in 0..KEYS_AT_A_TIME {
            let Some(found) = walk.next_counted(|_, _| crate::index::Detail::Count).await? else {
                return Ok(false);
            };
            if self.candidates.len() > CANDIDATES_MAX {
                return Ok(false);
            }
            let before = self.documents;
            self.documents += found.count;
            if self.documents >= half {
                self.candidates.push((found.code.clone(), before));
            }
            // The next walk starts after this key.
            self.from = Some([&found.code[..], &[0]].concat());
        }
        Ok(true)
    }
}

/// The logical keys with the most documents.
#[derive(Debug)]
pub(crate) struct LargestKeys {
    from: Option<Vec<u8>>,
    documents_min: u64,
    /// At most [`LARGEST_MAX`], with their numbers of documents.
    largest: Vec<(u64, Vec<u8>)>,
}

/// Logical keys that a search for the largest ones returns.
const LARGEST_MAX: usize = 16;

impl LargestKeys {
    pub(crate) fn new(documents_min: u64) -> LargestKeys {
        LargestKeys { from: None, documents_min, largest: Vec::new() }
    }

    /// Walks on over the logical keys of an index. Returns whether there are more.
    pub(crate) async fn search(&mut self, index: &IndexReader) -> Result<bool, Fault> {
        let mut walk = index.walk(&LOGICAL_KEYS, Direction::Forward, self.from.take(), None).await?;
        for _ in 0..KEYS_AT_A_TIME {
            let Some(found) = walk.next_counted(|_, _| crate::index::Detail::Count).await? else {
                return Ok(false);
            };
            self.from = Some([&found.code[..], &[0]].concat());
            if found.count >= self.documents_min {
                self.largest.push((found.count, found.code));
                if self.largest.len() > LARGEST_MAX {
                    self.largest.sort_unstable_by(|left, right| right.cmp(left));
                    self.largest.truncate(LARGEST_MAX);
                }
            }
        }
        Ok(true)
    }

    pub(crate) fn into_codes(self) -> impl Iterator<Item = Vec<u8>> {
        self.largest.into_iter().map(|(_, code)| code)
    }
}
