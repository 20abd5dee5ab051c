//! How values of fields stand in packets: big-endian, in the order of their fields, none aligned.
//!
//! *Invariant:* reading is total: whatever the bytes, a value or a [`Failure`] comes back, and no byte outside of them is
//! looked at; what is written is read back as it was.

use core::marker::PhantomData;

use crate::definitions::Failure;

/// What a field is on the wire.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Unsigned, 1 byte.
    U8,
    /// Unsigned, 2 bytes.
    U16,
    /// Unsigned, 4 bytes.
    U32,
    /// Unsigned, 8 bytes.
    U64,
    /// Two's complement, 2 bytes.
    I16,
    /// Two's complement, 4 bytes.
    I32,
    /// CUC 4 + 2 bytes without P-field.
    Time,
    /// One byte, with names: the enumeration of that name.
    Enumeration(&'static str),
    /// Two bytes, with names: the enumeration of that name.
    WideEnumeration(&'static str),
    /// Number of bytes (2 bytes), then those.
    Bytes,
    /// All that is left.
    Rest,
    /// Several fields.
    Group(&'static [Field]),
    /// Always as many as there are names.
    Repeated(&'static Kind, &'static [&'static str]),
    /// Number of elements (1 byte), then those.
    Counted(&'static Kind),
}

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// How it stands in the packet.
    pub kind: Kind,
    /// Its unit, or nothing.
    pub unit: &'static str,
    /// The least and greatest value that is accepted; none: whatever the kind holds.
    pub range: Option<(i64, i64)>,
}

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`Failure::Length`] when there are fewer.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Failure> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Failure::Length)?;
        self.0 = rest;
        Ok(taken)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Bytes that are written from the front.
#[derive(Debug)]
pub struct Writer<'a> {
    bytes: &'a mut [u8],
    length: usize,
    overflowed: bool,
}

impl<'a> Writer<'a> {
    /// Writes into `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a mut [u8]) -> Self {
        Self {
            bytes,
            length: 0,
            overflowed: false,
        }
    }

    /// Appends `bytes`, or nothing when they do not fit.
    pub fn put(&mut self, bytes: &[u8]) {
        match self.bytes.get_mut(self.length..self.length + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            None => self.overflowed = true,
        }
    }

    /// How many bytes were written; none when something did not fit.
    #[must_use]
    pub const fn length(&self) -> Option<usize> {
        if self.overflowed {
            None
        } else {
            Some(self.length)
        }
    }
}

/// What can be a field.
pub trait Value<'a>: Sized {
    /// How it stands in the packet.
    const KIND: Kind;
    /// Bytes that it takes; 0 when that depends.
    const SIZE: usize;

    /// Reads it.
    ///
    /// # Errors
    /// [`Failure::Length`] when bytes are missing, [`Failure::Argument`] when they are no such value.
    fn read(reader: &mut Reader<'a>) -> Result<Self, Failure>;

    /// Writes it.
    fn write(&self, writer: &mut Writer<'_>);

    /// Whether it is within a range; what is no number always is.
    fn within(&self, _least: i64, _greatest: i64) -> bool {
        true
    }
}

macro_rules! numbers {
    ($($type:ty, $kind:ident;)*) => {$(
        impl Value<'_> for $type {
            const KIND: Kind = Kind::$kind;
            const SIZE: usize = size_of::<$type>();

            #[inline]
            fn read(reader: &mut Reader<'_>) -> Result<Self, Failure> {
                let bytes = reader.take(size_of::<$type>())?;
                let bytes = bytes.try_into().map_err(|_| Failure::Length)?;
                Ok(<$type>::from_be_bytes(bytes))
            }

            #[inline]
            fn write(&self, writer: &mut Writer<'_>) {
                writer.put(&self.to_be_bytes());
            }

            #[inline]
            fn within(&self, least: i64, greatest: i64) -> bool {
                i64::try_from(*self).is_ok_and(|number| number >= least && number <= greatest)
            }
        }
    )*};
}

numbers! { u8, U8; u16, U16; u32, U32; u64, U64; i16, I16; i32, I32; }

/// Bytes behind their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Value<'a> for Bytes<'a> {
    const KIND: Kind = Kind::Bytes;
    const SIZE: usize = 0;

    fn read(reader: &mut Reader<'a>) -> Result<Self, Failure> {
        let count = u16::read(reader)?;
        reader.take(usize::from(count)).map(Self)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        match u16::try_from(self.0.len()) {
            Ok(count) => count.write(writer),
            Err(_) => writer.overflowed = true,
        }
        writer.put(self.0);
    }

    fn within(&self, least: i64, greatest: i64) -> bool {
        (self.0.len() as u64).within(least, greatest)
    }
}

/// All bytes that are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Rest<'a>(pub &'a [u8]);

impl<'a> Value<'a> for Rest<'a> {
    const KIND: Kind = Kind::Rest;
    const SIZE: usize = 0;

    fn read(reader: &mut Reader<'a>) -> Result<Self, Failure> {
        Ok(Self(reader.rest()))
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(self.0);
    }

    fn within(&self, least: i64, greatest: i64) -> bool {
        (self.0.len() as u64).within(least, greatest)
    }
}

/// Elements behind their number, left in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted<'a, T> {
    bytes: &'a [u8],
    of: PhantomData<T>,
}

impl<'a, T: Value<'a>> Counted<'a, T> {
    /// The elements that stand in `bytes`, whole ones, 255 at most.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        let count = bytes.len().checked_div(T::SIZE).unwrap_or(0).min(255);
        Self {
            bytes: bytes.get(..count * T::SIZE).unwrap_or_default(),
            of: PhantomData,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(T::SIZE).unwrap_or(0)
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The elements, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'a, T> {
        let mut reader = Reader::new(self.bytes);
        core::iter::from_fn(move || T::read(&mut reader).ok())
    }
}

impl<'a, T: Value<'a> + 'static> Value<'a> for Counted<'a, T> {
    const KIND: Kind = Kind::Counted(&T::KIND);
    const SIZE: usize = 0;

    fn read(reader: &mut Reader<'a>) -> Result<Self, Failure> {
        let count = u8::read(reader)?;
        let bytes = reader.take(usize::from(count) * T::SIZE)?;
        let mut elements = Reader::new(bytes);
        for _ in 0..count {
            T::read(&mut elements)?;
        }
        Ok(Self {
            bytes,
            of: PhantomData,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        // At most 255 by construction.
        (self.len() as u8).write(writer);
        writer.put(self.bytes);
    }

    fn within(&self, least: i64, greatest: i64) -> bool {
        (self.len() as u64).within(least, greatest)
    }
}

/// Groups that stand in a packet once for each of some names.
pub trait Named {
    /// The names.
    const NAMES: &'static [&'static str];
}

impl<'a, T: Value<'a> + Named + Copy + Default + 'static, const N: usize> Value<'a> for [T; N] {
    const KIND: Kind = Kind::Repeated(&T::KIND, T::NAMES);
    const SIZE: usize = N * T::SIZE;

    fn read(reader: &mut Reader<'a>) -> Result<Self, Failure> {
        let mut all = [T::default(); N];
        for one in &mut all {
            *one = T::read(reader)?;
        }
        Ok(all)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        for one in self {
            one.write(writer);
        }
    }
}
