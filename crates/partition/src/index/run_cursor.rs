//! A cursor over the terms of a run, in either direction, one group of a block at a time.

use crate::index::block::{Block, TermEntry, read_bitmap};
use crate::index::block_cache::{BlockCache, CachedRow};
use crate::index::code::CodeRange;
use crate::index::path::IndexPath;
use crate::index::ranks::Posting;
use crate::index::run::Run;
use crate::storage::read_fault;
use bytes::Bytes;
use kv::{Direction, Store, View};
use model::Fault;
use roaring::RoaringBitmap;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

/// The source of the rows of a run.
#[derive(Clone)]
pub(crate) enum RunSource {
    /// A view and the block cache, for readers.
    Reader(View, Arc<BlockCache>),
    /// A view without the cache.
    View(View),
    /// A new view each time: a merge must not hold one open.
    Store(Store),
}

impl RunSource {
    async fn view(&self) -> Result<View, Fault> {
        match self {
            RunSource::Reader(view, _) | RunSource::View(view) => Ok(view.clone()),
            RunSource::Store(store) => store.view().await.map_err(read_fault),
        }
    }

    fn cache(&self) -> Option<&BlockCache> {
        match self {
            RunSource::Reader(_, cache) => Some(cache),
            RunSource::View(_) | RunSource::Store(_) => None,
        }
    }

    /// A block by its index in the run; `None` after the last.
    async fn block(&self, run: &Run, block: usize) -> Result<Option<Block>, Fault> {
        let Some(row) = run.fences.row(block) else { return Ok(None) };
        let address = run.address(row);
        if let Some(CachedRow::Block(block)) = self.cache().and_then(|cache| cache.get(&address)) {
            return Ok(Some(block));
        }
        let payload = run.row(&self.view().await?, row).await?;
        let Some(cache) = self.cache() else { return Block::new(payload).map(Some) };
        // A copy that does not share a larger allocation of the store.
        let block = Block::new(Bytes::copy_from_slice(&payload))?;
        cache.keep(address, CachedRow::Block(block.clone()));
        Ok(Some(block))
    }

    /// The documents of the term with this key; `None` if the run does not have it.
    pub(crate) async fn find(&self, run: &Run, key: &[u8]) -> Result<Option<Posting<'static>>, Fault> {
        let Some(block) = self.block(run, run.fences.block_of(key)).await? else { return Ok(None) };
        match block.find(key)? {
            Some(entry) => self.posting(run, &entry).await.map(Some),
            None => Ok(None),
        }
    }

    /// The number of documents of the term with this key, including dead ones.
    pub(crate) async fn count(&self, run: &Run, key: &[u8]) -> Result<u64, Fault> {
        let block = self.block(run, run.fences.block_of(key)).await?;
        let entry = block.map(|block| block.find(key)).transpose()?.flatten();
        Ok(entry.map_or(0, |entry| entry.count))
    }

    /// The documents of a term.
    async fn posting(&self, run: &Run, entry: &TermEntry) -> Result<Posting<'static>, Fault> {
        match entry.elsewhere() {
            Some(row) => Ok(Posting::Set(RoaringBitmap::clone(&*self.bitmap(run, row).await?))),
            None => entry.posting(),
        }
    }

    /// A bitmap with a row of its own.
    async fn bitmap(&self, run: &Run, row: u32) -> Result<Arc<RoaringBitmap>, Fault> {
        let address = run.address(row);
        if let Some(CachedRow::Bitmap(set)) = self.cache().and_then(|cache| cache.get(&address)) {
            return Ok(set);
        }
        let set = Arc::new(read_bitmap(&run.row(&self.view().await?, row).await?)?);
        if let Some(cache) = self.cache() {
            cache.keep(address, CachedRow::Bitmap(Arc::clone(&set)));
        }
        Ok(set)
    }
}

/// The block that may contain a key, if there is one and it is cached.
pub(crate) fn cached_block(cache: &BlockCache, run: &Run, key: &[u8]) -> Option<Block> {
    let row = run.fences.row(run.fences.block_of(key))?;
    match cache.get(&run.address(row))? {
        CachedRow::Block(block) => Some(block),
        CachedRow::Bitmap(_) => None,
    }
}

/// A cursor over the terms of a run.
pub(crate) struct RunCursor {
    run: Arc<Run>,
    source: RunSource,
    direction: Direction,
    /// The current block and its index; `None` before the first and after the last.
    block: Option<(usize, Block)>,
    /// The group of the entries.
    group: usize,
    entries: VecDeque<TermEntry>,
    filter: Option<TermFilter>,
}

