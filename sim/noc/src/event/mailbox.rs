//! Messages between processes, without end of their number.
//!
//! *Invariant:* messages come out in the order in which they were sent, to those that wait in the order in which they began
//! to. Each comes out once.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::kernel::{Awaited, Clock, Process};

/// A line of messages. Clones are the same mailbox.
pub struct Mailbox<T> {
    clock: Clock,
    shared: Rc<Shared<T>>,
}

struct Shared<T> {
    name: Rc<str>,
    state: RefCell<State<T>>,
}

struct State<T> {
    /// Messages that nobody waits for, each with how many were sent before it.
    messages: VecDeque<(u64, T)>,
    /// Who waits, in order. Messages and those that wait are never there together.
    waiting: VecDeque<(u64, Process)>,
    /// Messages that were given to a turn whose process has not been resumed yet.
    given: Vec<(u64, (u64, T))>,
    sent: u64,
    turns: u64,
}

impl<T> Awaited for Shared<T> {
    fn describe(&self, _names: &dyn Fn(Process) -> Rc<str>) -> String {
        format!("a message in {}", self.name)
    }
}

impl Clock {
    /// A mailbox without messages; the name is for reports.
    #[must_use]
    pub fn mailbox<T>(&self, name: impl Into<Rc<str>>) -> Mailbox<T> {
        Mailbox {
            clock: self.clone(),
            shared: Rc::new(Shared {
                name: name.into(),
                state: RefCell::new(State {
                    messages: VecDeque::new(),
                    waiting: VecDeque::new(),
                    given: Vec::new(),
                    sent: 0,
                    turns: 0,
                }),
            }),
        }
    }
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Mailbox {
            clock: self.clock.clone(),
            shared: Rc::clone(&self.shared),
        }
    }
}

impl<T> Mailbox<T> {
    /// Puts a message behind the others; takes no time. O(log n) of the events, if somebody waits for it.
    pub fn send(&self, message: T) {
        let mut state = self.shared.state.borrow_mut();
        let message = (state.sent, message);
        state.sent += 1;
        match state.waiting.pop_front() {
            Some((turn, process)) => {
                state.given.push((turn, message));
                self.clock.resume_at(self.clock.now(), process);
            }
            None => state.messages.push_back(message),
        }
    }

    /// Waits for a message, behind those that wait already. O(1) beside the waiting.
    #[must_use = "a message is taken when it is awaited"]
    pub fn receive(&self) -> Receive<T>
    where
        T: 'static,
    {
        Receive {
            mailbox: self.clone(),
            turn: None,
        }
    }

    /// Takes the first message, if there is one. O(1).
    #[must_use]
    pub fn try_receive(&self) -> Option<T> {
        let mut state = self.shared.state.borrow_mut();
        state.messages.pop_front().map(|(_, message)| message)
    }

    /// How many messages nobody has taken. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        let state = self.shared.state.borrow();
        state.messages.len() + state.given.len()
    }

    /// Whether there is none. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A message of a [`Mailbox`], not come yet.
pub struct Receive<T> {
    mailbox: Mailbox<T>,
    /// None before it waits, and when it got one.
    turn: Option<u64>,
}

impl<T: 'static> Future for Receive<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<T> {
        let shared = Rc::clone(&self.mailbox.shared);
        let clock = &self.mailbox.clock;
        let mut state = shared.state.borrow_mut();
        match self.turn {
            None => {
                if let Some((_, message)) = state.messages.pop_front() {
                    return Poll::Ready(message);
                }
                state.turns += 1;
                let turn = state.turns;
                state.waiting.push_back((turn, clock.current()));
                clock.note(Rc::clone(&shared) as Rc<dyn Awaited>);
                drop(state);
                self.turn = Some(turn);
            }
            Some(turn) => {
                if let Some((_, message)) = state.take_given(turn) {
                    drop(state);
                    self.turn = None;
                    return Poll::Ready(message);
                }
                clock.note(Rc::clone(&shared) as Rc<dyn Awaited>);
            }
        }
        Poll::Pending
    }
}

impl<T> State<T> {
    /// Takes what was given to a turn. Linear in those that were given a message in this cycle.
    fn take_given(&mut self, turn: u64) -> Option<(u64, T)> {
        let place = self.given.iter().position(|(other, _)| *other == turn)?;
        Some(self.given.remove(place).1)
    }
}

