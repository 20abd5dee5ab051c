//! What can go wrong, and how it is said.
//!
//! Invariant: an error names the cause and, where there is one, the remedy; it
//! is rendered here and nowhere else, to stderr, and the exit status is 2, or
//! that of the signal that ended Metes.

use std::io;
use std::path::Path;

use anstyle::{AnsiColor, Style};

/// Exit status when the thing checked does not hold.
pub(crate) const DOES_NOT_HOLD: u8 = 1;
/// Exit status of bad input.
pub(crate) const BAD_INPUT: u8 = 2;

/// Why a verb could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A heap that is not described well.
    #[error("{0}")]
    Heap(metes_config::Error),
    #[error("{0}")]
    Record(#[from] metes_trace::RecordError),
    #[error("{0}")]
    Trace(#[from] metes_trace::TraceError),
    #[error("{0}")]
    Output(#[from] metes_explore::OutputError),
    #[error("{0}")]
    Space(Box<metes_explore::SpaceError>),
    #[error("{0}")]
    Engine(Box<metes_explore::engine::EngineError>),
    #[error("{0}")]
    Bound(metes_heap::bounds::BoundError),
    #[error("{0}")]
    Energy(#[from] metes_explore::EnergyError),
    #[error("{0}")]
    Worst(#[from] metes_worst::WorstError),
    #[error("{0}")]
    Explorer(#[from] metes_explorer::Error),
    #[error("{0}")]
    Board(#[from] metes_board::Error),
    /// A file or directory that the system does not give.
    #[error("{0}")]
    File(#[from] metes_tune::FileError),
    /// A step of a tuning.
    #[error("{0}")]
    Tune(#[from] metes_tune::Error),
    #[error("program {program} was ended by {signal}; {kept}")]
    Died {
        program: String,
        signal: String,
        kept: String,
    },
    /// A signal asked this process to end, and it did.
    #[error("ended by {}; {kept}", signal_name(*.signal))]
    Ended { signal: i32, kept: String },
    /// Anything else: one sentence with cause and remedy.
    #[error("{0}")]
    Input(String),
}

// Boxed, as they would make every result large.
impl From<metes_explore::SpaceError> for Failure {
    fn from(error: metes_explore::SpaceError) -> Self {
        Failure::Space(Box::new(error))
    }
}

impl From<metes_explore::TermsError> for Failure {
    fn from(error: metes_explore::TermsError) -> Self {
        Failure::input(error.to_string())
    }
}

impl From<metes_explore::engine::EngineError> for Failure {
    fn from(error: metes_explore::engine::EngineError) -> Self {
        Failure::Engine(Box::new(error))
    }
}

impl Failure {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Failure {
        metes_tune::FileError::new(action, path, source).into()
    }

    pub(crate) fn ended(signal: i32, kept: impl Into<String>) -> Failure {
        Failure::Ended {
            signal,
            kept: kept.into(),
        }
    }

    /// The exit status that tells of it.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Ended { signal, .. } => crate::interrupt::status_of(*signal),
            _ => BAD_INPUT,
        }
    }

    pub(crate) fn input(text: impl Into<String>) -> Failure {
        Failure::Input(text.into())
    }
}

/// Says what went wrong.
pub(crate) fn render(failure: &Failure) {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    let mut stderr = anstream::stderr().lock();
    // A closed stderr leaves nobody to tell.
    let said = failure.to_string();
    let lines: Vec<_> = said.lines().map(metes_quantity::printable).collect();
    let said = lines.join("\n");
    let _ = io::Write::write_fmt(&mut stderr, format_args!("{red}metes:{red:#} {said}\n"));
}

/// The name of a signal, as in `SIGSEGV (11)`.
pub(crate) fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        other => return format!("signal {other}"),
    };
    format!("{name} ({signal})")
}