/// Leaves out terms of a path in a code range that have no wanted documents, if that can be tested cheaply.
pub(crate) struct TermFilter {
    pub(crate) path: IndexPath,
    pub(crate) range: Arc<CodeRange>,
    pub(crate) within: Arc<RoaringBitmap>,
}

impl TermFilter {
    fn group(&self, block: &Block, group: usize, direction: Direction) -> Result<Vec<TermEntry>, Fault> {
        // Terms outside the range are kept, because they show that the range has ended.
        let may_pass = |key: &[u8]| {
            key.strip_prefix(self.path.code()).is_some_and(|code| match direction {
                Direction::Forward => !self.range.is_after(code),
                Direction::Backward => !self.range.is_before(code),
            })
        };
        block.group_of_wanted(group, may_pass, |rank| self.within.contains(rank))
    }
}

/// Groups without a wanted term that are read before the task yields.
const GROUPS_AT_A_TIME: usize = 64;

impl RunCursor {
    /// A cursor before all terms.
    pub(crate) async fn whole(run: Arc<Run>, source: RunSource) -> Result<RunCursor, Fault> {
        RunCursor::at(run, source, Direction::Forward, &[], None).await
    }

    /// A cursor before the terms of `path` in a range, or after them for the other direction; up to a group too early.
    pub(crate) async fn seek(
        run: Arc<Run>,
        source: RunSource,
        direction: Direction,
        path: &IndexPath,
        range: &CodeRange,
        filter: Option<TermFilter>,
    ) -> Result<RunCursor, Fault> {
        let bound = match direction {
            Direction::Forward => &range.low,
            Direction::Backward => &range.high,
        };
        let key = match (bound, direction) {
            (Bound::Included(code) | Bound::Excluded(code), _) => [path.code(), code].concat(),
            (Bound::Unbounded, Direction::Forward) => path.code().to_vec(),
            (Bound::Unbounded, Direction::Backward) => path.end_code(),
        };
        RunCursor::at(run, source, direction, &key, filter).await
    }

    async fn at(
        run: Arc<Run>,
        source: RunSource,
        direction: Direction,
        key: &[u8],
        filter: Option<TermFilter>,
    ) -> Result<RunCursor, Fault> {
        let index = run.fences.block_of(key);
        let block = source.block(&run, index).await?;
        let mut cursor =
            RunCursor { run, source, direction, block: None, group: 0, entries: VecDeque::new(), filter };
        if let Some(block) = block {
            cursor.group = block.group_of(key)?;
            cursor.entries = cursor.entries_of(&block, cursor.group)?;
            cursor.block = Some((index, block));
        }
        Ok(cursor)
    }

    fn entries_of(&self, block: &Block, group: usize) -> Result<VecDeque<TermEntry>, Fault> {
        match &self.filter {
            Some(filter) => filter.group(block, group, self.direction).map(VecDeque::from),
            None => block.group(group).map(VecDeque::from),
        }
    }

    /// The next term, if there is one.
    pub(crate) async fn next(&mut self) -> Result<Option<TermEntry>, Fault> {
        let mut passed = 0_usize;
        loop {
            let entry = match self.direction {
                Direction::Forward => self.entries.pop_front(),
                Direction::Backward => self.entries.pop_back(),
            };
            if entry.is_some() || !self.next_group().await? {
                return Ok(entry);
            }
            passed += 1;
            if passed.is_multiple_of(GROUPS_AT_A_TIME) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Advances to the next group; `false` at the end.
    async fn next_group(&mut self) -> Result<bool, Fault> {
        let Some((index, block)) = &self.block else {
            return Ok(false);
        };
        let group = match self.direction {
            Direction::Forward => Some(self.group + 1).filter(|group| *group < block.group_count()),
            Direction::Backward => self.group.checked_sub(1),
        };
        if let Some(group) = group {
            self.group = group;
            self.entries = self.entries_of(block, group)?;
            return Ok(true);
        }
        let index = match self.direction {
            Direction::Forward => Some(index + 1),
            Direction::Backward => index.checked_sub(1),
        };
        self.block = None;
        let Some(index) = index else { return Ok(false) };
        let Some(block) = self.source.block(&self.run, index).await? else {
            return Ok(false);
        };
        self.group = match self.direction {
            Direction::Forward => 0,
            Direction::Backward => block.group_count().saturating_sub(1),
        };
        self.entries = self.entries_of(&block, self.group)?;
        self.block = Some((index, block));
        Ok(true)
    }

    /// The documents of a term.
    pub(crate) async fn posting(&self, entry: &TermEntry) -> Result<Posting<'static>, Fault> {
        self.source.posting(&self.run, entry).await
    }
}
