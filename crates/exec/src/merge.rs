//! Merges the streams of several partitions: always takes the stream whose next row comes first.
//!
//! A binary heap of streams by their next positions; positions are compared in place, not copied.

use model::Fault;
use std::sync::Arc;

use crate::bounded::{self, PartWork};
use crate::found::QueryMetrics;
use crate::program::Layer;
use crate::stream::{FillLimits, Stream};
use crate::task::{SeenState, Task};

/// Streams in the order of their next positions.
#[derive(Debug)]
pub(crate) struct StreamMerge {
    streams: Vec<Stream>,
    /// The streams that are not exhausted: a heap whose first entry has the first position.
    heap: Vec<usize>,
}

impl StreamMerge {
    pub(crate) fn new(streams: Vec<Stream>) -> StreamMerge {
        let heap = (0..streams.len()).filter(|at| streams[*at].next_position().is_some()).collect();
        let mut merge = StreamMerge { streams, heap };
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sink(at);
        }
        merge
    }

    /// The stream whose next row comes first; `None` if all are exhausted. After a change of it
    /// [`first_changed`](Self::first_changed) must be called.
    pub(crate) fn first(&mut self) -> Option<&mut Stream> {
        self.heap.first().map(|at| &mut self.streams[*at])
    }

    /// The index of that stream.
    pub(crate) fn first_at(&self) -> Option<usize> {
        self.heap.first().copied()
    }

    /// A stream by its index.
    pub(crate) fn stream(&mut self, at: usize) -> &mut Stream {
        &mut self.streams[at]
    }

    /// Restores the heap after the next position of the first stream has changed.
    pub(crate) fn first_changed(&mut self) {
        if self.heap.first().is_some_and(|at| self.streams[*at].next_position().is_none()) {
            self.heap.swap_remove(0);
        }
        self.sink(0);
    }

    /// Moves an entry of the heap down to its place.
    fn sink(&mut self, mut at: usize) {
        loop {
            let mut first = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.position(child) < self.position(first) {
                    first = child;
                }
            }
            if first == at {
                return;
            }
            self.heap.swap(at, first);
            at = first;
        }
    }

    fn position(&self, at: usize) -> Option<&[u8]> {
        self.streams[self.heap[at]].next_position()
    }
}

/// What was read from streams before they are merged.
#[derive(Debug, Default)]
pub(crate) struct FirstFill {
    pub(crate) seen: Vec<SeenState>,
    pub(crate) metrics: QueryMetrics,
}

/// Reads concurrently, with a limit, the streams that are still at `begun_at`: no row can be returned before each of
/// them has advanced. So nothing is read that would not be read sequentially. A single stream is not read here.
pub(crate) async fn fill_first(
    task: &Arc<Task>,
    streams: &mut Vec<Stream>,
    begun_at: &[u8],
    limits: FillLimits,
) -> Result<FirstFill, Fault> {
    let mut done = FirstFill::default();
    let stands = |stream: &Stream| stream.is_still_at(begun_at);
    if streams.iter().filter(|stream| stands(stream)).take(2).count() < 2 {
        return Ok(done);
    }
    let begun_at: Arc<[u8]> = begun_at.into();
    let mut filled: Vec<Option<Filled>> = streams.iter().map(|_| None).collect();
    let begin = |(at, stream): (usize, Stream)| -> PartWork<(usize, Filled)> {
        let (task, begun_at) = (Arc::clone(task), Arc::clone(&begun_at));
        Box::pin(async move { Ok((at, fill_one(&task, stream, &begun_at, limits).await?)) })
    };
    let work = std::mem::take(streams).into_iter().enumerate().map(begin);
    bounded::for_each_done(&task.meter, work, |(at, one)| filled[at] = Some(one)).await?;
    for one in filled.into_iter().flatten() {
        done.seen.extend(one.seen);
        done.metrics.add(&one.metrics);
        streams.push(one.stream);
    }
    Ok(done)
}

/// A stream that has advanced beyond its start.
struct Filled {
    stream: Stream,
    seen: Option<SeenState>,
    metrics: QueryMetrics,
}

async fn fill_one(
    task: &Arc<Task>,
    mut stream: Stream,
    begun_at: &[u8],
    limits: FillLimits,
) -> Result<Filled, Fault> {
    let layer: &Layer = task.innermost()?;
    let (mut seen, mut metrics) = (None, QueryMetrics::default());
    while stream.is_still_at(begun_at) {
        let begun = stream.fill(task, layer, limits, &mut metrics).await?;
        seen = seen.or(begun);
    }
    Ok(Filled { stream, seen, metrics })
}
