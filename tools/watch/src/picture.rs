//! A view as lines of text.
//!
//! Invariant: no line is longer than the screen is wide, and there are no more lines than it is
//! high; what has no room is left out from below.

use std::fmt::Write;

use anstyle::{AnsiColor, Color, Style};
use metes_quantity::{bytes, grouped};

use crate::map::{Cell, Fill};
use crate::view::{Point, View};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const POOR: Style = Style::new()
    .bold()
    .fg_color(Some(Color::Ansi(AnsiColor::Yellow)));
const USED: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Cyan)));
const IDLE: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Blue)));
const WAITING: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Magenta)));

/// Lines that are no part of the map.
const OTHERS: usize = 18;

/// Where a picture is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Characters of a line.
    pub width: usize,
    /// Lines.
    pub height: usize,
    /// Whether it shows more than ASCII.
    pub unicode: bool,
}

impl Screen {
    /// Cells that a map has room for.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.width.max(1) * self.height.saturating_sub(OTHERS).clamp(2, 24)
    }
}

/// A piece of a line: its style, and its text.
type Piece = (Style, String);

/// Draws a view. Lines end with a newline, and styles are escape sequences.
#[must_use]
pub fn picture(view: &View, screen: Screen) -> String {
    let mut text = String::new();
    for line in lines(view, screen).into_iter().take(screen.height) {
        let mut room = screen.width;
        for (style, piece) in line {
            let piece: String = piece.chars().take(room).collect();
            room -= piece.chars().count();
            let _ = write!(text, "{style}{piece}{style:#}");
        }
        text.push('\n');
    }
    text
}

fn plain(text: impl Into<String>) -> Piece {
    (Style::new(), text.into())
}

fn lines(view: &View, screen: Screen) -> Vec<Vec<Piece>> {
    let mut lines = vec![title(view), Vec::new()];
    for (name, style, count) in [
        ("used", USED, view.requested),
        ("mapped", IDLE, view.reserved),
    ] {
        let figures = format!(
            " {:>9} of {}, peak {}",
            bytes(count.current),
            bytes(view.cap),
            bytes(count.peak)
        );
        let room = screen.width.saturating_sub(8 + 38).clamp(4, 80);
        let mut line = vec![plain(format!("{name:<8}"))];
        line.extend(bar(count.current, view.cap, room, style, screen));
        line.push(plain(figures));
        lines.push(line);
    }
    lines.push(vec![plain(format!(
        "blocks  {} (peak {}), {} allocations, {} frees",
        grouped(view.blocks.current),
        grouped(view.blocks.peak),
        grouped(view.blocks.added),
        grouped(view.blocks.removed),
    ))]);
    let faults = format!(
        "        {} refused, {} bad frees",
        grouped(view.refusals),
        grouped(view.bad_frees)
    );
    let style = match view.refusals + view.bad_frees {
        0 => Style::new(),
        _ => POOR,
    };
    lines.push(vec![(style, faults)]);
    let pages = &view.pages;
    lines.push(vec![plain(format!(
        "pages   {} in use, {} idle, {} of them waiting for streams, {} spare",
        grouped(pages.live),
        grouped(pages.idle),
        grouped(pages.waiting),
        grouped(pages.spare),
    ))]);
    lines.push(vec![plain(format!(
        "        {} mapped, {} moved, {} at most by one request",
        grouped(pages.mapped),
        grouped(pages.moved),
        grouped(pages.most_moved),
    ))]);
    lines.push(vec![plain(format!(
        "streams {}; {} marks, {} waits, {} orders",
        view.streams,
        grouped(view.marks),
        grouped(view.waits),
        grouped(view.orders),
    ))]);
    let run = bytes(view.largest_free_run);
    lines.push(vec![plain(format!(
        "free    {run} of addresses in the largest run of whole pages"
    ))]);
    lines.push(vec![plain(match view.rates {
        Some(rates) => format!(
            "rates   {:.0} allocations, {:.0} frees, {} a second",
            rates.allocations,
            rates.frees,
            bytes(rates.bytes as u64),
        ),
        None => "rates   not yet known".to_owned(),
    })]);
    lines.push(Vec::new());
    lines.extend(map(view, screen));
    lines.push(Vec::new());
    lines.extend(history(view, screen));
    lines
}

