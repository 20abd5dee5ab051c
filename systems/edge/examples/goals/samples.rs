//! Times of one kind, in order of size.
//!
//! *Invariant:* a percentile is a time that was measured.

/// Times in nanoseconds.
#[derive(Default)]
pub(crate) struct Samples(Vec<u64>);

impl Samples {
    pub(crate) fn of(mut times: Vec<u64>) -> Samples {
        times.sort_unstable();
        Samples(times)
    }

    /// The time that so many of a million do not exceed, in µs.
    pub(crate) fn at(&self, millionth: u64) -> f64 {
        let index = (self.0.len() as u64 - 1) * millionth / 1_000_000;
        self.0[index as usize] as f64 / 1000.0
    }

    pub(crate) fn row(&self, name: &str, rest: &str) {
        println!(
            "{name:<44} p50 {:>9.2}  p99 {:>9.2}  p99.9 {:>9.2}  max {:>9.2} us  {rest}",
            self.at(500_000),
            self.at(990_000),
            self.at(999_000),
            self.at(1_000_000)
        );
    }
}

/// Puts this thread into the first-in-first-out class on the last processor, where that is permitted.
pub(crate) fn real_time() {
    // SAFETY: plain structures of ours; the calling thread.
    let permitted = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let last = libc::sysconf(libc::_SC_NPROCESSORS_ONLN) - 1;
        libc::CPU_SET(last as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        libc::sched_setscheduler(
            0,
            libc::SCHED_FIFO,
            &libc::sched_param { sched_priority: 50 },
        ) == 0
    };
    println!(
        "class of the measuring thread: {}",
        if permitted {
            "FIFO 50, one processor"
        } else {
            "ordinary"
        }
    );
}

/// Starts a thread of the ordinary class on any processor.
pub(crate) fn ordinary<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> std::thread::JoinHandle<R> {
    std::thread::spawn(move || {
        // SAFETY: as above.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            for processor in 0..libc::sysconf(libc::_SC_NPROCESSORS_ONLN) {
                libc::CPU_SET(processor as usize, &mut set);
            }
            libc::sched_setscheduler(
                0,
                libc::SCHED_OTHER,
                &libc::sched_param { sched_priority: 0 },
            );
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
        work()
    })
}
