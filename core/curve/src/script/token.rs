//! Words and signs of a script.
//!
//! Invariant: every token knows the line and column at which it begins, both from 1; comments are
//! gone, ends of lines are kept.

use super::{Place, ScriptError};
use crate::number::Rational;

/// Most digits of a number that is written out.
const DIGITS: usize = 1_000;

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Number(Rational),
    Name(String),
    Text(String),
    /// A sign or an operator.
    Sign(&'static str),
    /// End of a line.
    Line,
    /// End of the script.
    End,
}

impl Token {
    /// For errors.
    pub(super) fn shown(&self) -> String {
        match self {
            Token::Number(number) => format!("`{number}`"),
            Token::Name(name) => format!("`{name}`"),
            Token::Text(text) => format!("\"{text}\""),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::Line => "the end of the line".into(),
            Token::End => "the end of the script".into(),
        }
    }
}

/// Longer ones before those that they begin with.
const SIGNS: &[&str] = &[
    ":=", "/\\", "\\/", "*_", "*^", "/_", "/^", "!=", "<=", ">=", "*", "/", "+", "-", "(", ")",
    "[", "]", ",", "=", "<", ">", "~",
];

/// Signs that scripts may be written with instead.
const OTHERS: &[(char, &str)] = &[
    ('∧', "/\\"),
    ('∨', "\\/"),
    ('⊗', "*_"),
    ('⊘', "/_"),
    ('÷', "div"),
];

/// Cuts a script into tokens. Linear.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Place)>, ScriptError> {
    let mut tokens = Vec::new();
    for (line, text) in text.lines().enumerate() {
        let line = line + 1;
        let mut cursor = Cursor {
            rest: text,
            place: Place { line, column: 1 },
        };
        if !text.trim_start().starts_with('>') {
            cursor.line(&mut tokens)?;
        }
        let column = text.chars().count() + 1;
        tokens.push((Token::Line, Place { line, column }));
    }
    let place = Place {
        line: text.lines().count().max(1) + 1,
        column: 1,
    };
    tokens.push((Token::End, place));
    Ok(tokens)
}

/// Where a line is read.
struct Cursor<'a> {
    rest: &'a str,
    place: Place,
}

impl Cursor<'_> {
    fn line(&mut self, tokens: &mut Vec<(Token, Place)>) -> Result<(), ScriptError> {
        loop {
            self.take(|c| c.is_whitespace());
            let Some(first) = self.rest.chars().next() else {
                return Ok(());
            };
            if matches!(first, '%' | '#') || self.rest.starts_with("//") {
                return Ok(());
            }
            let place = self.place;
            let token = match first {
                '0'..='9' => self.number()?,
                '"' => self.text()?,
                'a'..='z' | 'A'..='Z' | '_' => self.name(),
                other => match OTHERS.iter().find(|(sign, _)| *sign == other) {
                    Some((_, "div")) => {
                        self.skip(1);
                        Token::Name("div".into())
                    }
                    Some((_, sign)) => {
                        self.skip(1);
                        Token::Sign(sign)
                    }
                    None => self.sign()?,
                },
            };
            tokens.push((token, place));
        }
    }

    /// Takes so many characters.
    fn skip(&mut self, characters: usize) {
        let bytes: usize = self.rest.chars().take(characters).map(char::len_utf8).sum();
        self.rest = &self.rest[bytes..];
        self.place.column += characters;
    }

    fn take(&mut self, mut is: impl FnMut(char) -> bool) -> String {
        let taken: String = self.rest.chars().take_while(|c| is(*c)).collect();
        self.skip(taken.chars().count());
        taken
    }

    fn number(&mut self) -> Result<Token, ScriptError> {
        let place = self.place;
        let mut digits = self.take(|c| c.is_ascii_digit());
        let decimals = self.rest.strip_prefix('.');
        let mut divisor = String::from("1");
        if decimals.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
            self.skip(1);
            let behind = self.take(|c| c.is_ascii_digit());
            divisor.extend(behind.chars().map(|_| '0'));
            digits += &behind;
        }
        if digits.len() > DIGITS {
            return Err(place.error(format!("the number has more than {DIGITS} digits")));
        }
        let number = format!("{digits}/{divisor}").parse();
        number
            .map(Token::Number)
            .map_err(|error| place.error(format!("{error}")))
    }

    fn text(&mut self) -> Result<Token, ScriptError> {
        let place = self.place;
        self.skip(1);
        let text = self.take(|c| c != '"');
        if self.rest.is_empty() {
            return Err(place.error("the text has no `\"` at its end".into()));
        }
        self.skip(1);
        Ok(Token::Text(text))
    }

    fn name(&mut self) -> Token {
        let mut name = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
        // The only two names with a hyphen.
        if matches!(name.as_str(), "left" | "right") && self.rest.starts_with("-ext") {
            self.skip(4);
            name += "-ext";
        }
        Token::Name(name)
    }

    fn sign(&mut self) -> Result<Token, ScriptError> {
        let found = SIGNS.iter().find(|sign| self.rest.starts_with(**sign));
        let Some(sign) = found else {
            let character = self.rest.chars().next().unwrap_or_default();
            return Err(self.place.error(format!(
                "`{character}` is no sign of the language; comments begin with //, % or #"
            )));
        };
        self.skip(sign.len());
        Ok(Token::Sign(sign))
    }
}
