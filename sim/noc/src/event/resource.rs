//! What only one process can have at a time.
//!
//! *Invariant:* those that wait get it in the order in which they began to, and from one holder to the next it is handed
//! over: nobody who comes in between takes it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::kernel::{Awaited, Clock, Process};

/// A lock, a port, a processor: anything of capacity one, first come, first served. Clones are the same resource.
#[derive(Clone)]
pub struct Resource {
    clock: Clock,
    shared: Rc<Shared>,
}

struct Shared {
    name: Rc<str>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    /// Whose turn it is, and the process that has it, or is about to be told so.
    holder: Option<(u64, Process)>,
    /// The turn of whom comes next.
    waiting: VecDeque<(u64, Process)>,
    turns: u64,
    since: u64,
    used: Use,
}

/// What became of a resource so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// How often it was had.
    pub acquired: u64,
    /// How often one who wanted it had to wait, however short.
    pub contended: u64,
    /// Cycles for which somebody had it, and gave it back.
    pub held: u64,
    /// Cycles that those who got it waited for it, together.
    pub waited: u64,
}

impl Awaited for Shared {
    fn describe(&self, names: &dyn Fn(Process) -> Rc<str>) -> String {
        match self.state.borrow().holder {
            Some((_, holder)) => format!("{}, which {} has", self.name, names(holder)),
            None => self.name.to_string(),
        }
    }
}

impl Clock {
    /// A resource, which nobody has; the name is for reports.
    #[must_use]
    pub fn resource(&self, name: impl Into<Rc<str>>) -> Resource {
        Resource {
            clock: self.clone(),
            shared: Rc::new(Shared {
                name: name.into(),
                state: RefCell::default(),
            }),
        }
    }
}

impl Resource {
    /// Waits for the resource, behind those that wait already. O(1) beside the waiting.
    #[must_use = "it is acquired when it is awaited"]
    pub fn acquire(&self) -> Acquire {
        Acquire {
            resource: self.clone(),
            turn: None,
            since: 0,
        }
    }

    /// Takes the resource if nobody has it or is about to. O(1).
    #[must_use]
    pub fn try_acquire(&self) -> Option<Held> {
        let mut state = self.shared.state.borrow_mut();
        if state.holder.is_some() {
            return None;
        }
        let turn = state.turn();
        state.take(turn, self.clock.current(), self.clock.now());
        drop(state);
        Some(self.held(turn, self.clock.now()))
    }

    /// Whether somebody has it, or is about to. O(1).
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.shared.state.borrow().holder.is_some()
    }

    /// What became of it so far. O(1).
    #[must_use]
    pub fn usage(&self) -> Use {
        self.shared.state.borrow().used
    }

    fn held(&self, turn: u64, wanted: u64) -> Held {
        let mut state = self.shared.state.borrow_mut();
        debug_assert_eq!(state.holder.map(|(turn, _)| turn), Some(turn));
        state.used.acquired += 1;
        state.used.waited += self.clock.now() - wanted;
        Held(self.clone())
    }

    /// Hands the resource to whoever is next.
    fn pass(&self) {
        let mut state = self.shared.state.borrow_mut();
        state.holder = None;
        if let Some((turn, process)) = state.waiting.pop_front() {
            state.take(turn, process, self.clock.now());
            self.clock.resume_at(self.clock.now(), process);
        }
    }
}

impl State {
    fn turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    fn take(&mut self, turn: u64, process: Process, now: u64) {
        debug_assert!(self.holder.is_none(), "one has it at a time");
        self.holder = Some((turn, process));
        self.since = now;
    }
}

/// A turn at a [`Resource`], not come yet.
pub struct Acquire {
    resource: Resource,
    /// None before it waits, and when it got it.
    turn: Option<u64>,
    since: u64,
}

impl Future for Acquire {
    type Output = Held;

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Held> {
        let resource = self.resource.clone();
        let (clock, shared) = (&resource.clock, &resource.shared);
        let Some(turn) = self.turn else {
            if let Some(held) = resource.try_acquire() {
                return Poll::Ready(held);
            }
            let mut state = shared.state.borrow_mut();
            let turn = state.turn();
            state.used.contended += 1;
            state.waiting.push_back((turn, clock.current()));
            self.turn = Some(turn);
            self.since = clock.now();
            clock.note(Rc::clone(shared) as Rc<dyn Awaited>);
            return Poll::Pending;
        };
        let holder = shared.state.borrow().holder;
        if holder.is_some_and(|(holds, _)| holds == turn) {
            self.turn = None;
            return Poll::Ready(resource.held(turn, self.since));
        }
        clock.note(Rc::clone(shared) as Rc<dyn Awaited>);
        Poll::Pending
    }
}

