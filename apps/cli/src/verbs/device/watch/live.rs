//! The live picture in a terminal.
//!
//! Invariant: however it ends (the heap, q, Ctrl-C, a signal, an error, a panic), the terminal is
//! left as it was found.

use std::io::{self, Write, stdout};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use crossterm::terminal::{self, BeginSynchronizedUpdate, EndSynchronizedUpdate};
use crossterm::{cursor, execute, queue};
use metes_watch::{Screen, Watcher, picture};

use crate::error::Failure;
use crate::{interrupt, output};

/// What a terminal has that does not say how large it is.
const USUAL: (u16, u16) = (80, 24);

/// The terminal, or what one usually is.
pub(super) fn screen() -> Screen {
    let (width, height) = terminal::size()
        .ok()
        .filter(|(width, height)| *width > 0 && *height > 0)
        .unwrap_or(USUAL);
    Screen {
        width: width.into(),
        height: height.into(),
        unicode: unicode(),
    }
}

/// Whether the locale is one of UTF-8.
fn unicode() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(std::env::var_os)
        .find(|value| !value.is_empty());
    set.is_some_and(|value| {
        let value = value.to_string_lossy().to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// A terminal that shows the picture and nothing else, until it is dropped.
struct Taken;

impl Taken {
    fn new() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let taken = Taken;
        execute!(stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // A terminal that is gone has nothing to be restored.
        let _ = execute!(stdout(), cursor::Show, terminal::LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

pub(super) fn run(watcher: &mut Watcher, every: Duration) -> Result<u8, Failure> {
    let stop = interrupt::flag()?;
    let refused = |error| Failure::io("draw on", Path::new("the terminal"), error);
    let taken = Taken::new().map_err(refused)?;
    let last = loop {
        let began = Instant::now();
        let screen = screen();
        let view = watcher.look(screen.cells())?;
        if view.process.ended {
            break Some(view);
        }
        draw(&picture(&view, screen)).map_err(refused)?;
        if stop.load(Ordering::Relaxed) || left(&stop, began, every).map_err(refused)? {
            break None;
        }
    };
    drop(taken);
    if let Some(view) = last {
        // It stays on the screen behind the end.
        output::text(&picture(&view, screen()))?;
    }
    Ok(0)
}

/// Writes a picture over the one before, at once.
fn draw(picture: &str) -> io::Result<()> {
    let mut frame = Vec::new();
    // The escape sequences of the frame itself are wanted where colours are not.
    let plain = anstream::AutoStream::choice(&stdout()) == anstream::ColorChoice::Never;
    let stripped = plain.then(|| anstream::adapter::strip_str(picture).to_string());
    let picture = stripped.as_deref().unwrap_or(picture);
    queue!(frame, BeginSynchronizedUpdate, cursor::MoveTo(0, 0))?;
    let mut lines = picture.lines().peekable();
    while let Some(line) = lines.next() {
        frame.extend_from_slice(line.as_bytes());
        queue!(frame, terminal::Clear(terminal::ClearType::UntilNewLine))?;
        if lines.peek().is_some() {
            frame.extend_from_slice(b"\r\n");
        }
    }
    queue!(
        frame,
        terminal::Clear(terminal::ClearType::FromCursorDown),
        EndSynchronizedUpdate
    )?;
    let mut out = stdout().lock();
    out.write_all(&frame)?;
    out.flush()
}

/// Waits for the next look; whether the user has seen enough. A new size is drawn at once.
fn left(stop: &std::sync::atomic::AtomicBool, began: Instant, every: Duration) -> io::Result<bool> {
    loop {
        let rest = every.saturating_sub(began.elapsed());
        // Signals set a flag only.
        if event::poll(rest.min(Duration::from_millis(100)))? {
            match event::read()? {
                Event::Key(KeyEvent {
                    code, modifiers, ..
                }) if ends(code, modifiers) => return Ok(true),
                Event::Resize(..) => return Ok(false),
                _ => {}
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(true);
        }
        if began.elapsed() >= every {
            return Ok(false);
        }
    }
}

fn ends(code: KeyCode, modifiers: KeyModifiers) -> bool {
    match code {
        KeyCode::Char('q') | KeyCode::Esc => true,
        KeyCode::Char('c') => modifiers.contains(KeyModifiers::CONTROL),
        _ => false,
    }
}
