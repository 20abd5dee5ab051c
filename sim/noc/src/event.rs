//! Processes, time, and what processes wait for: a discrete-event executor on one thread.
//!
//! A process is a future. It runs until it waits; what it waits for lets it go on: [`Clock::delay`] after some cycles,
//! [`Resource::acquire`] when it has what only one can have, [`Mailbox::receive`] when there is a message. Between two
//! waits no time passes.
//!
//! ```
//! use metes_noc::Simulation;
//! let mut simulation = Simulation::new();
//! let clock = simulation.clock();
//! let (lock, mail) = (clock.resource("lock"), clock.mailbox("mail"));
//! for number in 0..3 {
//!     let (clock, lock, mail) = (clock.clone(), lock.clone(), mail.clone());
//!     simulation.spawn(format!("worker {number}"), async move {
//!         let held = lock.acquire().await;
//!         clock.delay(10).await;
//!         drop(held);
//!         mail.send((clock.now(), number));
//!     });
//! }
//! simulation.spawn("reader", async move {
//!     assert_eq!(mail.receive().await, (10, 0));
//!     assert_eq!(mail.receive().await, (20, 1));
//!     assert_eq!(mail.receive().await, (30, 2));
//!     mail.receive().await;
//! });
//! let deadlock = simulation.run().unwrap_err();
//! assert_eq!(deadlock.to_string(), "at cycle 30 nothing is left to happen, but reader waits for a message in mail");
//! ```
//!
//! *Invariant:* what happens happens in the order of (cycle, number of the event), so a run can be repeated bit by bit. A
//! process is polled for an event of its own alone, and whatever it waits for tolerates to be polled for another's sake.

mod bell;
mod kernel;
mod mailbox;
mod queue;
mod resource;

pub use bell::{Bell, Heard};
pub use kernel::{Clock, Deadlock, Delay, Simulation, Waiting};
pub use mailbox::{Mailbox, Receive};
pub use queue::{Queue, Ticket};
pub use resource::{Acquire, Held, Resource, Use};
