//! The bytes of a file, which is opened at the first read, and decompressed if it is zstd.

use std::io::{self, BufReader, Read};

/// First bytes of a zstd frame in a file.
///
/// Source: RFC 8878 §3.1.1
const FRAME: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// First bytes of a skippable zstd frame, as a number without the lowest four bits.
///
/// Source: RFC 8878 §3.1.2
const SKIPPABLE: u32 = 0x184D_2A50;

/// Buffer size of a read, in bytes.
pub const CHUNK: usize = 1 << 16;

/// A function that opens a file, a pipe, or another source of bytes.
type Open = Box<dyn FnOnce() -> io::Result<Box<dyn Read + Send>> + Send>;

/// Bytes, in order.
pub struct Bytes {
    state: State,
    /// Length of the file as stored, if known.
    length: Option<u64>,
    is_named_packed: bool,
    is_live: bool,
}

enum State {
    Closed(Option<Open>),
    Plain(Counted),
    Packed(Box<zstd::Decoder<'static, BufReader<Counted>>>),
}

impl Bytes {
    /// Creates a source that `open` opens at the first read; the length of the source is `length` bytes, if known.
    /// `is_packed` is true if the file name implies compressed bytes. Bytes that start like a zstd frame count as
    /// compressed too.
    pub fn new(
        length: Option<u64>,
        is_packed: bool,
        open: impl FnOnce() -> io::Result<Box<dyn Read + Send>> + Send + 'static,
    ) -> Bytes {
        let state = State::Closed(Some(Box::new(open)));
        Bytes { state, length, is_named_packed: is_packed, is_live: length.is_none() }
    }

    /// Marks the source as complete: all bytes are available, although their number is unknown.
    pub fn not_live(self) -> Bytes {
        Bytes { is_live: false, ..self }
    }

    /// Returns whether bytes may not have arrived yet, as in a pipe.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Returns the share of the file that has been read, 0 to 1, if its length is known.
    pub fn progress(&self) -> Option<f64> {
        self.length.map(|length| (self.taken() as f64 / length.max(1) as f64).min(1.0))
    }

    /// Returns the number of bytes read from the file as stored.
    pub fn taken(&self) -> u64 {
        match &self.state {
            State::Closed(_) => 0,
            State::Plain(counted) => counted.count,
            State::Packed(decoder) => decoder.get_ref().get_ref().count,
        }
    }

    /// Returns the total number of bytes, if known: it is unknown for compressed bytes. Opens the source.
    ///
    /// # Errors
    /// The source cannot be opened or read.
    pub fn length(&mut self) -> io::Result<Option<u64>> {
        self.open()?;
        Ok(self.length.filter(|_| matches!(self.state, State::Plain(_))))
    }

    /// Returns whether the bytes are compressed; `false` before the source was opened.
    pub fn is_packed(&self) -> bool {
        matches!(self.state, State::Packed(_))
    }

    fn open(&mut self) -> io::Result<()> {
        let State::Closed(open) = &mut self.state else { return Ok(()) };
        let open = open.take().ok_or_else(|| io::Error::other("could not be opened"))?;
        let mut counted = Counted { head: vec![], read: 0, source: open()?, count: 0 };
        let mut head = vec![];
        counted.by_ref().take(4).read_to_end(&mut head)?;
        counted.count = 0;
        let begins_packed = <[u8; 4]>::try_from(&head[..])
            .is_ok_and(|head| head == FRAME || u32::from_le_bytes(head) & !0xF == SKIPPABLE);
        counted.head = head;
        self.state = if begins_packed || self.is_named_packed {
            State::Packed(Box::new(zstd::Decoder::with_buffer(BufReader::with_capacity(CHUNK, counted))?))
        } else {
            State::Plain(counted)
        };
        Ok(())
    }
}

impl Read for Bytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.open()?;
        match &mut self.state {
            State::Closed(_) => Ok(0),
            State::Plain(counted) => counted.read(out),
            State::Packed(decoder) => decoder.read(out),
        }
    }
}

/// A source whose first bytes (the head) were already read.
struct Counted {
    head: Vec<u8>,
    /// Number of the head's bytes that were returned.
    read: usize,
    source: Box<dyn Read + Send>,
    count: u64,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let head = &self.head[self.read..];
        let got = if head.is_empty() {
            self.source.read(out)?
        } else {
            let got = head.len().min(out.len());
            out[..got].copy_from_slice(&head[..got]);
            self.read += got;
            got
        };
        self.count += got as u64;
        Ok(got)
    }
}
