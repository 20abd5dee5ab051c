//! What a board says of its heap once and for all.
//!
//! Invariant: a [`Header`] that was read describes exactly the words that the board has.

use crate::figures;
use crate::layout::{HEADER, Layout};

/// "METESBRD", in the order of the machine that writes it.
const MAGIC: u64 = u64::from_ne_bytes(*b"METESBRD");
/// Changes with what stands where, and with what the figures mean.
pub(crate) const VERSION: u64 = 1;
/// Where the texts are, in words, and how long.
const DEVICE: (usize, usize) = (16, 8);
const PROGRAM: (usize, usize) = (24, 40);
/// Streams of a heap.
pub(crate) const STREAMS: usize = 64;
/// Pages that a heap may have: as many as are numbered with 32 bits.
const MOST_PAGES: u64 = u32::MAX as u64;

/// What a heap says of itself when its board is made.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// Tells the heaps of a process apart.
    pub serial: u64,
    /// Its first address.
    pub start: u64,
    /// Bytes of a page, a power of two.
    pub page: u64,
    /// Pages of its addresses.
    pub pages: u64,
    /// Blocks are multiples of so many bytes.
    pub granule: u64,
    /// Whose memory it is.
    pub device: &'a str,
}

/// What is known of a heap as a reader has it, and what the writer added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The process that has the heap, as it numbers itself.
    pub process: u32,
    /// Microseconds from 1970 to when the board was made.
    pub began: u64,
    /// As in [`About`].
    pub serial: u64,
    /// As in [`About`].
    pub start: u64,
    /// As in [`About`].
    pub page: u64,
    /// As in [`About`].
    pub pages: u64,
    /// As in [`About`].
    pub granule: u64,
    /// As in [`About`]; without characters that control a terminal.
    pub device: String,
    /// The beginning of the program's command line, likewise.
    pub program: String,
}

/// Why a header is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Foreign,
    Version(u64),
    Damaged(&'static str),
}

pub(crate) fn layout(pages: u64) -> Layout {
    Layout::new(figures::WORDS, pages as usize + STREAMS)
}

/// Whether a board can describe such pages.
pub(crate) fn check(start: u64, page: u64, pages: u64) -> Result<(), &'static str> {
    if !page.is_power_of_two() || page >> 62 != 0 {
        return Err("a page is no power of two that can be counted");
    }
    if pages == 0 || pages > MOST_PAGES {
        return Err("there are no pages, or too many to be numbered");
    }
    let bytes = page.checked_mul(pages);
    if bytes.and_then(|bytes| start.checked_add(bytes)).is_none() {
        return Err("the pages go beyond the last address");
    }
    Ok(())
}

/// The words of a header.
pub(crate) fn words(about: &About<'_>, process: u32, began: u64, program: &str) -> [u64; HEADER] {
    let layout = layout(about.pages);
    let mut words = [0; HEADER];
    let fixed = [
        MAGIC,
        VERSION,
        layout.words().unwrap_or(0) as u64,
        process.into(),
        began,
        about.serial,
        about.start,
        about.page,
        about.pages,
        about.granule,
    ];
    words[..fixed.len()].copy_from_slice(&fixed);
    put(&mut words, DEVICE, about.device);
    put(&mut words, PROGRAM, program);
    words
}

/// Reads a header of a board that has so many words in all.
pub(crate) fn read(words: &[u64; HEADER], present: usize) -> Result<Header, Wrong> {
    if words[0] != MAGIC {
        return Err(Wrong::Foreign);
    }
    if words[1] != VERSION {
        return Err(Wrong::Version(words[1]));
    }
    let [
        _,
        _,
        whole,
        process,
        began,
        serial,
        start,
        page,
        pages,
        granule,
        ..,
    ] = *words;
    check(start, page, pages).map_err(Wrong::Damaged)?;
    if layout(pages).words() != Some(present) || whole != present as u64 {
        return Err(Wrong::Damaged("it has another length than its pages need"));
    }
    if !granule.is_power_of_two() || granule > page {
        return Err(Wrong::Damaged("a granule is no part of a page"));
    }
    Ok(Header {
        process: u32::try_from(process).map_err(|_| Wrong::Damaged("there is no such process"))?,
        began,
        serial,
        start,
        page,
        pages,
        granule,
        device: text(words, DEVICE),
        program: text(words, PROGRAM),
    })
}

/// Writes as much of a text as there is room for, and zeros behind it.
fn put(words: &mut [u64; HEADER], (first, count): (usize, usize), text: &str) {
    let mut end = text.len().min(8 * count);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    for (place, bytes) in text.as_bytes()[..end].chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        words[first + place] = u64::from_ne_bytes(word);
    }
}

fn text(words: &[u64; HEADER], (first, count): (usize, usize)) -> String {
    let bytes: Vec<u8> = words[first..first + count]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .take_while(|byte| *byte != 0)
        .collect();
    metes_quantity::printable(&String::from_utf8_lossy(&bytes)).into_owned()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let about = About {
            serial: 3,
            start: 1 << 40,
            page: 1 << 21,
            pages: 77,
            granule: 512,
            device: "CUDA device 0 with a name that is far longer than there is room for it here",
        };
        let program = format!("python {}", "\u{e9}\u{1b}\n".repeat(200));
        let mut words = words(&about, 4711, 5, &program);
        let present = layout(77).words().unwrap();
        let header = read(&words, present).unwrap();
        assert_eq!((header.process, header.serial, header.pages), (4711, 3, 77));
        assert!(about.device.starts_with(&header.device) && header.device.len() == 64);
        assert!(header.program.starts_with("python \u{e9}\u{fffd} \u{e9}"));
        assert_eq!(
            read(&words, present - 1),
            Err(Wrong::Damaged("it has another length than its pages need"))
        );
        words[1] = 9;
        assert_eq!(read(&words, present), Err(Wrong::Version(9)));
        words[0] = 9;
        assert_eq!(read(&words, present), Err(Wrong::Foreign));
    }
}
