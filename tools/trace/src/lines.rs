//! Files of operations as people write them: one a line, `#` begins a comment, empty lines are none.
//!
//! Invariant: no more of a file is held than what was made of it and a line; the first line that is wrong is named, with
//! what is wrong with it.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use metes_quantity::printable;

/// Longest line read, bytes.
const LONGEST_LINE: usize = 1024;

/// A line that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongLine {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub wrong: String,
}

/// Why a file could not be read.
#[derive(Debug)]
pub enum Unread {
    /// A line is wrong.
    Line(WrongLine),
    /// The system refuses.
    System(io::Error),
}

/// Has `take` read each line that says something, in order. Linear.
///
/// # Errors
/// The first line that `take` refuses, or that is longer than 1024 bytes or no text; and what the input refuses.
pub fn read(
    mut input: impl BufRead,
    mut take: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), Unread> {
    let mut text = Vec::new();
    for line in 1.. {
        text.clear();
        let mut limited = (&mut input).take(LONGEST_LINE as u64 + 1);
        let read = limited.read_until(b'\n', &mut text);
        if read.map_err(Unread::System)? == 0 {
            break;
        }
        let wrong = |wrong| Unread::Line(WrongLine { line, wrong });
        if text.len() > LONGEST_LINE {
            return Err(wrong(format!("it has more than {LONGEST_LINE} bytes")));
        }
        let text = std::str::from_utf8(&text).map_err(|_| wrong("it is no text".to_owned()))?;
        let text = text.split('#').next().unwrap_or_default().trim();
        if !text.is_empty() {
            take(text).map_err(wrong)?;
        }
    }
    Ok(())
}

/// A number as decimal digits, called `name` where it is none.
///
/// # Errors
/// It is none, or too large, in words.
pub fn integer<T: std::str::FromStr>(text: &str, name: &str) -> Result<T, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|_| digits)
        .ok_or_else(|| match digits {
            true => format!("{name} {} is too large", short(text)),
            false => format!("{name} {:?} is no number", &*short(text)),
        })
}

/// So much of foreign text as an error shows.
pub fn short(text: &str) -> Cow<'_, str> {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => printable(&text[..end]),
        None => printable(text),
    }
}
