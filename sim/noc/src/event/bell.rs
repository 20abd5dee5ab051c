//! A signal to one process that has better things to do than to look.
//!
//! *Invariant:* a ring is never lost: rung while nobody listens, the bell is heard at once by whoever listens next.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::kernel::{Awaited, Clock, Delay, Process};

/// A bell, which one process hears. Clones are the same bell.
#[derive(Clone)]
pub struct Bell {
    clock: Clock,
    shared: Rc<Shared>,
}

struct Shared {
    name: Rc<str>,
    rung: Cell<bool>,
    listener: Cell<Option<Process>>,
}

impl Awaited for Shared {
    fn describe(&self, _names: &dyn Fn(Process) -> Rc<str>) -> String {
        format!("the bell {}", self.name)
    }
}

impl Clock {
    /// A bell that was not rung; the name is for reports.
    #[must_use]
    pub fn bell(&self, name: impl Into<Rc<str>>) -> Bell {
        Bell {
            clock: self.clone(),
            shared: Rc::new(Shared {
                name: name.into(),
                rung: Cell::new(false),
                listener: Cell::new(None),
            }),
        }
    }
}

impl Bell {
    /// Rings; takes no time. Rings that nobody heard are one. O(log n) of the events.
    pub fn ring(&self) {
        self.shared.rung.set(true);
        if let Some(process) = self.shared.listener.take() {
            self.clock.resume_at(self.clock.now(), process);
        }
    }

    /// Waits for a ring, or for a cycle if one is given, whichever is first.
    #[must_use = "it is heard when it is awaited"]
    pub fn heard(&self, latest: Option<u64>) -> Heard {
        Heard {
            bell: self.clone(),
            delay: latest.map(|cycle| self.clock.until(cycle)),
        }
    }
}

/// A ring of a [`Bell`], not heard yet: whether it was one, rather than the time.
pub struct Heard {
    bell: Bell,
    delay: Option<Delay>,
}

impl Future for Heard {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        if self.bell.shared.rung.take() {
            return Poll::Ready(true);
        }
        if let Some(delay) = &mut self.delay
            && Pin::new(delay).poll(context).is_ready()
        {
            return Poll::Ready(false);
        }
        let Bell { clock, shared } = &self.bell;
        shared.listener.set(Some(clock.current()));
        clock.note(Rc::clone(shared) as Rc<dyn Awaited>);
        Poll::Pending
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        self.bell.shared.listener.set(None);
    }
}

#[cfg(test)]
mod tests {
    use crate::event::Simulation;

    #[test]
    fn what_comes_first_is_heard() {
        let mut simulation = Simulation::new();
        let clock = simulation.clock();
        let bell = clock.bell("door");
        let (listens, ringer) = (bell.clone(), clock.clone());
        simulation.spawn("listener", async move {
            assert!(listens.heard(Some(10)).await);
            assert_eq!(clock.now(), 4);
            assert!(!listens.heard(Some(6)).await);
            assert_eq!(clock.now(), 6);
            clock.delay(3).await;
            // Rung at 8, while it was away.
            assert!(listens.heard(None).await);
            assert_eq!(clock.now(), 9);
            listens.heard(None).await;
        });
        simulation.spawn("ringer", async move {
            ringer.delay(4).await;
            bell.ring();
            ringer.delay(4).await;
            bell.ring();
        });
        let deadlock = simulation.run().unwrap_err();
        assert_eq!(deadlock.waiting[0].awaited, ["the bell door"]);
        assert_eq!(deadlock.cycle, 9);
    }
}
