//! Stacks as text in the description of a trace file: numbers of seven bits a byte, compressed as zlib does,
//! in base64.
//!
//! | part | holds |
//! | --- | --- |
//! | version | 1 |
//! | texts | each its bytes, from number 1 on; text 0 is empty |
//! | modules | path, a text; build id |
//! | places | module plus one, or 0; address; its names, each function, file (texts) and line |
//! | nodes | how far back the parent stands, or 0; place |
//! | stacks | node times four, and the ending |
//!
//! Each part begins with how many there are, and so do bytes and names.
//!
//! *Invariant:* what is read keeps the invariant of [`Stacks`], or is an error; memory is taken for what is there,
//! at most some hundred megabytes.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::{Ending, MOST_DEEP, MOST_TEXT, Module, Node, Numbered, Place, Stack, Stacks};

/// The version that this build writes and reads.
const VERSION: u64 = 1;
/// Bytes that stacks may take, decompressed: some ten million calls.
const MOST_BYTES: usize = 64 << 20;
/// Bytes of the longest build id.
const MOST_ID: usize = 64;

/// The text; `None` if it would be longer than what is read.
pub(crate) fn encode(stacks: &Stacks) -> Option<String> {
    let bytes = to_bytes(stacks);
    if bytes.len() > MOST_BYTES {
        return None;
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&bytes).ok()?;
    Some(STANDARD.encode(encoder.finish().ok()?))
}

/// The bytes that a trace file has of stacks, before they are compressed. O(stacks and their calls).
#[must_use]
pub fn to_bytes(stacks: &Stacks) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_number(&mut bytes, VERSION);
    write_number(&mut bytes, stacks.texts.len() as u64);
    for text in &stacks.texts {
        write_number(&mut bytes, text.len() as u64);
        bytes.extend(text.as_bytes());
    }
    write_number(&mut bytes, stacks.modules.len() as u64);
    for module in &stacks.modules {
        let mut path = module.path.clone();
        super::cut(&mut path);
        let id = module.build_id.get(..MOST_ID).unwrap_or(&module.build_id);
        write_number(&mut bytes, path.len() as u64);
        bytes.extend(path.as_bytes());
        write_number(&mut bytes, id.len() as u64);
        bytes.extend(id);
    }
    write_number(&mut bytes, stacks.places.len() as u64);
    for place in &stacks.places {
        write_number(
            &mut bytes,
            place.module.map_or(0, |module| u64::from(module) + 1),
        );
        write_number(&mut bytes, place.address);
        let (first, behind) = place.names;
        let names = stacks
            .names
            .get(first as usize..behind as usize)
            .unwrap_or(&[]);
        write_number(&mut bytes, names.len() as u64);
        for name in names {
            for part in [name.function, name.file, name.line] {
                write_number(&mut bytes, u64::from(part));
            }
        }
    }
    write_number(&mut bytes, stacks.nodes.len() as u64);
    for (own, node) in (0u64..).zip(&stacks.nodes) {
        write_number(
            &mut bytes,
            node.parent.map_or(0, |parent| own - u64::from(parent)),
        );
        write_number(&mut bytes, u64::from(node.place));
    }
    write_number(&mut bytes, stacks.stacks.len() as u64);
    for stack in &stacks.stacks {
        write_number(&mut bytes, u64::from(stack.node) << 2 | stack.ending as u64);
    }
    bytes
}

fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 127 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The stacks of a text.
///
/// # Errors
/// Why it holds none.
pub(crate) fn decode(text: &str) -> Result<Stacks, String> {
    let compressed = STANDARD.decode(text).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let mut decoder = ZlibDecoder::new(&*compressed).take(MOST_BYTES as u64 + 1);
    let read = decoder.read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() > MOST_BYTES {
        return Err(format!("they take more than {MOST_BYTES} bytes"));
    }
    from_bytes(&bytes).ok_or_else(|| "they contradict themselves".to_owned())
}

/// The stacks of such bytes; `None` if they are none. O(bytes).
#[must_use]
pub fn from_bytes(bytes: &[u8]) -> Option<Stacks> {
    Parts { bytes }.stacks()
}

/// What is left to read.
struct Parts<'a> {
    bytes: &'a [u8],
}

