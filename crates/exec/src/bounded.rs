//! Work of several partitions for one page, with a limited number running concurrently.

use eval::Meter;
use model::Fault;
use std::pin::Pin;
use std::task::Poll;
use tokio::task::JoinSet;

/// Partitions that work for one query concurrently.
const PARTITIONS_AT_ONCE: usize = 8;

/// The work of one partition.
pub(crate) type PartWork<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;

/// Runs all work and passes on the results in the order of completion. While the page runs on the thread of its
/// request, the work shares that thread; elsewhere each part has its own task.
pub(crate) async fn for_each_done<T: Send + 'static>(
    meter: &Meter,
    mut waiting: impl Iterator<Item = PartWork<T>>,
    mut take: impl FnMut(T),
) -> Result<(), Fault> {
    let mut here = Vec::new();
    while meter.is_inline() {
        here.extend(waiting.by_ref().take(PARTITIONS_AT_ONCE - here.len()));
        let Some(done) = first_of(&mut here, meter).await else {
            break;
        };
        take(done?);
    }
    let mut working: JoinSet<Result<T, Fault>> = here.into_iter().collect();
    loop {
        while working.len() < PARTITIONS_AT_ONCE
            && let Some(work) = waiting.next()
        {
            working.spawn(work);
        }
        let Some(done) = working.join_next().await else {
            return Ok(());
        };
        take(done.map_err(|error| Fault::Internal(error.to_string()))??);
    }
}

/// The first completed one of several futures on one thread, unless their work is moved to another thread.
async fn first_of<T>(here: &mut Vec<PartWork<T>>, meter: &Meter) -> Option<Result<T, Fault>> {
    std::future::poll_fn(|context| {
        if here.is_empty() || !meter.is_inline() {
            return Poll::Ready(None);
        }
        for index in 0..here.len() {
            if let Poll::Ready(done) = here[index].as_mut().poll(context) {
                drop(here.swap_remove(index));
                return Poll::Ready(Some(done));
            }
            if meter.is_due() {
                break;
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const WORK: usize = 3 * PARTITIONS_AT_ONCE + 1;

    /// Runs work that yields now and then; returns the maximum number that ran concurrently.
    async fn most_at_once(meter: &Meter, moves_at: Option<usize>) -> usize {
        let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let begin = |number: usize| -> PartWork<usize> {
            let (under_way, most) = (Arc::clone(&under_way), Arc::clone(&most));
            Box::pin(async move {
                most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..=number % 3 {
                    tokio::task::yield_now().await;
                }
                under_way.fetch_sub(1, Ordering::SeqCst);
                Ok(number)
            })
        };
        let mut done = Vec::new();
        let take = |number| {
            done.push(number);
            if moves_at == Some(done.len()) {
                meter.leave_inline();
            }
        };
        for_each_done(meter, (0..WORK).map(begin), take).await.unwrap();
        done.sort_unstable();
        assert_eq!(done, (0..WORK).collect::<Vec<_>>());
        most.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn a_bounded_number_works_at_once_on_one_thread_and_on_many() {
        assert_eq!(most_at_once(&Meter::inline(Arc::default()), None).await, PARTITIONS_AT_ONCE);
        assert_eq!(most_at_once(&Meter::inline(Arc::default()), Some(5)).await, PARTITIONS_AT_ONCE);
        assert_eq!(most_at_once(&Meter::default(), None).await, PARTITIONS_AT_ONCE);
    }

    #[tokio::test]
    async fn the_first_fault_ends_the_work() {
        for meter in [Meter::inline(Arc::default()), Meter::default()] {
            let begin = |number: usize| -> PartWork<usize> {
                Box::pin(async move {
                    if number == 3 { Err(Fault::Internal("planted".to_owned())) } else { Ok(number) }
                })
            };
            assert!(for_each_done(&meter, (0..WORK).map(begin), |_| {}).await.is_err());
        }
    }
}
