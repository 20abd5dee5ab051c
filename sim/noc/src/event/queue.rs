//! Events in the order of their time, those of one cycle in the order in which they were filed.
//!
//! *Invariant:* the order of what comes out depends on what was filed, when and in which order, and on nothing else: no
//! two events compare equal.

use std::collections::BTreeMap;

/// What is to come, by cycle and number.
///
/// A balanced tree rather than a heap: an event that is cancelled is gone at once, so that no time passes for it.
///
/// ```
/// let mut queue = metes_noc::event::Queue::new();
/// queue.file(7, "later");
/// let never = queue.file(3, "never");
/// queue.file(3, "soon");
/// assert_eq!(queue.cancel(never), Some("never"));
/// assert_eq!(queue.take(), Some((3, "soon")));
/// assert_eq!(queue.first(), Some(7));
/// ```
#[derive(Clone, Debug)]
pub struct Queue<T> {
    events: BTreeMap<Ticket, T>,
    filed: u64,
}

/// An event that was filed: its cycle and its number, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    /// The cycle at which it is due.
    pub cycle: u64,
    /// How many events were filed before it, at whatever cycle.
    pub number: u64,
}

impl<T> Queue<T> {
    /// A queue without events.
    #[must_use]
    pub fn new() -> Self {
        Queue {
            events: BTreeMap::new(),
            filed: 0,
        }
    }

    /// Files an event of a cycle, behind those of the same cycle. O(log n).
    pub fn file(&mut self, cycle: u64, event: T) -> Ticket {
        let ticket = Ticket {
            cycle,
            number: self.filed,
        };
        self.filed += 1;
        self.events.insert(ticket, event);
        ticket
    }

    /// Takes an event back, unless it is gone. O(log n).
    pub fn cancel(&mut self, ticket: Ticket) -> Option<T> {
        self.events.remove(&ticket)
    }

    /// Whether an event is still to come. O(log n).
    #[must_use]
    pub fn contains(&self, ticket: Ticket) -> bool {
        self.events.contains_key(&ticket)
    }

    /// The cycle of the first event. O(log n).
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        self.events
            .first_key_value()
            .map(|(ticket, _)| ticket.cycle)
    }

    /// Takes the first event, with its cycle. O(log n).
    pub fn take(&mut self) -> Option<(u64, T)> {
        let (ticket, event) = self.events.pop_first()?;
        Some((ticket.cycle, event))
    }

    /// How many events there are. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is none. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The naive model: a list that is kept sorted by cycle, in which an event is put behind those of its cycle.
    #[derive(Default)]
    struct Sorted(Vec<(u64, u64)>);

    impl Sorted {
        fn file(&mut self, cycle: u64, event: u64) {
            let place = self.0.iter().position(|(other, _)| *other > cycle);
            self.0.insert(place.unwrap_or(self.0.len()), (cycle, event));
        }

        fn cancel(&mut self, event: u64) -> Option<u64> {
            let place = self.0.iter().position(|(_, other)| *other == event)?;
            Some(self.0.remove(place).1)
        }

        fn take(&mut self) -> Option<(u64, u64)> {
            (!self.0.is_empty()).then(|| self.0.remove(0))
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        File(u64),
        Cancel(prop::sample::Index),
        Take,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..20u64).prop_map(Step::File),
            1 => any::<prop::sample::Index>().prop_map(Step::Cancel),
            3 => Just(Step::Take),
        ]
    }

    proptest! {
        #[test]
        fn queue_is_a_sorted_list(steps in prop::collection::vec(step(), 0..200)) {
            let (mut queue, mut sorted) = (Queue::new(), Sorted::default());
            let mut tickets = Vec::new();
            for step in steps {
                match step {
                    Step::File(cycle) => {
                        let event = tickets.len() as u64;
                        tickets.push(queue.file(cycle, event));
                        sorted.file(cycle, event);
                    }
                    // Any that was ever filed: one that is gone stays gone.
                    Step::Cancel(index) if !tickets.is_empty() => {
                        let event = index.index(tickets.len());
                        prop_assert_eq!(queue.cancel(tickets[event]), sorted.cancel(event as u64));
                    }
                    Step::Cancel(_) => {}
                    Step::Take => prop_assert_eq!(queue.take(), sorted.take()),
                }
                prop_assert_eq!(queue.first(), sorted.0.first().map(|(cycle, _)| *cycle));
                prop_assert_eq!(queue.len(), sorted.0.len());
            }
            while let Some(event) = sorted.take() {
                prop_assert_eq!(queue.take(), Some(event));
            }
            prop_assert!(queue.is_empty());
        }
    }
}