impl<T> Drop for Receive<T> {
    /// Whoever gives up leaves the line, and what came too late goes to the next, or back where it was.
    fn drop(&mut self) {
        let Some(turn) = self.turn else { return };
        let mut state = self.mailbox.shared.state.borrow_mut();
        let Some(message) = state.take_given(turn) else {
            state.waiting.retain(|(waits, _)| *waits != turn);
            return;
        };
        match state.waiting.pop_front() {
            Some((next, process)) => {
                state.given.push((next, message));
                let clock = &self.mailbox.clock;
                clock.resume_at(clock.now(), process);
            }
            None => {
                let earlier = |(number, _): &(u64, T)| *number < message.0;
                let place = state.messages.partition_point(earlier);
                state.messages.insert(place, message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use proptest::prelude::*;

    use super::*;
    use crate::event::Simulation;

    proptest! {
        #[test]
        fn each_message_comes_out_once_and_in_order(
            senders in prop::collection::vec((0..20u64, 1..5u64), 0..8),
            receivers in prop::collection::vec((0..20u64, 1..5u64), 1..8),
        ) {
            let mut simulation = Simulation::new();
            let clock = simulation.clock();
            let mailbox = clock.mailbox("mail");
            let (sent, seen) = (Rc::new(RefCell::new(Vec::new())), Rc::new(RefCell::new(Vec::new())));
            for (number, &(begin, count)) in senders.iter().enumerate() {
                let (clock, mailbox, sent) = (clock.clone(), mailbox.clone(), Rc::clone(&sent));
                simulation.spawn(format!("sender {number}"), async move {
                    for index in 0..count {
                        clock.delay(begin).await;
                        mailbox.send((number, index));
                        sent.borrow_mut().push((number, index));
                    }
                });
            }
            for (number, &(begin, count)) in receivers.iter().enumerate() {
                let (clock, mailbox, seen) = (clock.clone(), mailbox.clone(), Rc::clone(&seen));
                simulation.serve(format!("receiver {number}"), async move {
                    for _ in 0..count {
                        clock.delay(begin).await;
                        let message = mailbox.receive().await;
                        seen.borrow_mut().push((clock.now(), message));
                    }
                });
            }
            simulation.run().expect("senders do not wait");
            let (sent, mut seen) = (sent.take(), seen.take());
            let wanted: u64 = receivers.iter().map(|(_, count)| count).sum();
            prop_assert_eq!(seen.len(), sent.len().min(wanted as usize));
            // In the cycle in which it is given a message, one who waits may be resumed behind one who did not have to.
            let sent_before = |message| sent.iter().position(|other| *other == message);
            prop_assert!(seen.iter().is_sorted_by_key(|(cycle, _)| *cycle));
            seen.sort_by_key(|&(cycle, message)| (cycle, sent_before(message)));
            let mut seen: Vec<_> = seen.into_iter().map(|(_, message)| message).collect();
            seen.extend(std::iter::from_fn(|| mailbox.try_receive()));
            prop_assert_eq!(seen, sent);
        }
    }

    /// Two that wait give up in the cycle in which they are sent messages, and before they are resumed for these.
    fn give_up(simulation: &mut Simulation, mailbox: &Mailbox<u32>) {
        let clock = simulation.clock();
        let (sender, sends) = (mailbox.clone(), clock.clone());
        simulation.spawn("sender", async move {
            sends.delay(3).await;
            sender.send(7);
            sender.send(8);
        });
        for name in ["impatient", "as impatient"] {
            let (mailbox, clock) = (mailbox.clone(), clock.clone());
            simulation.spawn(name, async move {
                let mut receive = Box::pin(mailbox.receive());
                let mut delay = Box::pin(clock.delay(3));
                poll_fn(|context| {
                    if clock.now() < 3 {
                        assert!(receive.as_mut().poll(context).is_pending());
                    }
                    delay.as_mut().poll(context)
                })
                .await;
                assert_eq!(mailbox.len(), 2, "it was given one, and never looked");
            });
        }
    }

    #[test]
    fn what_came_too_late_goes_to_the_next() {
        let mut simulation = Simulation::new();
        let mailbox = simulation.clock().mailbox("mail");
        give_up(&mut simulation, &mailbox);
        simulation.spawn("patient", async move {
            assert_eq!(mailbox.receive().await, 7);
            assert_eq!(mailbox.receive().await, 8);
        });
        assert_eq!(simulation.run(), Ok(3));
    }

    #[test]
    fn what_came_too_late_goes_back_where_it_was() {
        let mut simulation = Simulation::new();
        let mailbox = simulation.clock().mailbox("mail");
        give_up(&mut simulation, &mailbox);
        assert_eq!(simulation.run(), Ok(3));
        let left: Vec<u32> = std::iter::from_fn(|| mailbox.try_receive()).collect();
        assert_eq!(left, [7, 8]);
    }
}
