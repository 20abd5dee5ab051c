//! Errors that point at the text they are about.
//!
//! Invariant: a [`Place`] always shows a line that exists in the source, and
//! its mark lies within that line or directly behind its end.

use std::fmt;
use std::ops::Range;

/// Why a text is not a heap. `Display` gives several lines: where and what,
/// the line in question with a mark under it, and a remedy if one is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong, in one line.
    pub message: String,
    /// Where, unless the whole file is the matter (it cannot be read).
    pub place: Option<Place>,
    /// What to write instead.
    pub help: Option<String>,
}

/// A place in a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// File name, or the words that say where the text came from.
    pub source: String,
    /// Line, counted from one.
    pub line: usize,
    /// Column in characters, counted from one.
    pub column: usize,
    /// The line itself.
    pub text: String,
    /// Characters to mark, at least one.
    pub width: usize,
}

impl Error {
    /// The error in one line, for places where several would disturb.
    pub fn one_line(&self) -> String {
        let mut line = match &self.place {
            Some(Place {
                source,
                line,
                column,
                ..
            }) => format!("{source}:{line}:{column}: {}", self.message),
            None => self.message.clone(),
        };
        if let Some(help) = &self.help {
            line.push_str(" (");
            line.push_str(help);
            line.push(')');
        }
        line
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = &self.place else {
            f.write_str(&self.message)?;
            return match &self.help {
                Some(help) => write!(f, " ({help})"),
                None => Ok(()),
            };
        };
        let number = place.line.to_string();
        let margin = " ".repeat(number.len());
        let indent: String = place
            .text
            .chars()
            .take(place.column - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let mark = "^".repeat(place.width);
        let (source, column) = (&place.source, place.column);
        writeln!(f, "{source}:{number}:{column}: {}", self.message)?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {}", place.text)?;
        write!(f, "{margin} | {indent}{mark}")?;
        match &self.help {
            Some(help) => write!(f, " {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// A text and where it came from, for errors that point into it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// What errors call it.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

impl Source<'_> {
    /// An error about the bytes `at` of the text.
    pub fn error(
        &self,
        at: Range<usize>,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Error {
        let start = self.boundary(at.start);
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = self.text[start..]
            .find('\n')
            .map_or(self.text.len(), |newline| start + newline);
        let end = self.boundary(at.end).clamp(start, line_end);
        Error {
            message: message.into(),
            place: Some(Place {
                source: self.name.to_owned(),
                line: before.matches('\n').count() + 1,
                column: self.text[line_start..start].chars().count() + 1,
                text: self.text[line_start..line_end]
                    .trim_end_matches('\r')
                    .to_owned(),
                width: self.text[start..end].chars().count().max(1),
            }),
            help,
        }
    }

    /// The last character boundary at or before `index`.
    fn boundary(&self, index: usize) -> usize {
        let mut index = index.min(self.text.len());
        while !self.text.is_char_boundary(index) {
            index -= 1;
        }
        index
    }
}

/// "did you mean …" for a word that is none of `known`, or the list of them.
pub fn suggest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let known: Vec<&str> = known.into_iter().collect();
    // A word of more than this was not mistyped from any of ours.
    let short: String = word.chars().take(64).collect();
    let lower = short.to_lowercase().replace('_', "-");
    let nearest = known
        .iter()
        .map(|&name| (strsim::jaro_winkler(&lower, &name.replace('_', "-")), name))
        .max_by(|first, second| first.0.total_cmp(&second.0));
    match nearest {
        Some((likeness, name)) if likeness > 0.8 => Some(format!("did you mean `{name}`?")),
        Some(_) => Some(format!("known here: {}", known.join(", "))),
        None => None,
    }
}
