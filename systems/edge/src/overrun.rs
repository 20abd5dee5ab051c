//! The end of a budget: one thread that looks at the deadlines of all workers, and ends what is late.
//!
//! A worker says when its invocation must end by writing a number, without a call of the system; so the
//! thread looks by itself, at least twice in the shortest budget that it has heard of, and sleeps until the
//! exact instant once it has seen a deadline. Code looks at its engine's epoch wherever it loops or calls;
//! when that moves, each worker of the engine compares its own deadline with the clock, and goes on if it
//! was not meant.
//!
//! *Invariant:* a deadline that is set before it is due is seen before it is due, or at most [`LEAST`] late.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use crate::clock;
use crate::error::EngineError;
use crate::limits::Options;
use crate::schedule;

/// How long the thread sleeps when nobody has a short budget, and how short its sleep may become.
const MOST: u64 = 10_000_000;
/// See [`MOST`].
const LEAST: u64 = 25_000;
/// How long before a deadline the thread wakes on a processor of its own.
const EARLY: u64 = 25_000;
/// No deadline.
const NEVER: u64 = u64::MAX;

/// When the invocation of one worker must end.
#[derive(Debug)]
pub(crate) struct Alarm(AtomicU64);

impl Alarm {
    /// Sets it, to an instant of the clock.
    pub(crate) fn set(&self, deadline: u64) {
        self.0.store(deadline, Ordering::SeqCst);
    }

    /// Takes it back.
    pub(crate) fn clear(&self) {
        self.0.store(NEVER, Ordering::SeqCst);
    }
}

/// The thread, and what it looks at.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    thread: Thread,
    handle: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    alarms: Mutex<Vec<Weak<Alarm>>>,
    /// How long it sleeps at most.
    pause: AtomicU64,
    /// How long before a deadline it stays awake, as a sleeping thread wakes late.
    early: u64,
    ended: AtomicBool,
    real_time: AtomicBool,
    /// Whether `pause` was given.
    fixed: bool,
    /// What a look took of the processor, the longest of means of [`LOOKS`].
    cost: AtomicU64,
}

/// Looks between two readings of the thread's own time.
const LOOKS: u32 = 32;

impl Watch {
    /// Starts the thread, at a real-time priority where it may have one; `ring` moves all epochs.
    pub(crate) fn start(
        options: &Options,
        ring: impl Fn() + Send + 'static,
    ) -> Result<Watch, EngineError> {
        let shared = Arc::new(Shared {
            alarms: Mutex::default(),
            pause: AtomicU64::new(options.look.map_or(MOST, clock::nanoseconds)),
            fixed: options.look.is_some(),
            cost: AtomicU64::new(0),
            // Where it may have a processor to itself it takes nothing from a worker by that.
            early: if options.housekeeping.is_empty() {
                0
            } else {
                EARLY
            },
            ended: AtomicBool::new(false),
            real_time: AtomicBool::new(false),
        });
        let name = "metes-overrun";
        let seen = shared.clone();
        let (priority, processors) = (options.deadline_priority, options.housekeeping.clone());
        let handle = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                schedule::on(&processors);
                seen.real_time
                    .store(priority.is_some_and(schedule::fifo), Ordering::Relaxed);
                exact_timers();
                seen.watch(ring);
            })
            .map_err(|cause| EngineError::Thread {
                name,
                cause: cause.to_string(),
            })?;
        Ok(Watch {
            shared,
            thread: handle.thread().clone(),
            handle: Some(handle),
        })
    }

    /// An alarm for one more worker.
    pub(crate) fn alarm(&self) -> Arc<Alarm> {
        let alarm = Arc::new(Alarm(AtomicU64::new(NEVER)));
        let mut alarms = self
            .shared
            .alarms
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        alarms.retain(|alarm| alarm.strong_count() > 0);
        alarms.push(Arc::downgrade(&alarm));
        alarm
    }

    /// Has it look often enough for such a budget. A call of the system the first time, nothing after it.
    pub(crate) fn expect(&self, budget: u64) {
        let pause = (budget / 2).clamp(LEAST, MOST);
        if !self.shared.fixed && pause < self.shared.pause.load(Ordering::Relaxed) {
            self.shared.pause.fetch_min(pause, Ordering::Relaxed);
            self.thread.unpark();
        }
    }

    /// Nanoseconds of the processor that a look takes, as far as it is known; none before there were some.
    pub(crate) fn cost(&self) -> Option<u64> {
        match self.shared.cost.load(Ordering::Relaxed) {
            0 => None,
            cost => Some(cost),
        }
    }

    /// Whether the thread has its real-time priority.
    pub(crate) fn real_time(&self) -> bool {
        self.shared.real_time.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.thread.unpark();
        if let Some(handle) = self.handle.take() {
            // A thread that panicked has nothing to say that was not said.
            let _ = handle.join();
        }
    }
}

impl Shared {
    fn watch(&self, ring: impl Fn()) {
        let (mut looks, mut before) = (0, clock::processor());
        while !self.ended.load(Ordering::SeqCst) {
            looks += 1;
            if looks == LOOKS {
                let used = clock::processor();
                let mean = (used - before) / u64::from(LOOKS);
                self.cost.fetch_max(mean.max(1), Ordering::Relaxed);
                (looks, before) = (0, used);
            }
            let now = clock::now();
            let look = now.saturating_add(self.pause.load(Ordering::Relaxed));
            let mut next = NEVER;
            let mut due = false;
            for alarm in self
                .alarms
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .iter()
            {
                let Some(alarm) = alarm.upgrade() else {
                    continue;
                };
                let deadline = alarm.0.load(Ordering::SeqCst);
                if deadline <= now {
                    due = true;
                    // Rung once; the worker sets it anew if it goes on.
                    let _ = alarm.0.compare_exchange(
                        deadline,
                        NEVER,
                        Ordering::SeqCst,
                        Ordering::SeqCst,
                    );
                } else {
                    next = next.min(deadline);
                }
            }
            if due {
                ring();
                continue;
            }
            let wake = next.saturating_sub(self.early).min(look);
            if wake > now {
                thread::park_timeout(Duration::from_nanos(wake - now));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// Has timers of the calling thread expire when asked, not up to 50 µs later.
pub(crate) fn exact_timers() {
    // SAFETY: a number; there is nothing to fail.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}
