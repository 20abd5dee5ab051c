//! Files of page operations, as people write them.
//!
//! One operation a line; `#` begins a comment; empty lines are none.
//!
//! | line | operation |
//! | --- | --- |
//! | `m,START,COUNT,r` or `rw` | make a region, without taking frames |
//! | `u,START` | free the region that begins there |
//! | `r,PAGE` | read a page |
//! | `w,PAGE,VALUE` | write a page |
//!
//! Invariant: a parsed operation has numbers that fit; whether a space allows it, only the space
//! knows. No more of a file is held than its operations and a line.

use std::io::{self, BufRead};

use metes_pages::Rights;
use metes_trace::lines::{self, WrongLine, integer, short};

/// An operation on pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Makes `count` pages from `start` a region.
    Map {
        /// Its first page.
        start: u32,
        /// Its pages, at least one.
        count: u32,
        /// What it allows.
        rights: Rights,
    },
    /// Frees the region that begins at this page.
    Unmap(u32),
    /// Reads this page.
    Read(u32),
    /// Writes this page.
    Write {
        /// The page.
        page: u32,
        /// What is written.
        value: u64,
    },
}

impl std::fmt::Display for Operation {
    /// The line that reads as this operation.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Map {
                start,
                count,
                rights,
            } => {
                let rights = if rights.allow(Rights::READ_WRITE) {
                    "rw"
                } else {
                    "r"
                };
                write!(f, "m,{start},{count},{rights}")
            }
            Self::Unmap(start) => write!(f, "u,{start}"),
            Self::Read(page) => write!(f, "r,{page}"),
            Self::Write { page, value } => write!(f, "w,{page},{value}"),
        }
    }
}

/// A line that is no operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: {wrong}; operations are m,START,COUNT,r or rw; u,START; r,PAGE; w,PAGE,VALUE"
)]
pub struct NoOperation {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub wrong: String,
}

/// Why a file of operations could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// A line is none.
    #[error(transparent)]
    NoOperation(#[from] NoOperation),
    /// The system refuses.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Reads operations, in their order.
///
/// # Errors
/// The first line that is none, and what the input refuses.
pub fn read(input: impl BufRead) -> Result<Vec<Operation>, Unread> {
    let mut operations = Vec::new();
    let read = lines::read(input, |line| {
        operations.push(operation(line)?);
        Ok(())
    });
    match read {
        Ok(()) => Ok(operations),
        Err(lines::Unread::Line(WrongLine { line, wrong })) => {
            Err(NoOperation { line, wrong }.into())
        }
        Err(lines::Unread::System(error)) => Err(error.into()),
    }
}

fn operation(line: &str) -> Result<Operation, String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    match fields[..] {
        ["m", start, count, rights] => {
            let (start, count) = (integer(start, "START")?, integer(count, "COUNT")?);
            if count == 0 {
                return Err("COUNT is 0: a region has at least one page".to_owned());
            }
            let rights = match rights {
                "r" => Rights::READ,
                "rw" => Rights::READ_WRITE,
                other => return Err(format!("{:?} are no rights", &*short(other))),
            };
            Ok(Operation::Map {
                start,
                count,
                rights,
            })
        }
        ["u", start] => Ok(Operation::Unmap(integer(start, "START")?)),
        ["r", page] => Ok(Operation::Read(integer(page, "PAGE")?)),
        ["w", page, value] => Ok(Operation::Write {
            page: integer(page, "PAGE")?,
            value: integer(value, "VALUE")?,
        }),
        ["m" | "u" | "r" | "w", ..] => {
            Err(format!("{:?} has {} fields", &*short(line), fields.len()))
        }
        _ => Err(format!("{:?} is no operation", &*short(line))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read() {
        let text =
            "# a region\nm, 3, 4, rw\n\nw,5,18446744073709551615 # all bits\nr,5\nu,3\nm,0,1,r";
        assert_eq!(
            read(text.as_bytes()).ok(),
            Some(vec![
                Operation::Map {
                    start: 3,
                    count: 4,
                    rights: Rights::READ_WRITE
                },
                Operation::Write {
                    page: 5,
                    value: u64::MAX
                },
                Operation::Read(5),
                Operation::Unmap(3),
                Operation::Map {
                    start: 0,
                    count: 1,
                    rights: Rights::READ
                },
            ])
        );
    }

    fn refused(text: &[u8]) -> NoOperation {
        match read(text) {
            Err(Unread::NoOperation(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_that_are_none_are_named() {
        for (text, wrong) in [
            ("m,0,0,r", "COUNT is 0: a region has at least one page"),
            ("r,1\nm,0,1,x", "\"x\" are no rights"),
            ("u,-1", "START \"-1\" is no number"),
            ("u,+1", "START \"+1\" is no number"),
            ("r,4294967296", "PAGE 4294967296 is too large"),
            ("w,1", "\"w,1\" has 2 fields"),
            ("x", "\"x\" is no operation"),
            ("r,", "PAGE \"\" is no number"),
            (&"r".repeat(2000), "it has more than 1024 bytes"),
        ] {
            assert_eq!(refused(text.as_bytes()).wrong, wrong, "{text}");
        }
        assert_eq!(refused(b"r,1\n#\nx").line, 3);
        assert_eq!(refused(b"r,1\n\xff").wrong, "it is no text");
    }
}
