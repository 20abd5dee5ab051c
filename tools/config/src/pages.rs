//! What becomes of the pages of freed mapped blocks: a word, with a number behind one of them.
//!
//! Invariant: what is written is read back as the same.

use std::fmt;
use std::str::FromStr;

/// When the pages of freed mapped blocks go back to the system. What each guarantees is said in
/// the book (Returning pages on Linux).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pages {
    /// Never: they serve later blocks.
    Retain,
    /// At most so many with each request that allocates or resizes, and each free of a mapped block.
    Bounded(usize),
    /// Moved away at once, page tables and all; a reaper gives them back.
    Graveyard,
    /// By the free itself.
    Immediate,
}

/// Pages a request of `bounded` where no number is said.
pub const BOUNDED: usize = 64;
/// Most pages a request of `bounded`: a MiB of them are 4 GiB.
const MOST: usize = 1 << 20;

/// The words; `bounded` may have a number behind it.
pub(crate) const WORDS: [&str; 4] = ["retain", "bounded", "graveyard", "immediate"];

impl Pages {
    /// The policy of a word; `Err` says what numbers there may be behind it, where that is what is wrong.
    pub(crate) fn read(word: &str) -> Result<Option<Self>, String> {
        if let Some(number) = word.strip_prefix("bounded(") {
            let number = number.strip_suffix(')').and_then(|text| text.parse().ok());
            return match number {
                Some(pages) if (1..=MOST).contains(&pages) => Ok(Some(Pages::Bounded(pages))),
                _ => Err(format!(
                    "`bounded(PAGES)` has a whole number of pages from 1 to {MOST}, not `{word}`"
                )),
            };
        }
        Ok(match word {
            "retain" => Some(Pages::Retain),
            "bounded" => Some(Pages::Bounded(BOUNDED)),
            "graveyard" => Some(Pages::Graveyard),
            "immediate" => Some(Pages::Immediate),
            _ => None,
        })
    }
}

impl FromStr for Pages {
    type Err = String;

    /// Reads `retain`, `bounded`, `bounded(PAGES)`, `graveyard` or `immediate`.
    fn from_str(word: &str) -> Result<Self, String> {
        Pages::read(word)?.ok_or_else(|| {
            format!(
                "it can be {}, with a number of pages as `bounded(64)`",
                WORDS.join(", ")
            )
        })
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pages::Retain => f.write_str("retain"),
            Pages::Bounded(BOUNDED) => f.write_str("bounded"),
            Pages::Bounded(pages) => write!(f, "bounded({pages})"),
            Pages::Graveyard => f.write_str("graveyard"),
            Pages::Immediate => f.write_str("immediate"),
        }
    }
}