fn title(view: &View) -> Vec<Piece> {
    let state = match (view.process.ended, view.asleep) {
        (true, _) => " has ended",
        (false, true) => " sleeps",
        (false, false) => "",
    };
    vec![
        (BOLD, format!("{} ", view.heap)),
        plain(view.device.clone()),
        (POOR, state.to_owned()),
        (DIM, format!("  {}", view.process.program)),
    ]
}

fn bar(part: u64, whole: u64, room: usize, style: Style, screen: Screen) -> [Piece; 2] {
    let share = part as f64 / whole.max(1) as f64;
    let full = ((share * room as f64).round() as usize).min(room);
    let (on, off) = if screen.unicode {
        ("█", "░")
    } else {
        ("#", ".")
    };
    [(style, on.repeat(full)), (DIM, off.repeat(room - full))]
}

/// What a cell looks like.
fn look(fill: Fill, unicode: bool) -> (Style, char) {
    let (rich, poor) = match fill {
        Fill::Unmapped => ('·', '.'),
        Fill::Idle => ('-', '-'),
        Fill::Waiting => ('~', '~'),
        Fill::Little => ('░', ':'),
        Fill::Half => ('▒', '+'),
        Fill::Much => ('▓', '='),
        Fill::Full => ('█', '#'),
    };
    let style = match fill {
        Fill::Unmapped => DIM,
        Fill::Idle => IDLE,
        Fill::Waiting => WAITING,
        _ => USED,
    };
    (style, if unicode { rich } else { poor })
}

fn map(view: &View, screen: Screen) -> Vec<Vec<Piece>> {
    let first = view.map.first().copied().unwrap_or_default();
    let mut lines = vec![vec![plain(format!(
        "{} of addresses from {:#x} on, a cell is {} of {}",
        bytes(view.addresses),
        view.start,
        match first.pages {
            1 => "a page".to_owned(),
            pages => format!("{pages} pages"),
        },
        bytes(view.page),
    ))]];
    for row in view.map.chunks(screen.width.max(1)) {
        let fill = |cell: &Cell| cell.fill(view.page);
        let runs = row.chunk_by(|cell, next| fill(cell) == fill(next));
        let piece = |run: &[Cell]| {
            let (style, character) = look(fill(&run[0]), screen.unicode);
            (style, character.to_string().repeat(run.len()))
        };
        lines.push(runs.map(piece).collect());
    }
    let mut key = Vec::new();
    for (fill, name) in [
        (Fill::Unmapped, "no memory"),
        (Fill::Idle, "idle"),
        (Fill::Waiting, "waiting"),
        (Fill::Little, "< 1/3"),
        (Fill::Half, "< 2/3"),
        (Fill::Much, "more"),
        (Fill::Full, "full"),
    ] {
        let (style, character) = look(fill, screen.unicode);
        key.push((style, character.to_string()));
        key.push((DIM, format!(" {name}  ")));
    }
    lines.push(key);
    lines
}

fn history(view: &View, screen: Screen) -> Vec<Vec<Piece>> {
    let [first, .., last] = view.history[..] else {
        return Vec::new();
    };
    let room = screen.width.saturating_sub(8).max(1);
    let shown = &view.history[view.history.len().saturating_sub(room)..];
    let from = shown.first().copied().unwrap_or(first);
    let heading = format!("the last {:.0} s, of the cap", last.seconds - from.seconds);
    let line = |name: &str, style, of: fn(&Point) -> u64| {
        let marks = shown
            .iter()
            .map(|point| height(of(point), view.cap, screen));
        vec![plain(format!("{name:<8}")), (style, marks.collect())]
    };
    vec![
        vec![(DIM, heading)],
        line("used", USED, |point| point.used),
        line("mapped", IDLE, |point| point.mapped),
    ]
}

fn height(part: u64, whole: u64, screen: Screen) -> char {
    let marks = match screen.unicode {
        true => ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        false => ['_', '_', '.', '.', '-', '-', '^', '^'],
    };
    let share = part as f64 / whole.max(1) as f64;
    marks[((share * 8.0) as usize).min(7)]
}
