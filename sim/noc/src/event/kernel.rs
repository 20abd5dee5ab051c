//! The executor: processes, the clock, and who waits for what.
//!
//! No wakers: what a process waits for belongs to this kernel and resumes it by number, so nothing is counted by atomics
//! and nothing is unsafe. A future of another executor would wait for ever, and [`Simulation::run`] would say so.
//!
//! *Invariant:* time never goes back, and moves only when nothing is left to happen in a cycle. A process that has ended is
//! never polled, and what was filed for it comes to nothing.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::queue::{Queue, Ticket};

/// What a process can wait for, as a report names it.
pub(super) trait Awaited {
    fn describe(&self, names: &dyn Fn(Process) -> Rc<str>) -> String;
}

/// A process, by the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process(usize);

/// What processes and what they wait for share.
struct Shared {
    now: Cell<u64>,
    queue: RefCell<Queue<Process>>,
    /// The process that is polled.
    current: Cell<Process>,
    /// What it waits for, as far as this poll has come upon it.
    awaited: RefCell<Vec<Rc<dyn Awaited>>>,
    /// Processes that others created since the last event.
    newborn: RefCell<Vec<Task>>,
    /// How many processes were created.
    created: Cell<usize>,
}

/// A process and its future, until that has ended.
struct Task {
    name: Rc<str>,
    may_wait: bool,
    future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    awaited: Vec<Rc<dyn Awaited>>,
}

/// Processes and their time.
pub struct Simulation {
    clock: Clock,
    tasks: Vec<Task>,
}

/// The time of a simulation, and what processes are made of and wait for. Clones are the same clock.
#[derive(Clone)]
pub struct Clock(Rc<Shared>);

/// A process that waits while nothing is left that could let it go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its name.
    pub process: String,
    /// What it waits for: a thing, or several of which any would do, or all are needed.
    pub awaited: Vec<String>,
}

/// Processes wait for ever.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Deadlock {
    /// The cycle of the last event.
    pub cycle: u64,
    /// Who waits, in the order of creation.
    pub waiting: Vec<Waiting>,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at cycle {} nothing is left to happen, but ", self.cycle)?;
        for (index, waiting) in self.waiting.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            let awaited = match waiting.awaited.is_empty() {
                true => "something that is none of this simulation's".to_owned(),
                false => waiting.awaited.join(" and "),
            };
            write!(f, "{separator}{} waits for {awaited}", waiting.process)?;
        }
        Ok(())
    }
}

impl Simulation {
    /// A simulation without processes, at cycle 0.
    #[must_use]
    pub fn new() -> Self {
        Simulation {
            clock: Clock(Rc::new(Shared {
                now: Cell::new(0),
                queue: RefCell::new(Queue::new()),
                current: Cell::new(Process(usize::MAX)),
                awaited: RefCell::default(),
                newborn: RefCell::default(),
                created: Cell::new(0),
            })),
            tasks: Vec::new(),
        }
    }

    /// Its clock.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Creates a process, which begins at the present cycle, behind what was filed for it before. O(log n) of the events.
    pub fn spawn(&mut self, name: impl Into<Rc<str>>, process: impl Future<Output = ()> + 'static) {
        self.clock.spawn(name, process);
    }

    /// Creates a process that serves others: that it waits when all is done is no deadlock. O(log n) of the events.
    pub fn serve(&mut self, name: impl Into<Rc<str>>, process: impl Future<Output = ()> + 'static) {
        self.clock.serve(name, process);
    }

    /// Runs until nothing is left to happen, and returns the cycle of the last event. O(log n) an event, n being those
    /// that are filed.
    ///
    /// # Errors
    /// [`Deadlock`] when processes wait by then that do not serve.
    pub fn run(&mut self) -> Result<u64, Deadlock> {
        self.run_until(u64::MAX);
        let waiting: Vec<Waiting> = self.waiting().collect();
        match waiting.is_empty() {
            true => Ok(self.clock.now()),
            false => Err(Deadlock {
                cycle: self.clock.now(),
                waiting,
            }),
        }
    }

    /// Runs what happens at `last` or before, and says whether anything is left for later. The clock stands at the last
    /// event. O(log n) an event.
    pub fn run_until(&mut self, last: u64) -> bool {
        let shared = Rc::clone(&self.clock.0);
        loop {
            self.tasks.append(&mut shared.newborn.borrow_mut());
            let Some(cycle) = shared.queue.borrow().first() else {
                return false;
            };
            if cycle > last {
                return true;
            }
            let taken = shared.queue.borrow_mut().take();
            let (cycle, process) = taken.expect("there is a first event");
            debug_assert!(cycle >= shared.now.get(), "time never goes back");
            shared.now.set(cycle);
            self.resume(process);
        }
    }