impl Drop for Acquire {
    /// Whoever gives up leaves the line, and hands on what came too late.
    fn drop(&mut self) {
        let Some(turn) = self.turn else { return };
        let mut state = self.resource.shared.state.borrow_mut();
        if state.holder.is_some_and(|(holds, _)| holds == turn) {
            drop(state);
            self.resource.pass();
        } else {
            state.waiting.retain(|(waits, _)| *waits != turn);
        }
    }
}

/// A [`Resource`] that one has; dropped, it goes to whoever is next, in the same cycle.
#[must_use = "it is given back when this is dropped"]
pub struct Held(Resource);

impl Drop for Held {
    fn drop(&mut self) {
        let Held(resource) = self;
        {
            let mut state = resource.shared.state.borrow_mut();
            let since = state.since;
            state.used.held += resource.clock.now() - since;
        }
        resource.pass();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use metes_random::Random;
    use proptest::prelude::*;

    use super::*;
    use crate::event::Simulation;

    /// What the processes of a run did: who had it from when to when.
    fn run(plans: &[(u64, u64)]) -> (Vec<(usize, u64, u64)>, Use) {
        let mut simulation = Simulation::new();
        let clock = simulation.clock();
        let resource = clock.resource("lock");
        let seen = Rc::new(RefCell::new(Vec::new()));
        for (number, &(begin, holds)) in plans.iter().enumerate() {
            let (clock, resource, seen) = (clock.clone(), resource.clone(), Rc::clone(&seen));
            simulation.spawn(format!("{number}"), async move {
                clock.delay(begin).await;
                let held = resource.acquire().await;
                let from = clock.now();
                clock.delay(holds).await;
                drop(held);
                seen.borrow_mut().push((number, from, clock.now()));
            });
        }
        simulation.run().expect("no deadlock");
        (seen.take(), resource.usage())
    }

    proptest! {
        #[test]
        fn first_come_is_first_served(plans in prop::collection::vec((0..30u64, 0..8u64), 1..20)) {
            // The naive model: in order of arrival, each when the one before has done.
            let mut order: Vec<usize> = (0..plans.len()).collect();
            order.sort_by_key(|number| plans[*number].0);
            let (mut free, mut expected, mut used) = (0, Vec::new(), Use::default());
            for number in order {
                let (begin, holds) = plans[number];
                let from = begin.max(free);
                used.acquired += 1;
                used.waited += from - begin;
                used.held += holds;
                free = from + holds;
                expected.push((number, from, free));
            }
            let (seen, usage) = run(&plans);
            prop_assert_eq!(seen, expected);
            // Whether one that comes in the cycle of a release finds it taken depends on the order of events.
            used.contended = usage.contended;
            prop_assert_eq!(usage, used);
        }
    }

    #[test]
    fn whoever_gives_up_leaves_the_line() {
        let mut random = Random::new(5);
        for _ in 0..200 {
            let mut simulation = Simulation::new();
            let clock = simulation.clock();
            let resource = clock.resource("lock");
            for number in 0..6 {
                let (clock, resource) = (clock.clone(), resource.clone());
                let (begin, patience) = (random.below(10), random.below(10));
                simulation.spawn(format!("{number}"), async move {
                    clock.delay(begin).await;
                    let (mut acquire, mut delay) = (
                        Box::pin(resource.acquire()),
                        Box::pin(clock.delay(patience)),
                    );
                    let held = poll_fn(|context| match acquire.as_mut().poll(context) {
                        Poll::Ready(held) => Poll::Ready(Some(held)),
                        Poll::Pending => delay.as_mut().poll(context).map(|()| None),
                    })
                    .await;
                    if held.is_some() {
                        clock.delay(4).await;
                    }
                });
            }
            simulation.run().expect("nobody waits for ever");
            assert!(resource.try_acquire().is_some(), "nobody has it any more");
        }
    }

    #[test]
    fn who_waits_for_each_other_is_named() {
        let mut simulation = Simulation::new();
        let clock = simulation.clock();
        let locks = [clock.resource("lock 0"), clock.resource("lock 1")];
        for (name, first, second) in [("one", 0, 1), ("other", 1, 0)] {
            let (clock, first, second) =
                (clock.clone(), locks[first].clone(), locks[second].clone());
            simulation.spawn(name, async move {
                let _first = first.acquire().await;
                clock.delay(1).await;
                let _second = second.acquire().await;
            });
        }
        let deadlock = simulation.run().unwrap_err();
        assert_eq!(
            deadlock.to_string(),
            "at cycle 1 nothing is left to happen, but one waits for lock 1, which other has; \
             other waits for lock 0, which one has"
        );
    }
}
