//! Fields of messages.

use super::Malformed;
use bytes::Bytes;

/// Appends fields to a message.
pub(crate) trait PutFields {
    fn put_u8(&mut self, number: u8);
    fn put_u16(&mut self, number: u16);
    fn put_u32(&mut self, number: u32);
    fn put_u64(&mut self, number: u64);
    fn put_bool(&mut self, flag: bool);
    fn put_bytes(&mut self, bytes: &[u8]);
    fn put_optional(&mut self, bytes: Option<&[u8]>);
}

impl PutFields for Vec<u8> {
    fn put_u8(&mut self, number: u8) {
        self.push(number);
    }

    fn put_u16(&mut self, number: u16) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn put_u32(&mut self, number: u32) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn put_u64(&mut self, number: u64) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn put_bool(&mut self, flag: bool) {
        self.push(u8::from(flag));
    }

    /// Frames are far below 4 GiB; one that is not is refused before it is sent.
    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.extend_from_slice(bytes);
    }

    fn put_optional(&mut self, bytes: Option<&[u8]>) {
        self.put_bool(bytes.is_some());
        if let Some(bytes) = bytes {
            self.put_bytes(bytes);
        }
    }
}

/// Takes fields off the front of a message.
#[derive(Debug)]
pub(crate) struct Fields {
    rest: Bytes,
}

impl Fields {
    pub(crate) fn new(message: Bytes) -> Fields {
        Fields { rest: message }
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    /// Bytes with their length in front; they share the memory of the message.
    pub(crate) fn bytes(&mut self) -> Result<Bytes, Malformed> {
        let length = self.u32()? as usize;
        if length > self.rest.len() {
            return Err(Malformed);
        }
        Ok(self.rest.split_to(length))
    }

    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        let bytes = self.bytes()?;
        std::str::from_utf8(&bytes).map(str::to_owned).map_err(|_| Malformed)
    }

    /// Text that is handed on as bytes.
    pub(crate) fn text_bytes(&mut self) -> Result<Bytes, Malformed> {
        let bytes = self.bytes()?;
        std::str::from_utf8(&bytes).map_err(|_| Malformed)?;
        Ok(bytes)
    }

    pub(crate) fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Fields) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        self.bool()?.then(|| read(self)).transpose()
    }

    /// A list whose elements take at least one byte each, so that its length is bounded by the message.
    pub(crate) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Fields) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.u32()? as usize;
        if count > self.rest.len() {
            return Err(Malformed);
        }
        (0..count).map(|_| read(self)).collect()
    }

    /// Everything after the fields read so far.
    pub(crate) fn rest(&mut self) -> Bytes {
        self.rest.split_off(0)
    }

    /// Checks that the message has no more fields.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let array = *self.rest.first_chunk::<N>().ok_or(Malformed)?;
        let _ = self.rest.split_to(N);
        Ok(array)
    }
}
