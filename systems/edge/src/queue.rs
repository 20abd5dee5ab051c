//! What waits for one worker: invocations by deadline once they are released, and commands.
//!
//! Threads of the ordinary class hand requests to a worker that must not wait for any of them. So there is no lock: what
//! arrives lies in a ring that one thread empties, and order is kept by that thread alone. One that is held up while it
//! hands something over delays that alone.
//!
//! *Invariant:* of what is released the earliest deadline goes first; nothing is taken before its release; the worker's side
//! neither waits for another thread nor allocates.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;

use crate::clock;

/// What a worker does next.
pub(crate) enum Next<Command, Job> {
    Command(Command),
    Job(Job),
    /// The queue is closed, and nothing is left.
    End,
}

enum Arrived<Command, Job> {
    Command(Command),
    Job {
        release: u64,
        deadline: u64,
        job: Job,
    },
}

/// The side of those who ask. Clones are the same.
pub(crate) struct Queue<Command, Job>(Arc<Shared<Command, Job>>);

struct Shared<Command, Job> {
    arrived: ArrayQueue<Arrived<Command, Job>>,
    worker: OnceLock<Thread>,
    closed: AtomicBool,
}

impl<Command, Job> Clone for Queue<Command, Job> {
    fn clone(&self) -> Self {
        Queue(Arc::clone(&self.0))
    }
}

impl<Command, Job> Queue<Command, Job> {
    /// One that holds as many as will ever wait.
    pub(crate) fn new(most: usize) -> Self {
        Queue(Arc::new(Shared {
            arrived: ArrayQueue::new(most),
            worker: OnceLock::new(),
            closed: AtomicBool::new(false),
        }))
    }

    pub(crate) fn command(&self, command: Command) {
        self.hand(Arrived::Command(command));
    }

    /// An invocation to be released at a time of [`clock::now`].
    pub(crate) fn job(&self, release: u64, deadline: u64, job: Job) {
        self.hand(Arrived::Job {
            release,
            deadline,
            job,
        });
    }

    fn hand(&self, arrived: Arrived<Command, Job>) {
        let mut arrived = arrived;
        // Whoever asks counts what waits, so there is room; a command may have to wait for it.
        while let Err(back) = self.0.arrived.push(arrived) {
            arrived = back;
            self.wake();
            thread::yield_now();
        }
        self.wake();
    }

    pub(crate) fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        if let Some(worker) = self.0.worker.get() {
            worker.unpark();
        }
    }

    /// The side of the calling thread, which is the worker from now on.
    pub(crate) fn worker(&self) -> Waiting<Command, Job> {
        let most = self.0.arrived.capacity();
        // There is one worker.
        let _ = self.0.worker.set(thread::current());
        Waiting {
            shared: Arc::clone(&self.0),
            held: BinaryHeap::with_capacity(most),
            ready: BinaryHeap::with_capacity(most),
            sequence: 0,
        }
    }
}

/// The side of the worker.
pub(crate) struct Waiting<Command, Job> {
    shared: Arc<Shared<Command, Job>>,
    held: BinaryHeap<Reverse<Entry<Job>>>,
    ready: BinaryHeap<Reverse<Entry<Job>>>,
    sequence: u64,
}

struct Entry<Job> {
    /// What it is ordered by: the release, then the deadline.
    at: u64,
    sequence: u64,
    deadline: u64,
    job: Job,
}

impl<Job> PartialEq for Entry<Job> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl<Job> Eq for Entry<Job> {}

impl<Job> PartialOrd for Entry<Job> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<Job> Ord for Entry<Job> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<Command, Job> Waiting<Command, Job> {
    /// Waits for what is next.
    pub(crate) fn next(&mut self) -> Next<Command, Job> {
        loop {
            // Before what is left is looked at, as nothing arrives behind it.
            let closed = self.shared.closed.load(Ordering::Acquire);
            while let Some(arrived) = self.shared.arrived.pop() {
                match arrived {
                    Arrived::Command(command) => return Next::Command(command),
                    Arrived::Job {
                        release,
                        deadline,
                        job,
                    } => self.hold(release, deadline, job),
                }
            }
            let now = clock::now();
            while self.held.peek().is_some_and(|first| first.0.at <= now) {
                if let Some(Reverse(first)) = self.held.pop() {
                    let at = first.deadline;
                    self.ready.push(Reverse(Entry { at, ..first }));
                }
            }
            if let Some(Reverse(first)) = self.ready.pop() {
                return Next::Job(first.job);
            }
            match self.held.peek() {
                None if closed => return Next::End,
                None => thread::park(),
                Some(first) => {
                    thread::park_timeout(Duration::from_nanos(first.0.at.saturating_sub(now)));
                }
            }
        }
    }

    fn hold(&mut self, release: u64, deadline: u64, job: Job) {
        let sequence = self.sequence;
        self.sequence += 1;
        self.held.push(Reverse(Entry {
            at: release,
            sequence,
            deadline,
            job,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_deadline_of_what_is_released_goes_first() {
        let queue: Queue<char, u32> = Queue::new(8);
        let now = clock::now();
        queue.job(0, now + 30, 3);
        queue.job(0, now + 10, 1);
        queue.job(now + 20_000_000, now, 4);
        queue.job(0, now + 10, 2);
        queue.command('c');
        queue.close();
        let mut waiting = queue.worker();
        let mut order = String::new();
        loop {
            match waiting.next() {
                Next::Command(command) => order.push(command),
                Next::Job(job) => order += &job.to_string(),
                Next::End => break,
            }
        }
        assert_eq!(order, "c1234");
    }

    #[test]
    fn nothing_is_lost_between_threads_that_ask_and_a_worker_that_sleeps() {
        let queue: Queue<(), u64> = Queue::new(4);
        let asking: Vec<_> = (0..3)
            .map(|thread| {
                let queue = queue.clone();
                std::thread::spawn(move || {
                    for number in 0..500 {
                        queue.job(0, 0, thread * 500 + number);
                        if number % 50 == 0 {
                            std::thread::sleep(Duration::from_micros(200));
                        }
                    }
                })
            })
            .collect();
        let mut waiting = queue.worker();
        let mut seen = vec![false; 1500];
        for _ in 0..1500 {
            let Next::Job(number) = waiting.next() else {
                panic!("there are as many jobs as were asked for");
            };
            assert!(!std::mem::replace(&mut seen[number as usize], true));
        }
        for thread in asking {
            thread.join().expect("it asked");
        }
        queue.close();
        assert!(matches!(waiting.next(), Next::End));
    }
}
