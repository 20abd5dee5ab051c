//! Text of fixed capacity, so that a bound can carry its formula without an allocator.
//!
//! Invariant: `bytes[..length]` is valid UTF-8; writing past the capacity cuts the text at a
//! character boundary and never fails.

use core::fmt;

const CAPACITY: usize = 256;

/// A short text held in place: at most 256 bytes, anything beyond is cut off.
#[derive(Clone, Copy)]
pub struct Text {
    bytes: [u8; CAPACITY],
    length: usize,
}

impl Text {
    /// The empty text.
    pub const EMPTY: Self = Self {
        bytes: [0; CAPACITY],
        length: 0,
    };

    /// Writes `arguments` into a new text, cutting what does not fit.
    pub fn format(arguments: fmt::Arguments<'_>) -> Self {
        let mut text = Self::EMPTY;
        // `write_str` below never reports an error, so neither can this.
        let _ = fmt::Write::write_fmt(&mut text, arguments);
        text
    }

    /// The text as a string slice.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let mut fits = piece.len().min(CAPACITY - self.length);
        while !piece.is_char_boundary(fits) {
            fits -= 1;
        }
        self.bytes[self.length..self.length + fits].copy_from_slice(&piece.as_bytes()[..fits]);
        self.length += fits;
        Ok(())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}
