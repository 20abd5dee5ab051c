//! Text of unknown origin, as it may be shown in a terminal.
//!
//! *Invariant:* what is returned moves no cursor, sets no title, changes no mode of a terminal, and
//! turns no text around; it says where something that would was left out.

use std::borrow::Cow;

/// Stands for a character that is not shown.
const LEFT_OUT: char = '\u{fffd}';

/// Whether a character controls what shows it, instead of being shown.
fn controls(character: char) -> bool {
    // The latter decide in which direction text runs.
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns
}

/// Foreign text on one line: a name, a command, a title. White space becomes spaces, what controls a
/// terminal U+FFFD. Linear.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_plain = |character: char| !controls(character);
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let plain = |character: char| match character {
        character if character.is_whitespace() => ' ',
        character if controls(character) => LEFT_OUT,
        character => character,
    };
    Cow::Owned(text.chars().map(plain).collect())
}

/// What was put together to be shown, in which lines, tabs and styles (`ESC [ … m`) are meant; of
/// foreign text in it no other control remains. Linear.
#[must_use]
pub fn showable(text: &str) -> Cow<'_, str> {
    let is_plain = |character: char| character == '\n' || !controls(character);
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = style(rest).unwrap_or(character.len_utf8());
        let (taken, behind) = rest.split_at(length);
        match character {
            '\n' | '\t' => shown.push(character),
            '\u{1b}' if length > 1 => shown.push_str(taken),
            character if controls(character) => shown.push(LEFT_OUT),
            character => shown.push(character),
        }
        rest = behind;
    }
    Cow::Owned(shown)
}

/// How long the style is that a text begins with.
fn style(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|character: char| !character.is_ascii_digit() && character != ';')?;
    numbers[end..].starts_with('m').then_some(2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_controls_a_terminal_is_left_out() {
        for (text, plain) in [
            ("sqlite3 :memory:", "sqlite3 :memory:"),
            ("\u{1b}]0;owned\u{7}x", "\u{fffd}]0;owned\u{fffd}x"),
            ("\u{1b}[2J\u{1b}[1;1H", "\u{fffd}[2J\u{fffd}[1;1H"),
            ("\u{9b}31m", "\u{fffd}31m"),
            ("a\r\n\tb", "a   b"),
            ("evil\u{202e}gnp.exe", "evil\u{fffd}gnp.exe"),
            ("größe ∞ 名", "größe ∞ 名"),
        ] {
            assert_eq!(printable(text), plain);
        }
    }

    #[test]
    fn lines_and_styles_stay() {
        let styled = "\u{1b}[1;32mgood\u{1b}[0m\tname\n";
        assert_eq!(showable(styled), styled);
        assert_eq!(
            showable("\u{1b}[1mx\u{1b}]2;t\u{7}\u{1b}[5A\u{1b}[31\r\u{1b}"),
            "\u{1b}[1mx\u{fffd}]2;t\u{fffd}\u{fffd}[5A\u{fffd}[31\u{fffd}\u{fffd}"
        );
        assert_eq!(showable("plain\n"), "plain\n");
    }
}
