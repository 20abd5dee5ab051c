//! Signals that ask Metes to end: SIGINT (Ctrl-C), SIGTERM and SIGHUP.
//!
//! While a program runs, they are the program's. What the terminal sends
//! reaches it by itself; what was sent to this process alone is passed on, and
//! the second time the program is killed. While none runs, the first signal
//! ends the search under way, whose results are kept, and the second one this
//! process.
//!
//! Invariant: whichever signal ends this process, it leaves no program running
//! and no temporary directory. What SIGKILL leaves, the next Metes removes.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use metes_trace::private;
use metes_trace::record::run::pass_on;
use signal_hook::consts::{SIGHUP, SIGINT, SIGKILL, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;
use signal_hook::low_level;

use crate::error::Failure;

/// What a signal is sent again within, is the same request: `timeout` sends it
/// to the process and to its group.
const ONCE: Duration = Duration::from_secs(1);

/// How long a program has that was asked to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was asked of this process.
struct Asked {
    /// Set by the first signal while no program runs.
    stop: Arc<AtomicBool>,
    /// Somebody looks at `stop`.
    heeded: AtomicBool,
    /// Whom to wake when `stop` is set.
    waiting: Mutex<Vec<Waker>>,
    /// The SIGTERM or SIGHUP that was met, or 0.
    end: AtomicI32,
    /// The signals met, by bit.
    met: AtomicU64,
}

static ASKED: OnceLock<Asked> = OnceLock::new();

/// Takes the signals from now on. While neither a program runs nor
/// [`flag`] was asked for, the first one ends this process.
pub(crate) fn begin() -> Result<(), Failure> {
    if ASKED.get().is_some() {
        return Ok(());
    }
    let refused =
        |error| Failure::input(format!("the system gives no handler for signals: {error}"));
    // What a parent had ignored (nohup) stays ignored.
    let signals = [SIGINT, SIGTERM, SIGHUP].into_iter();
    let signals = signals.filter(|&signal| !is_ignored(signal));
    let taken = SignalsInfo::<WithRawSiginfo>::new(signals).map_err(refused)?;
    let asked = ASKED.get_or_init(|| Asked {
        stop: Arc::default(),
        heeded: AtomicBool::new(false),
        waiting: Mutex::default(),
        end: AtomicI32::new(0),
        met: AtomicU64::new(0),
    });
    let thread = std::thread::Builder::new().name("signals".to_owned());
    let thread = thread.spawn(move || heed(taken, asked));
    thread.map(drop).map_err(refused)
}

/// A flag that the first signal sets. From now on that one does not end this
/// process.
pub(crate) fn flag() -> Result<Arc<AtomicBool>, Failure> {
    Ok(Arc::clone(&heeded()?.stop))
}

/// What is ready once the first signal has come. That is one from now on, before it is waited for,
/// too: a server calls this before it says that it listens.
pub(crate) fn ended() -> Result<impl Future<Output = ()> + Send + 'static, Failure> {
    let asked = heeded()?;
    Ok(poll_fn(move |context| {
        let mut waiting = asked.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.stop.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        waiting.push(context.waker().clone());
        Poll::Pending
    }))
}

/// Takes the signals from now on, the first one for `stop`.
fn heeded() -> Result<&'static Asked, Failure> {
    begin()?;
    let asked = ASKED
        .get()
        .ok_or_else(|| Failure::input("no signals are taken"))?;
    asked.heeded.store(true, Ordering::Relaxed);
    Ok(asked)
}

/// Calls `act` whenever `signal` comes, from a thread of its own. Not for the signals that end this process.
pub(crate) fn on(signal: i32, mut act: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    let refused =
        |error| Failure::input(format!("the system gives no handler for signals: {error}"));
    let mut taken = signal_hook::iterator::Signals::new([signal]).map_err(refused)?;
    let thread = std::thread::Builder::new().name("signal".to_owned());
    let acts = move || {
        for _ in taken.forever() {
            act();
        }
    };
    thread.spawn(acts).map(drop).map_err(refused)
}

/// When so much time has passed, asks the programs under way to end, by SIGTERM, and ends them if they have not within ten
/// seconds more.
pub(crate) fn end_after(time: Duration) -> Result<(), Failure> {
    begin()?;
    let asks = move || {
        for (wait, signal) in [(time, SIGTERM), (PATIENCE, SIGKILL)] {
            std::thread::sleep(wait);
            if let Some(asked) = ASKED.get() {
                asked.met.fetch_or(bit(signal), Ordering::Relaxed);
            }
            pass_on(signal);
        }
    };
    let thread = std::thread::Builder::new().name("time".to_owned());
    let thread = thread.spawn(asks).map(drop);
    thread.map_err(|error| Failure::input(format!("the system gives no thread: {error}")))
}

/// The signal by which this process was asked to end, other than by Ctrl-C,
/// which is about what just runs.
pub(crate) fn asked_to_end() -> Option<i32> {
    let signal = ASKED.get()?.end.load(Ordering::Relaxed);
    (signal != 0).then_some(signal)
}

/// Whether `signal` was met: a program that it ended did not fail.
pub(crate) fn was_met(signal: i32) -> bool {
    let met = ASKED.get().map(|asked| asked.met.load(Ordering::Relaxed));
    met.is_some_and(|met| met & bit(signal) != 0)
}

/// The exit status of a process that `signal` ended, as a shell reports it.
pub(crate) fn status_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

fn bit(signal: i32) -> u64 {
    1 << (signal & 63)
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero bytes are a valid value of this plain structure.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only asks; the place for the answer is valid.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}

/// Acts on each signal.
fn heed(mut signals: SignalsInfo<WithRawSiginfo>, asked: &Asked) {
    let mut last: Option<(i32, Instant)> = None;
    for signal in signals.forever() {
        let (number, by_terminal) = (signal.si_signo, signal.si_code == libc::SI_KERNEL);
        asked.met.fetch_or(bit(number), Ordering::Relaxed);
        if number != SIGINT {
            asked.end.store(number, Ordering::Relaxed);
        }
        let again = last.is_some_and(|(same, at)| same == number && at.elapsed() < ONCE);
        if again && !by_terminal {
            continue;
        }
        // Signal 0 only counts.
        let runs = pass_on(0) > 0;
        if runs && by_terminal {
            continue;
        }
        let second = last.is_some();
        last = Some((number, Instant::now()));
        match (runs, second) {
            // To many it means to read their configuration again.
            (true, _) if number == SIGHUP => drop(pass_on(number)),
            (true, true) => drop(pass_on(SIGKILL)),
            (true, false) => drop(pass_on(number)),
            (false, false) if asked.heeded.load(Ordering::Relaxed) => {
                let mut waiting = asked.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                asked.stop.store(true, Ordering::Relaxed);
                waiting.drain(..).for_each(Waker::wake);
            }
            (false, _) => {
                private::remove_all();
                low_level::exit(i32::from(status_of(number)));
            }
        }
    }
}
