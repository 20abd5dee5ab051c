//! What waits for one worker: invocations by deadline once they are released, and commands.
//!
//! *Invariant:* of what is released the earliest deadline goes first; nothing is taken before its release.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock;

/// What a worker does next.
pub(crate) enum Next<Command, Job> {
    Command(Command),
    Job(Job),
    /// The queue is closed, and nothing is left.
    End,
}

struct Waiting<Job> {
    /// What it is ordered by: the release, then the deadline.
    at: u64,
    sequence: u64,
    deadline: u64,
    job: Job,
}

impl<Job> PartialEq for Waiting<Job> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl<Job> Eq for Waiting<Job> {}

impl<Job> PartialOrd for Waiting<Job> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<Job> Ord for Waiting<Job> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

struct Inner<Command, Job> {
    commands: VecDeque<Command>,
    held: BinaryHeap<Reverse<Waiting<Job>>>,
    ready: BinaryHeap<Reverse<Waiting<Job>>>,
    sequence: u64,
    closed: bool,
}

/// What waits for one worker.
pub(crate) struct Queue<Command, Job> {
    inner: Mutex<Inner<Command, Job>>,
    changed: Condvar,
}

impl<Command, Job> Queue<Command, Job> {
    pub(crate) fn new() -> Self {
        Queue {
            inner: Mutex::new(Inner {
                commands: VecDeque::new(),
                held: BinaryHeap::new(),
                ready: BinaryHeap::new(),
                sequence: 0,
                closed: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<Command, Job>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn command(&self, command: Command) {
        self.lock().commands.push_back(command);
        self.changed.notify_one();
    }

    /// An invocation to be released at a time of [`clock::now`].
    pub(crate) fn job(&self, release: u64, deadline: u64, job: Job) {
        let mut inner = self.lock();
        let sequence = inner.sequence;
        inner.sequence += 1;
        inner.held.push(Reverse(Waiting {
            at: release,
            sequence,
            deadline,
            job,
        }));
        drop(inner);
        self.changed.notify_one();
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Waits for what is next.
    pub(crate) fn next(&self) -> Next<Command, Job> {
        let mut inner = self.lock();
        loop {
            if let Some(command) = inner.commands.pop_front() {
                return Next::Command(command);
            }
            let now = clock::now();
            while inner.held.peek().is_some_and(|first| first.0.at <= now) {
                if let Some(Reverse(first)) = inner.held.pop() {
                    let at = first.deadline;
                    inner.ready.push(Reverse(Waiting { at, ..first }));
                }
            }
            if let Some(Reverse(first)) = inner.ready.pop() {
                return Next::Job(first.job);
            }
            let release = inner.held.peek().map(|first| first.0.at);
            inner = match release {
                None if inner.closed => return Next::End,
                None => {
                    let woken = self.changed.wait(inner);
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
                Some(release) => {
                    let time = Duration::from_nanos(release.saturating_sub(now));
                    let woken = self.changed.wait_timeout(inner, time);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_deadline_of_what_is_released_goes_first() {
        let queue: Queue<char, u32> = Queue::new();
        let now = clock::now();
        queue.job(0, now + 30, 3);
        queue.job(0, now + 10, 1);
        queue.job(now + 20_000_000, now, 4);
        queue.job(0, now + 10, 2);
        queue.command('c');
        queue.close();
        let mut order = String::new();
        loop {
            match queue.next() {
                Next::Command(command) => order.push(command),
                Next::Job(job) => order += &job.to_string(),
                Next::End => break,
            }
        }
        assert_eq!(order, "c1234");
    }
}
