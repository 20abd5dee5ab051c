//! Keys and values of one table, or of one spec, taken out one by one.
//!
//! Invariant: every key is either taken by the code that knows it or reported
//! by [`Fields::finish`]; none is passed over in silence.

use std::ops::Range;

use metes_heap::compact::Kappa;
use metes_heap::mapped::THRESHOLD;

use crate::MAPPED;
use crate::error::{Error, Source, suggest};
use crate::pages::{self, Pages};
use crate::quantity::{read_percent, read_size};

/// A scalar, or the name of what stands in its place.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Integer(i128),
    Float(f64),
    Text(String),
    Other(&'static str),
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) key: String,
    pub(crate) key_at: Range<usize>,
    pub(crate) value: Value,
    pub(crate) at: Range<usize>,
}

/// The fields of one table.
pub(crate) struct Fields<'a> {
    source: Source<'a>,
    fields: Vec<Field>,
    /// What the table is, for messages: "a dedicated pool".
    what: String,
    /// The table as a whole, for what is missing.
    at: Range<usize>,
    known: Vec<&'static str>,
}

/// A value and where it stands.
pub(crate) type Found<T> = Result<Option<(T, Range<usize>)>, Error>;

impl<'a> Fields<'a> {
    pub(crate) fn new(
        source: Source<'a>,
        what: impl Into<String>,
        at: Range<usize>,
        fields: Vec<Field>,
    ) -> Self {
        Fields {
            source,
            fields,
            what: what.into(),
            at,
            known: Vec::new(),
        }
    }

    /// Says better what the table is, once that is known.
    pub(crate) fn call(&mut self, what: impl Into<String>) {
        self.what = what.into();
    }

    /// An error about a value.
    pub(crate) fn error(&self, at: Range<usize>, message: impl Into<String>) -> Error {
        self.source.error(at, message, None)
    }

    /// An error about a value that is none of the known words.
    pub(crate) fn no_such<'k>(
        &self,
        at: Range<usize>,
        message: impl Into<String>,
        word: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> Error {
        self.source.error(at, message, suggest(word, known))
    }

    /// An error about something that the table lacks.
    pub(crate) fn missing(&self, message: &str) -> Error {
        self.error(self.at.clone(), message)
    }

    /// Where the table begins.
    pub(crate) fn at(&self) -> Range<usize> {
        self.at.clone()
    }

    fn take(&mut self, key: &'static str) -> Option<Field> {
        self.known.push(key);
        let index = self.fields.iter().position(|field| field.key == key)?;
        Some(self.fields.remove(index))
    }

    /// Where a key stands that is not wanted, whatever its value.
    pub(crate) fn unwanted(&self, key: &str) -> Option<Range<usize>> {
        let field = self.fields.iter().find(|field| field.key == key)?;
        Some(field.key_at.clone())
    }

    fn wrong(&self, field: &Field, wanted: &str) -> Error {
        let got = match &field.value {
            Value::Integer(number) => format!("the number {number}"),
            Value::Float(number) => format!("the number {number}"),
            Value::Text(text) => format!("`{text}`"),
            Value::Other(kind) => format!("a value of type {kind}"),
        };
        self.error(
            field.at.clone(),
            format!("`{}` must be {wanted}, not {got}", field.key),
        )
    }

    /// A word.
    pub(crate) fn text(&mut self, key: &'static str) -> Found<String> {
        match self.take(key) {
            None => Ok(None),
            Some(Field {
                value: Value::Text(text),
                at,
                ..
            }) => Ok(Some((text, at))),
            Some(field) => Err(self.wrong(&field, "a string")),
        }
    }

