//! The border to whoever holds the transaction of a script.

use crate::{Operation, Replies};

/// Executes the document operations of one script in its transaction.
pub trait Host: Send {
    /// A reason to end the script that it cannot handle itself, such as a conflict with another transaction.
    type Fault: Send;

    /// Executes operations in order, from the first on, and returns one reply for each that it has executed.
    ///
    /// It executes at least one, and stops when the replies are large enough for a message; the script sends the rest
    /// again. A refused operation does not prevent those after it: the script decides in its callback. The future is
    /// dropped when the time of the script is over.
    fn operate(
        &mut self,
        operations: Vec<Operation>,
    ) -> impl Future<Output = Result<Replies, Self::Fault>> + Send;

    /// Gets what a script has logged that did not end normally. A script that was killed has no log.
    fn failed(&mut self, log: String) {
        drop(log);
    }
}

/// A host without documents: every operation ends the script.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDocuments;

/// The script has used documents where there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the script has no documents")]
pub struct DocumentsUsed;

impl Host for NoDocuments {
    type Fault = DocumentsUsed;

    async fn operate(&mut self, _operations: Vec<Operation>) -> Result<Replies, DocumentsUsed> {
        Err(DocumentsUsed)
    }
}