    /// Polls a process, unless it has ended.
    fn resume(&mut self, process: Process) {
        let shared = &self.clock.0;
        let task = &mut self.tasks[process.0];
        let Some(future) = &mut task.future else {
            return;
        };
        shared.current.set(process);
        let mut context = Context::from_waker(Waker::noop());
        let poll = future.as_mut().poll(&mut context);
        task.awaited.clear();
        task.awaited.append(&mut shared.awaited.borrow_mut());
        if poll.is_ready() {
            // What it still holds may give way to others, whose events are filed then.
            task.future = None;
            task.awaited.clear();
        }
    }

    /// The processes that have not ended, do not serve, and have begun to wait.
    fn waiting(&self) -> impl Iterator<Item = Waiting> + '_ {
        // What was taken before the first event was taken by none.
        let names = |process: Process| match self.tasks.get(process.0) {
            Some(task) => Rc::clone(&task.name),
            None => "no process".into(),
        };
        let waits = |task: &&Task| task.future.is_some() && !task.may_wait;
        self.tasks.iter().filter(waits).map(move |task| Waiting {
            process: task.name.to_string(),
            awaited: task.awaited.iter().map(|it| it.describe(&names)).collect(),
        })
    }
}

impl Default for Simulation {
    fn default() -> Self {
        Simulation::new()
    }
}

impl Drop for Simulation {
    /// Futures hold the clock, and the clock those that have not begun: a circle, opened here.
    fn drop(&mut self) {
        self.tasks.clear();
        let newborn = self.clock.0.newborn.take();
        drop(newborn);
    }
}

impl Clock {
    /// The present cycle. O(1).
    #[must_use]
    pub fn now(&self) -> u64 {
        self.0.now.get()
    }

    /// Lets `cycles` pass; with 0, what was filed for this cycle before happens first.
    ///
    /// The last cycle is 2⁶⁴ - 1: what would be later is then.
    #[must_use = "time passes when it is awaited"]
    pub fn delay(&self, cycles: u64) -> Delay {
        self.until(self.now().saturating_add(cycles))
    }

    /// Waits for a cycle; for one that has passed, as [`delay`](Self::delay) of 0.
    #[must_use = "time passes when it is awaited"]
    pub fn until(&self, cycle: u64) -> Delay {
        Delay {
            clock: self.clone(),
            cycle,
            filed: None,
        }
    }

    /// Creates a process: see [`Simulation::spawn`].
    pub fn spawn(&self, name: impl Into<Rc<str>>, process: impl Future<Output = ()> + 'static) {
        self.create(name.into(), false, Box::pin(process));
    }

    /// Creates a process that serves: see [`Simulation::serve`].
    pub fn serve(&self, name: impl Into<Rc<str>>, process: impl Future<Output = ()> + 'static) {
        self.create(name.into(), true, Box::pin(process));
    }

    fn create(&self, name: Rc<str>, may_wait: bool, future: Pin<Box<dyn Future<Output = ()>>>) {
        let process = Process(self.0.created.get());
        self.0.created.set(process.0 + 1);
        self.0.newborn.borrow_mut().push(Task {
            name,
            may_wait,
            future: Some(future),
            awaited: Vec::new(),
        });
        self.resume_at(self.now(), process);
    }

    /// The process that is polled.
    pub(super) fn current(&self) -> Process {
        self.0.current.get()
    }

    /// Files the resumption of a process.
    pub(super) fn resume_at(&self, cycle: u64, process: Process) -> Ticket {
        self.0.queue.borrow_mut().file(cycle, process)
    }

    /// Takes a resumption back, unless it was.
    pub(super) fn cancel(&self, ticket: Ticket) {
        self.0.queue.borrow_mut().cancel(ticket);
    }

    /// Notes that the current process waits for something.
    pub(super) fn note(&self, awaited: Rc<dyn Awaited>) {
        self.0.awaited.borrow_mut().push(awaited);
    }
}

/// Time that passes: [`Clock::delay`].
pub struct Delay {
    clock: Clock,
    cycle: u64,
    filed: Option<Ticket>,
}