impl Parts<'_> {
    fn stacks(&mut self) -> Option<Stacks> {
        if self.number()? != VERSION {
            return None;
        }
        let mut stacks = Stacks::default();
        for _ in 0..self.count()? {
            stacks.texts.push(self.text()?);
        }
        for _ in 0..self.count()? {
            let path = self.text()?;
            let length = self.number()? as usize;
            let build_id = self.take(length, MOST_ID)?.to_vec();
            stacks.modules.push(Module { path, build_id });
        }
        for _ in 0..self.count()? {
            let place = self.place(&mut stacks)?;
            stacks.places.push(place);
        }
        let mut deep: Vec<u16> = Vec::new();
        for own in 0..self.count()? {
            let own = u32::try_from(own).ok()?;
            let parent = match self.narrow()? {
                0 => None,
                back => Some(own.checked_sub(back)?),
            };
            let outside = parent.map_or(Some(0), |parent| deep.get(parent as usize).copied())?;
            if usize::from(outside) >= MOST_DEEP {
                return None;
            }
            deep.push(outside + 1);
            let place = below(self.narrow()?, stacks.places.len())?;
            stacks.nodes.push(Node { parent, place });
        }
        for _ in 0..self.count()? {
            let packed = self.number()?;
            let ending = match packed & 3 {
                0 => Ending::Whole,
                1 => Ending::Cut,
                2 => Ending::Broken,
                _ => return None,
            };
            let node = below(u32::try_from(packed >> 2).ok()?, stacks.nodes.len())?;
            stacks.stacks.push(Stack { node, ending });
        }
        // Nothing else was ever written.
        self.bytes.is_empty().then_some(stacks)
    }

    fn place(&mut self, stacks: &mut Stacks) -> Option<Place> {
        let module = match self.narrow()? {
            0 => None,
            more => Some(below(more - 1, stacks.modules.len())?),
        };
        let address = self.number()?;
        let first = u32::try_from(stacks.names.len()).ok()?;
        for _ in 0..self.count()? {
            let function = below(self.narrow()?, stacks.texts.len() + 1)?;
            let file = below(self.narrow()?, stacks.texts.len() + 1)?;
            let line = self.narrow()?;
            stacks.names.push(Numbered {
                function,
                file,
                line,
            });
        }
        let behind = u32::try_from(stacks.names.len()).ok()?;
        Some(Place {
            module,
            address,
            names: (first, behind),
        })
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            let bits = u64::from(byte & 127);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    fn narrow(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// How many of something follow: no more than bytes, as each takes one at least.
    fn count(&mut self) -> Option<u64> {
        let count = self.number()?;
        (count <= self.bytes.len() as u64).then_some(count)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()? as usize;
        let bytes = self.take(length, MOST_TEXT)?;
        String::from_utf8(bytes.to_vec()).ok()
    }

    fn take(&mut self, length: usize, most: usize) -> Option<&[u8]> {
        if length > most {
            return None;
        }
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }
}

/// `number`, if it is below `count`.
fn below(number: u32, count: usize) -> Option<u32> {
    ((number as usize) < count).then_some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::StacksBuilder;
    use super::*;

    /// Stacks of drawn calls, with drawn names.
    fn drawn() -> impl Strategy<Value = Stacks> {
        let call = (prop::option::of(0u32..3), any::<u64>());
        let ending = prop_oneof![Just(Ending::Whole), Just(Ending::Cut), Just(Ending::Broken)];
        let stack = (prop::collection::vec(call, 0..300), ending);
        let names = prop::collection::vec((".*", ".*", any::<u32>()), 0..3);
        (prop::collection::vec(stack, 0..8), names).prop_map(|(stacks, names)| {
            let mut builder = StacksBuilder::default();
            for id in 0..3 {
                let path = format!("/lib/{id}");
                builder.module(Module {
                    path,
                    build_id: vec![id; 20],
                });
            }
            for (calls, ending) in stacks {
                builder.stack(&calls, ending);
            }
            let mut stacks = builder.finish();
            stacks.name(|_, place| match place.address % 3 {
                0 => Vec::new(),
                _ => names.clone(),
            });
            stacks
        })
    }

    fn packed(bytes: &[u8]) -> String {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        STANDARD.encode(encoder.finish().unwrap())
    }

    fn unpacked(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let compressed = STANDARD.decode(text).unwrap();
        ZlibDecoder::new(&*compressed)
            .read_to_end(&mut bytes)
            .unwrap();
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_is_read(stacks in drawn()) {
            let text = encode(&stacks).unwrap();
            prop_assert_eq!(decode(&text).unwrap(), stacks);
        }

        #[test]
        fn any_bytes_are_stacks_that_hold_together_or_an_error(
            stacks in drawn(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = unpacked(&encode(&stacks).unwrap());
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(cut.index(bytes.len() * 4).max(1));
            if let Ok(stacks) = decode(&packed(&bytes)) {
                for site in 0..=stacks.len() as u64 + 1 {
                    prop_assert!(stacks.calls(site).count() <= MOST_DEEP);
                    for node in stacks.calls(site) {
                        let place = stacks.nodes()[node as usize].place;
                        let _ = stacks.plain(place);
                        let _ = stacks.names(place).count();
                    }
                }
            }
        }
    }

    #[test]
    fn too_much_is_refused_before_it_is_there() {
        // A hundred megabytes of empty texts.
        let mut bytes = vec![1];
        write_number(&mut bytes, 100 << 20);
        bytes.resize(100 << 20, 0);
        assert!(decode(&packed(&bytes)).unwrap_err().contains("more than"));
        // More than there are bytes.
        let mut bytes = vec![1];
        write_number(&mut bytes, u64::MAX);
        assert!(decode(&packed(&bytes)).is_err());
        assert!(decode("no base64!").is_err());
        assert!(decode("").is_err());
    }
}
