//! The network of a many-core platform, simulated: a deterministic discrete-event kernel and 2-D meshes.
//!
//! A [`Simulation`] runs processes, each an `async fn`, by the cycle. A [`Mesh`] carries packets between the nodes of a
//! grid, by one of three models of its routers; a [`Fabric`] lets processes send messages over it. The same parameters
//! and the same programs give the same run, event for event, on any host.
//!
//! ```
//! use metes_noc::{Fabric, Faults, Kind, Mesh, Parameters, Simulation};
//!
//! let mesh = Mesh::new(&Parameters::new(4, 4, Kind::Buffered), &Faults::default())?;
//! let mut simulation = Simulation::new();
//! let fabric = Fabric::new(&mut simulation, mesh);
//! let (asks, answers, clock) = (fabric.clone(), fabric.clone(), simulation.clock());
//! simulation.spawn("asks", async move {
//!     asks.send(0, 15, "how far is it?").unwrap();
//!     assert_eq!(asks.receive(0).await.message, "six hops");
//!     // A way takes 4 cycles in each of 7 routers, and one in each of two interfaces.
//!     assert_eq!(clock.now(), 2 * (1 + 4 * 7 + 1));
//! });
//! simulation.spawn("answers", async move {
//!     let question = answers.receive(15).await;
//!     answers.send(15, question.source, "six hops").unwrap();
//! });
//! simulation.run()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | [`event`] | processes, time, what they wait for |
//! | [`mesh`] | topology, packets, routers, faults, statistics |
//! | [`fabric`] | a mesh among processes |
//! | [`parameters`] | what a mesh is made of, from TOML |
//! | [`traffic`] | uniform random traffic, measured |
//!
//! *Invariant:* nothing here asks the host for the time, for random numbers or for an order of addresses: what a run does
//! follows from what it is given.
#![forbid(unsafe_code)]

pub mod event;
pub mod fabric;
pub mod mesh;
pub mod parameters;
pub mod traffic;

pub use event::{Clock, Deadlock, Simulation};
pub use fabric::{Fabric, Letter};
pub use mesh::{Faults, Mesh, Topology};
pub use parameters::{Kind, Parameters, ParametersError};