impl Delay {
    /// The cycle at which it ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.cycle.max(self.clock.now())
    }

    /// Whether its event has come: the queue is asked, since another event may have led to this poll.
    fn is_over(&self, ticket: Ticket) -> bool {
        let queue = self.clock.0.queue.borrow();
        !queue.contains(ticket)
    }
}

impl Future for Delay {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<()> {
        match self.filed {
            None => {
                let ticket = self.clock.resume_at(self.end(), self.clock.current());
                self.filed = Some(ticket);
                Poll::Pending
            }
            Some(ticket) if self.is_over(ticket) => Poll::Ready(()),
            Some(_) => Poll::Pending,
        }
    }
}

impl Drop for Delay {
    /// Nobody waits for it any more, so it must not move the clock.
    fn drop(&mut self) {
        if let Some(ticket) = self.filed {
            self.clock.cancel(ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::{pending, poll_fn};
    use std::pin::pin;

    use super::*;

    /// Polls two futures side by side until one has ended.
    async fn either(a: impl Future<Output = ()>, b: impl Future<Output = ()>) {
        let (mut a, mut b) = (pin!(a), pin!(b));
        poll_fn(
            |context| match (a.as_mut().poll(context), b.as_mut().poll(context)) {
                (Poll::Pending, Poll::Pending) => Poll::Pending,
                _ => Poll::Ready(()),
            },
        )
        .await;
    }

    #[test]
    fn events_of_a_cycle_happen_in_the_order_of_filing() {
        let mut simulation = Simulation::new();
        let clock = simulation.clock();
        let seen = Rc::new(RefCell::new(Vec::new()));
        for name in 0..3 {
            let (clock, seen) = (clock.clone(), Rc::clone(&seen));
            simulation.spawn(format!("{name}"), async move {
                clock.delay(5 - name).await;
                seen.borrow_mut().push((clock.now(), name));
                clock.until(9).await;
                seen.borrow_mut().push((clock.now(), name));
                clock.delay(0).await;
                seen.borrow_mut().push((clock.now(), name));
            });
        }
        assert_eq!(simulation.run(), Ok(9));
        let expected = [
            (3, 2),
            (4, 1),
            (5, 0),
            (9, 2),
            (9, 1),
            (9, 0),
            (9, 2),
            (9, 1),
            (9, 0),
        ];
        assert_eq!(*seen.borrow(), expected);
    }

    #[test]
    fn a_delay_that_nobody_waits_for_takes_no_time() {
        let mut simulation = Simulation::new();
        let clock = simulation.clock();
        simulation.spawn("impatient", async move {
            either(clock.delay(100), clock.delay(3)).await;
            assert_eq!(clock.now(), 3);
        });
        assert_eq!(simulation.run(), Ok(3));
    }

    #[test]
    fn a_run_in_parts_is_the_run_in_one_piece() {
        let mut simulation = Simulation::new();
        let clock = simulation.clock();
        simulation.spawn("parent", async move {
            clock.delay(4).await;
            let child = clock.clone();
            clock.spawn("child", async move { child.delay(6).await });
        });
        assert!(simulation.run_until(3));
        assert_eq!(simulation.clock().now(), 0);
        assert!(simulation.run_until(4));
        assert_eq!(simulation.clock().now(), 4);
        assert!(!simulation.run_until(10));
        assert_eq!(simulation.run(), Ok(10));
    }

    #[test]
    fn who_waits_for_something_foreign_is_named() {
        let mut simulation = Simulation::new();
        simulation.spawn("stray", pending());
        simulation.serve("server", pending());
        let deadlock = simulation.run().unwrap_err();
        assert_eq!(
            deadlock.to_string(),
            "at cycle 0 nothing is left to happen, but stray waits for something that is none of this simulation's"
        );
    }

    #[test]
    fn an_end_frees_what_processes_hold() {
        let mut simulation = Simulation::new();
        let held = Rc::new(());
        for _ in 0..2 {
            let (held, clock) = (Rc::clone(&held), simulation.clock());
            simulation.spawn("holds", async move {
                clock.delay(1).await;
                pending::<()>().await;
                drop(held);
            });
            simulation.run_until(0);
        }
        let clock = simulation.clock();
        assert_eq!(Rc::strong_count(&held), 3);
        drop(simulation);
        assert_eq!(
            (Rc::strong_count(&held), Rc::strong_count(&clock.0)),
            (1, 1)
        );
    }
}
