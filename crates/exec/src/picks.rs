//! Documents that indexes have found in the order of a query, merged over all parts. They are read only now.

use model::{DocumentNumber, Fault};
use plan::StoredDocument;
use std::sync::Arc;
use std::time::Instant;

use crate::access_path::Codes;
use crate::found::QueryMetrics;
use crate::program::RemainingCheck;
use crate::task::OpenPart;

/// A document that an index has found.
#[derive(Debug)]
pub(crate) struct FoundDocument {
    pub(crate) open: Arc<OpenPart>,
    pub(crate) number: DocumentNumber,
    pub(crate) codes: Codes,
    /// What is still to be checked on it.
    pub(crate) check: RemainingCheck,
}

/// The next document in the order of all parts.
#[derive(Debug)]
pub(crate) struct Pick {
    /// The stream it comes from.
    pub(crate) stream: usize,
    pub(crate) document: FoundDocument,
}

/// Reads documents, grouped by part. A document that no longer exists is `None`.
pub(crate) async fn read(
    picks: &[Pick],
    metrics: &mut QueryMetrics,
) -> Result<Vec<Option<StoredDocument>>, Fault> {
    let begun = Instant::now();
    let mut documents: Vec<Option<StoredDocument>> = picks.iter().map(|_| None).collect();
    let mut places: Vec<usize> = (0..picks.len()).collect();
    places.sort_by_key(|place| picks[*place].stream);
    for same in places.chunk_by(|left, right| picks[*left].stream == picks[*right].stream) {
        let Some(first) = same.first() else { continue };
        let open = &picks[*first].document.open;
        let numbers: Vec<DocumentNumber> = same.iter().map(|place| picks[*place].document.number).collect();
        let found = open.view.by_numbers(&numbers, &open.part.keys).await?;
        metrics.documents_by_index += found.len() as u64;
        metrics.count_read(open, &found, begun.elapsed());
        let mut places = same.iter();
        for document in found {
            let place = places.find(|place| picks[**place].document.number == document.number);
            if let Some(place) = place {
                documents[*place] = Some(document);
            }
        }
    }
    Ok(documents)
}
