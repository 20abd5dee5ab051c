//! A file with one command a line: the runs of a test suite.
//!
//! A line is split into words as a shell does it, with quotes and backslashes; `< FILE` at its end gives the
//! command that file as its input, else it has none. `#` begins a remark. Nothing else of a shell is known: what
//! needs more is written `sh -c '…'`.
//!
//! Invariant: what a shell would do otherwise with a line is refused, never done by half.

use std::ffi::OsString;
use std::path::PathBuf;

/// A command of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its line, from one.
    pub line: usize,
    /// As it is written.
    pub text: String,
    /// Program and arguments: at least one.
    pub words: Vec<OsString>,
    /// What it reads; nothing where none is given.
    pub input: Option<PathBuf>,
}

/// Why a line is no command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct CommandError {
    /// The line, from one; 0: the file as a whole.
    pub line: usize,
    /// What is wrong, and what to do.
    pub why: String,
}

/// Most commands of a file.
const MOST: usize = 100_000;

/// A word, and whether any of it stood in quotes.
#[derive(Default)]
struct Word {
    text: String,
    quoted: bool,
    begun: bool,
}

/// Reads commands. O(characters).
///
/// # Errors
/// [`CommandError`] for the first line that is none.
pub fn commands(text: &str) -> Result<Vec<Command>, CommandError> {
    let mut found = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let line = index + 1;
        let wrong = |why: String| CommandError { line, why };
        if let Some(command) = command(line, text).map_err(wrong)? {
            if found.len() == MOST {
                return Err(wrong(format!("a file has at most {MOST} commands")));
            }
            found.push(command);
        }
    }
    Ok(found)
}

fn command(line: usize, text: &str) -> Result<Option<Command>, String> {
    let words = split(text)?;
    let mut command = Command {
        line,
        text: text.trim().to_owned(),
        words: Vec::new(),
        input: None,
    };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word.quoted || !word.text.starts_with('<') {
            command.words.push(word.text.into());
            continue;
        }
        let file = match word.text.strip_prefix('<') {
            Some("") => words.next().map(|word| word.text).unwrap_or_default(),
            rest => rest.unwrap_or_default().to_owned(),
        };
        if file.is_empty() || file.starts_with('<') || command.input.is_some() {
            return Err("`<` is followed by one file, once".to_owned());
        }
        command.input = Some(file.into());
    }
    match (command.words.is_empty(), &command.input) {
        (true, None) => Ok(None),
        (true, Some(_)) => Err("an input without a command".to_owned()),
        (false, _) => Ok(Some(command)),
    }
}

/// The words of a line.
fn split(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut word = Word::default();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' => {
                (word.quoted, word.begun) = (true, true);
                loop {
                    match characters.next() {
                        Some('\'') => break,
                        Some(character) => word.text.push(character),
                        None => return Err("a quote `'` is not closed".to_owned()),
                    }
                }
            }
            '"' => {
                (word.quoted, word.begun) = (true, true);
                loop {
                    match characters.next() {
                        Some('"') => break,
                        Some('\\') => match characters.next() {
                            Some(next @ ('"' | '\\' | '$' | '`')) => word.text.push(next),
                            Some(next) => word.text.extend(['\\', next]),
                            None => return Err("a quote `\"` is not closed".to_owned()),
                        },
                        Some(own @ ('$' | '`')) => return Err(expands(own)),
                        Some(character) => word.text.push(character),
                        None => return Err("a quote `\"` is not closed".to_owned()),
                    }
                }
            }
            '\\' => {
                let next = characters
                    .next()
                    .ok_or("a line does not go on behind `\\`")?;
                (word.quoted, word.begun) = (true, true);
                word.text.push(next);
            }
            '#' if !word.begun => break,
            character if character.is_whitespace() => {
                if word.begun {
                    words.push(std::mem::take(&mut word));
                }
            }
            '|' | '&' | ';' | '>' | '(' | ')' | '$' | '`' | '*' | '?' | '[' | '~' => {
                return Err(expands(character));
            }
            // It ends a word as a blank does.
            '<' if word.begun => {
                words.push(std::mem::take(&mut word));
                (word.text, word.begun) = ("<".to_owned(), true);
            }
            character => {
                word.begun = true;
                word.text.push(character);
            }
        }
    }
    if word.begun {
        words.push(word);
    }
    Ok(words)
}

fn expands(character: char) -> String {
    format!("`{character}` is for a shell: quote it, or write sh -c '…'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(line: &str) -> Vec<String> {
        let found = commands(line).unwrap();
        let words = found[0].words.iter();
        words
            .map(|word| word.to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_line_is_split_as_a_shell_splits_it() {
        assert_eq!(words("sort  -n a"), ["sort", "-n", "a"]);
        assert_eq!(
            words(r#"a 'b c'd "e \" f" g\ h '' # i"#),
            ["a", "b cd", "e \" f", "g h", ""]
        );
        assert_eq!(words("a b#c '#d'"), ["a", "b#c", "#d"]);
        assert_eq!(
            words("sqlite3 db '<' \"select 1;\""),
            ["sqlite3", "db", "<", "select 1;"]
        );
        for line in ["cat <x.sql", "cat < x.sql", "cat<x.sql", "< x.sql cat"] {
            let found = &commands(line).unwrap()[0];
            assert_eq!(found.words, ["cat"], "{line}");
            assert_eq!(found.input.as_deref(), Some("x.sql".as_ref()), "{line}");
        }
        let found = commands("# nothing\n\n  a\nb\n").unwrap();
        let lines: Vec<usize> = found.iter().map(|one| one.line).collect();
        assert_eq!(lines, [3, 4]);
    }

    #[test]
    fn what_only_a_shell_can_do_is_refused_by_its_line() {
        for line in [
            "a | b",
            "a > b",
            "a && b",
            "a; b",
            "a $HOME",
            "a *.c",
            "a ~",
            "a `b`",
            "a \"$b\"",
            "a 'b",
            "a \"b",
            "a \\",
            "a <",
            "a << b",
            "a < b < c",
            "< b",
            "(a)",
            "a ?",
            "a [b]",
        ] {
            let error = commands(&format!("good\n{line}\n")).unwrap_err();
            assert_eq!(error.line, 2, "{line}: {error}");
        }
    }

    proptest! {
        #[test]
        fn quoted_words_come_back(given in prop::collection::vec("[^\n\r']{0,12}", 1..6)) {
            let line: Vec<String> = given.iter().map(|word| format!("'{word}'")).collect();
            let lines = line.join(" ");
            // Some characters end lines, too.
            prop_assume!(lines.lines().count() == 1);
            prop_assert_eq!(words(&lines), given);
        }

        #[test]
        fn any_text_is_commands_or_refused(text in ".{0,200}") {
            let _ = commands(&text);
        }
    }
}
