//! Progress of rewriting the expiry rows of a partition after a change of the default time to live.
//!
//! ```text
//! format:1 = 1 · change of the definition · tag 0: continues after · record key, or tag 1: done
//! ```

use crate::keyspace::{self, META, PartitionId};
use crate::storage::{damaged, read_fault};
use bytes::Bytes;
use kv::View;
use model::{DecodeFault, Decoder, Encoder, Fault};

const FORMAT: u8 = 1;

/// How far the expiry rows of a partition were rewritten, and for which definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RescheduleCheckpoint {
    /// The catalog change that wrote the definition.
    pub change: u64,
    /// The progress of the walk.
    pub progress: RescheduleProgress,
}

/// The progress of a walk over the records of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RescheduleProgress {
    /// It continues after this record key.
    After(Bytes),
    /// All records were processed.
    Done,
}

impl RescheduleCheckpoint {
    /// The checkpoint of a partition, if there is one.
    pub async fn load(view: &View, partition: PartitionId) -> Result<Option<RescheduleCheckpoint>, Fault> {
        let row = view.get(META, &keyspace::reschedule_key(partition)).await.map_err(read_fault)?;
        let decoded = row.map(|row| RescheduleCheckpoint::decode(&row)).transpose();
        decoded.map_err(|fault| damaged(format!("checkpoint of expiry rows of {partition:?}: {fault}")))
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Encoder::default();
        out.byte(FORMAT);
        out.number(self.change);
        match &self.progress {
            RescheduleProgress::After(key) => {
                out.byte(0);
                out.bytes(key);
            }
            RescheduleProgress::Done => out.byte(1),
        }
        out.finish().into()
    }

    fn decode(row: &[u8]) -> Result<RescheduleCheckpoint, DecodeFault> {
        let mut input = Decoder::new(row);
        input.version(FORMAT)?;
        let change = input.number("change")?;
        let progress = match input.byte("progress")? {
            0 => RescheduleProgress::After(Bytes::copy_from_slice(input.bytes("record key")?)),
            1 => RescheduleProgress::Done,
            tag => return Err(input.unknown("progress", tag)),
        };
        input.finish()?;
        Ok(RescheduleCheckpoint { change, progress })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_comes_back_and_damage_is_refused() {
        for progress in [RescheduleProgress::After(Bytes::from_static(b"key")), RescheduleProgress::Done] {
            let checkpoint = RescheduleCheckpoint { change: 300, progress };
            let row = checkpoint.encode();
            assert_eq!(RescheduleCheckpoint::decode(&row), Ok(checkpoint));
            for length in 0..row.len() {
                assert!(RescheduleCheckpoint::decode(&row[..length]).is_err());
            }
        }
        assert!(RescheduleCheckpoint::decode(&[2, 0, 1]).is_err());
        assert!(RescheduleCheckpoint::decode(&[1, 0, 2]).is_err());
    }
}
