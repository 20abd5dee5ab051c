//! How long calls take, of one rank and of all.
//!
//! Invariant: what is told of a rank is a list of values and how often they came, at most as long as its part of the window.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use metes_mesh_replay::{Call, Latencies, Latency, Watch};

use crate::heap::sure;
use crate::window::Window;

const KINDS: usize = 5;
/// Different values that two digits of up to [`MOST`] nanoseconds are, and some.
const VALUES: usize = 4500;
/// A longer call counts as this: some minutes.
const MOST: u64 = 1 << 38;
/// Bytes for one kind: how many values, and each with how often it came.
const KIND: u64 = 8 + 16 * VALUES as u64;
/// Bytes for all kinds.
pub(crate) const TIMES: u64 = KINDS as u64 * KIND;

/// Ends this process as by `kill -9`: a rank that dies.
pub fn die() -> ! {
    // SAFETY: a signal to this process, which cannot be held up.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    loop {
        std::hint::spin_loop();
    }
}

/// Sees each call, and for how long.
#[derive(Clone, Debug)]
pub struct Stopwatch {
    first: Instant,
    began: Instant,
    last: Instant,
    kinds: [Histogram<u64>; KINDS],
}

impl Stopwatch {
    /// Begins now.
    pub fn new() -> Stopwatch {
        let now = Instant::now();
        Stopwatch {
            first: now,
            began: now,
            last: now,
            kinds: std::array::from_fn(|_| {
                #[expect(clippy::expect_used, reason = "two digits of that range can be had")]
                Histogram::new_with_bounds(1, MOST, 2).expect("there is such a histogram")
            }),
        }
    }

    /// From the beginning to the end of the last call.
    pub(crate) fn elapsed(&self) -> Duration {
        self.last - self.first
    }

    /// Writes what was seen into a window.
    pub(crate) fn tell(&self, window: &Window, rank: u32, at: u64) {
        for (kind, histogram) in self.kinds.iter().enumerate() {
            let recorded = histogram.iter_recorded().take(VALUES);
            let pairs: Vec<_> = recorded
                .map(|value| [value.value_iterated_to(), value.count_at_value()])
                .collect();
            let words = [pairs.len() as u64]
                .into_iter()
                .chain(pairs.into_iter().flatten());
            let bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
            sure(window.put(rank, at + kind as u64 * KIND, &bytes));
        }
    }

    /// Adds what a rank has told.
    pub(crate) fn hear(&mut self, window: &Window, rank: u32, at: u64) {
        for (kind, histogram) in self.kinds.iter_mut().enumerate() {
            let at = at + kind as u64 * KIND;
            let mut count = [0; 8];
            sure(window.get(rank, at, &mut count));
            let count = u64::from_ne_bytes(count).min(VALUES as u64);
            let mut bytes = vec![0; 16 * count as usize];
            sure(window.get(rank, at + 8, &mut bytes));
            for pair in bytes.chunks_exact(16) {
                let [value, count] = [&pair[..8], &pair[8..]].map(|word| {
                    let mut bytes = [0; 8];
                    bytes.copy_from_slice(word);
                    u64::from_ne_bytes(bytes)
                });
                histogram.saturating_record_n(value, count);
            }
        }
    }

    /// What was seen and heard.
    pub(crate) fn latencies(&self) -> Latencies {
        let [local, remote, refused, free, free_remote] = self.kinds.each_ref().map(|kind| {
            let seconds = |nanoseconds: u64| nanoseconds as f64 * 1e-9;
            match kind.len() {
                0 => Latency::default(),
                calls => Latency {
                    calls,
                    p50: seconds(kind.value_at_quantile(0.5)),
                    p99: seconds(kind.value_at_quantile(0.99)),
                    max: seconds(kind.max()),
                },
            }
        });
        Latencies {
            local,
            remote,
            refused,
            free,
            free_remote,
        }
    }
}

impl Default for Stopwatch {
    fn default() -> Self {
        Stopwatch::new()
    }
}

impl Watch for Stopwatch {
    fn begins(&mut self) {
        self.began = Instant::now();
    }

    fn ends(&mut self, call: Call) {
        self.last = Instant::now();
        let took = (self.last - self.began).as_nanos();
        self.kinds[call as usize].saturating_record(took.min(u128::from(MOST)) as u64);
    }
}