    /// One of some words, each standing for a value.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Found<T> {
        let Some((word, at)) = self.text(key)? else {
            return Ok(None);
        };
        match choices.iter().find(|(name, _)| *name == word) {
            Some(&(_, value)) => Ok(Some((value, at))),
            None => {
                let names = choices.iter().map(|(name, _)| *name);
                Err(self.no_such(at, format!("`{key}` cannot be `{word}`"), &word, names))
            }
        }
    }

    /// A size in bytes, or one of some words that stand for sizes.
    pub(crate) fn size(&mut self, key: &'static str, words: &[(&str, usize)]) -> Found<usize> {
        let Some(field) = self.take(key) else {
            return Ok(None);
        };
        let size = match &field.value {
            Value::Integer(number) => usize::try_from(*number)
                .map_err(|_| self.wrong(&field, "a size in bytes that a machine word can hold"))?,
            Value::Text(text) => match words.iter().find(|(word, _)| word == text) {
                Some(&(_, size)) => size,
                None => read_size(text).map_err(|why| self.error(field.at.clone(), why))?,
            },
            _ => return Err(self.wrong(&field, "a size: bytes, or a string as \"64 KiB\"")),
        };
        Ok(Some((size, field.at)))
    }

    /// A whole number between `least` and `most`.
    pub(crate) fn number(&mut self, key: &'static str, least: u32, most: u32) -> Found<u32> {
        let Some(field) = self.take(key) else {
            return Ok(None);
        };
        let number = match &field.value {
            Value::Integer(number) => u32::try_from(*number).ok(),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some((number, field.at))),
            None => Err(self.wrong(&field, &format!("a whole number from {least} to {most}"))),
        }
    }

    /// A percentage, at least `least` and at most `most`.
    pub(crate) fn percent(&mut self, key: &'static str, least: u32, most: u32) -> Found<u32> {
        let Some(field) = self.take(key) else {
            return Ok(None);
        };
        let percent = match &field.value {
            Value::Integer(number) => u32::try_from(*number).ok(),
            Value::Text(text) => {
                Some(read_percent(text).map_err(|why| self.error(field.at.clone(), why))?)
            }
            _ => None,
        };
        match percent.filter(|percent| (least..=most).contains(percent)) {
            Some(percent) => Ok(Some((percent, field.at))),
            None if most == u32::MAX => {
                Err(self.wrong(&field, &format!("a percentage of at least {least}")))
            }
            None => Err(self.wrong(&field, &format!("a percentage from {least} to {most}"))),
        }
    }

    /// A decimal fraction with at most three places, in thousandths.
    pub(crate) fn thousandths(&mut self, key: &'static str) -> Found<u32> {
        let Some(field) = self.take(key) else {
            return Ok(None);
        };
        let number = match &field.value {
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            Value::Text(text) => text.trim().parse().ok(),
            Value::Other(_) => None,
        };
        let thousandths = number.map(|number| number * 1000.0);
        let whole =
            |number: &f64| (0.0..=1e6).contains(number) && (number - number.round()).abs() < 1e-6;
        match thousandths.filter(whole) {
            Some(number) => Ok(Some((number.round() as u32, field.at))),
            None => Err(self.wrong(&field, "a number up to 1000 with three decimal places")),
        }
    }

    /// The partial compaction bound of compact-fit.
    pub(crate) fn kappa(&mut self, key: &'static str) -> Found<Kappa> {
        let Some((word, at)) = self.word_or_number(key)? else {
            return Ok(None);
        };
        match (word.as_str(), word.parse()) {
            ("inf", _) => Ok(Some((Kappa::Infinite, at))),
            (_, Ok(limit)) if limit < u32::MAX => Ok(Some((Kappa::Finite(limit), at))),
            _ => Err(self.error(
                at,
                format!("`{key}` must be a number or `inf`, not `{word}`"),
            )),
        }
    }

    /// From what size on blocks are mapped; `no`: none is.
    fn mapped(&mut self) -> Found<Option<usize>> {
        match self.size("mapped", &[("no", 0)])? {
            None => Ok(None),
            Some((0, at)) => Ok(Some((None, at))),
            Some((size, at)) if MAPPED.contains(&size) => Ok(Some((Some(size), at))),
            Some((_, at)) => {
                Err(self.error(at, "`mapped` must be a size from 4 KiB to 1 GiB, or `no`"))
            }
        }
    }

    /// What becomes of the pages of mapped blocks.
    pub(crate) fn pages(&mut self) -> Found<Pages> {
        let Some((word, at)) = self.text("pages")? else {
            return Ok(None);
        };
        match Pages::read(&word).map_err(|why| self.error(at.clone(), why))? {
            Some(pages) => Ok(Some((pages, at))),
            None => Err(self.no_such(
                at,
                format!("`pages` cannot be `{word}`"),
                &word,
                pages::WORDS,
            )),
        }
    }

    /// What is said of mapped blocks: from what size on they are, what becomes of their pages, and where
    /// the one or the other is said. Who says something of their pages says that there are some.
    pub(crate) fn mappings(&mut self) -> Found<(Option<usize>, Option<Pages>)> {
        let (mapped, pages) = (self.mapped()?, self.pages()?);
        Ok(match (mapped, pages) {
            (Some((None, _)), Some((_, at))) => {
                let message = "`pages` says what becomes of the pages of mapped blocks, and none is mapped: \
                               leave it out, or give `mapped` a size";
                return Err(self.error(at, message));
            }
            (Some((mapped, at)), pages) => Some(((mapped, pages.map(|(pages, _)| pages)), at)),
            (None, Some((pages, at))) => Some(((Some(THRESHOLD), Some(pages)), at)),
            (None, None) => None,
        })
    }

    /// A finite number that is not negative.
    pub(crate) fn quantity(&mut self, key: &'static str) -> Result<Option<f64>, Error> {
        let Some(field) = self.take(key) else {
            return Ok(None);
        };
        let number = match field.value {
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            _ => f64::NAN,
        };
        if number.is_finite() && number >= 0.0 {
            Ok(Some(number))
        } else {
            Err(self.wrong(&field, "a number that is not negative"))
        }
    }

    /// A word, or a number in words.
    pub(crate) fn word_or_number(&mut self, key: &'static str) -> Found<String> {
        match self.take(key) {
            None => Ok(None),
            Some(Field {
                value: Value::Text(text),
                at,
                ..
            }) => Ok(Some((text, at))),
            Some(Field {
                value: Value::Integer(number),
                at,
                ..
            }) => Ok(Some((number.to_string(), at))),
            Some(field) => Err(self.wrong(&field, "a name or a number")),
        }
    }

    /// Reports the first key that nothing has taken.
    pub(crate) fn finish(self) -> Result<(), Error> {
        let Some(field) = self.fields.iter().min_by_key(|field| field.key_at.start) else {
            return Ok(());
        };
        let message = format!("{} has no key `{}`", self.what, field.key);
        let help = suggest(&field.key, self.known.iter().copied());
        Err(self.source.error(field.key_at.clone(), message, help))
    }
}
