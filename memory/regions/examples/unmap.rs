//! What freeing a touched region costs the caller under each policy, beside the system's own `munmap`, in
//! the same run: median and most of processor time and of time that passed.
//!
//! `cargo run --release -p metes-regions --example unmap -- [MiB [ROUNDS]]`; 256 MiB, 25 rounds. Policies
//! take turns, so that a busy machine disturbs all alike.

use std::process::ExitCode;
use std::ptr;

use metes_regions::{Options, PAGE, Policy, Regions};

const POLICIES: [(&str, Policy); 5] = [
    ("retain", Policy::Retain),
    ("bounded(64)", Policy::Bounded(64)),
    (
        "graveyard",
        Policy::Graveyard {
            slice: 256,
            threaded: true,
        },
    ),
    (
        "by calls",
        Policy::Graveyard {
            slice: 256,
            threaded: false,
        },
    ),
    ("immediate", Policy::Immediate),
];

/// Processor time of this thread and time that passed, in nanoseconds.
fn now() -> [u64; 2] {
    [libc::CLOCK_THREAD_CPUTIME_ID, libc::CLOCK_MONOTONIC].map(|clock| {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: fills in the struct it is given.
        unsafe { libc::clock_gettime(clock, &mut now) };
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    })
}

fn timed(act: impl FnOnce()) -> [u64; 2] {
    let [cpu, wall] = now();
    act();
    let [cpu_after, wall_after] = now();
    [cpu_after - cpu, wall_after - wall]
}

fn touch(start: *mut u8, pages: usize) {
    for page in 0..pages {
        // SAFETY: a page of a region just mapped.
        unsafe { start.wrapping_add(page * PAGE).write_volatile(1) };
    }
}

/// Maps, touches and unmaps by the system alone.
fn munmap(pages: usize) -> [u64; 2] {
    let (bytes, access) = (pages * PAGE, libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, touched and unmapped as a whole.
    unsafe {
        let mapped = libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0);
        assert_ne!(
            mapped,
            libc::MAP_FAILED,
            "{}",
            std::io::Error::last_os_error()
        );
        touch(mapped.cast(), pages);
        timed(|| {
            assert_eq!(libc::munmap(mapped, bytes), 0);
        })
    }
}

fn number(text: Option<String>, default: usize) -> Option<usize> {
    match text {
        None => Some(default),
        Some(text) => text.parse().ok().filter(|&number| number != 0),
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (mebibytes, rounds) = (number(words.next(), 256), number(words.next(), 25));
    let (Some(mebibytes @ ..=65536), Some(rounds), None) = (mebibytes, rounds, words.next()) else {
        eprintln!("usage: unmap [MiB, up to 65536 [ROUNDS]]: both whole numbers from 1 on");
        return ExitCode::from(2);
    };
    let pages = (mebibytes << 20) / PAGE;
    let mut times = vec![Vec::new(); POLICIES.len() + 1];
    let mut managers: Vec<Regions> = Vec::new();
    for (name, policy) in POLICIES {
        match Regions::reserve(Options::new(4 * pages * PAGE, policy)) {
            Ok(manager) => managers.push(manager),
            Err(why) => {
                eprintln!("unmap: {name}: {why}");
                return ExitCode::from(2);
            }
        }
    }
    for _ in 0..rounds {
        times[0].push(munmap(pages));
        for (manager, times) in managers.iter_mut().zip(&mut times[1..]) {
            let region = match manager.map(pages) {
                Ok(region) => region,
                Err(why) => {
                    eprintln!("unmap: {why}");
                    return ExitCode::from(2);
                }
            };
            touch(region.start.as_ptr(), pages);
            times.push(timed(|| {
                manager
                    .unmap(region.start)
                    .expect("a region that was mapped");
            }));
            // What waits is no part of what is measured, and not to be there when the next is.
            while manager.waiting() != 0 {
                if manager.has_reaper() {
                    std::thread::yield_now();
                } else {
                    manager.pay(usize::MAX).expect("pages of the arena go back");
                }
            }
        }
    }
    println!(
        "free of {mebibytes} MiB, all touched; {rounds} rounds; microseconds of the calling thread"
    );
    println!(
        "{:<12} {:>10} {:>10} {:>10} {:>10}",
        "", "CPU median", "CPU max", "median", "max"
    );
    let names = ["munmap"].into_iter().chain(POLICIES.map(|(name, _)| name));
    for (name, times) in names.zip(&times) {
        let column = |which: usize| {
            let mut column: Vec<u64> = times.iter().map(|time| time[which]).collect();
            column.sort_unstable();
            [column[column.len() / 2], column[column.len() - 1]].map(|ns| ns as f64 / 1000.0)
        };
        let ([cpu, cpu_most], [wall, wall_most]) = (column(0), column(1));
        println!("{name:<12} {cpu:>10.1} {cpu_most:>10.1} {wall:>10.1} {wall_most:>10.1}");
    }
    for (manager, (name, _)) in managers.iter().zip(POLICIES) {
        let fallbacks = manager.statistics().fallbacks;
        if fallbacks != 0 {
            println!(
                "{name}: {fallbacks} of {rounds} were returned at once, as they could not be moved"
            );
        }
    }
    ExitCode::SUCCESS
}
