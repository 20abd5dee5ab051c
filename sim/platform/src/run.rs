//! A run: programs on nodes under a manager, from the first cycle until all have ended.
//!
//! *Invariant:* whenever nothing is done at a heap, each of its bytes is used or free, and each block that it has given out
//! has a tag, but for as many as have been lost.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use metes_mesh::Impossible;
use metes_noc::mesh::Error as NetworkError;
use metes_noc::mesh::Statistics;
use metes_noc::{Mesh, Simulation};

use crate::counts::Counts;
use crate::faults::{Death, Faults, NoFaults};
use crate::hardware::{Hardware, Living};
use crate::heaps::{HeapKind, TooSmall};
use crate::managers::{Manager, ManagerKind};
use crate::memory::Audit;
use crate::parameters::{Parameters, ParametersError};
use crate::program::{Action, Outcome, Program};
use crate::recording::{Recorder, Recording};

/// What is run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The platform.
    pub parameters: Parameters,
    /// Who manages the heaps.
    pub manager: ManagerKind,
    /// The kind of heap of `metes`; the papers' have first fit.
    pub heaps: HeapKind,
    /// What goes wrong.
    pub faults: Faults,
    /// The cycle after which a run is broken off.
    pub limit: u64,
    /// Cycles between two looks at it that are recorded; none are at 0.
    pub every: u64,
}

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// The platform cannot be.
    #[error(transparent)]
    Parameters(#[from] ParametersError),
    /// The faults cannot be.
    #[error(transparent)]
    Faults(#[from] NoFaults),
    /// There is no such heap space.
    #[error(transparent)]
    Space(#[from] Impossible),
    /// A heap is too small for itself.
    #[error(transparent)]
    TooSmall(#[from] TooSmall),
    /// The network cannot be.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Not a program for each node.
    #[error("{programs} programs for {nodes} nodes: give each node one")]
    Programs {
        /// How many there are.
        programs: usize,
        /// How many nodes.
        nodes: usize,
    },
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The cycle of the last event.
    pub cycles: u64,
    /// What each node has done.
    pub nodes: Vec<Counts>,
    /// What each heap holds at the end.
    pub audits: Vec<Audit>,
    /// Requested bytes in each heap at the end, and the most at a time.
    pub live: Vec<(u64, u64)>,
    /// Nodes that have died, in their order.
    pub dead: Vec<usize>,
    /// Blocks of dead nodes that others have taken over.
    pub adopted: u64,
    /// Frees of what was no block in use.
    pub bad_frees: u64,
    /// Packets.
    pub network: Statistics,
    /// Most packets under way at a time.
    pub most_in_flight: u64,
    /// Living nodes whose programs have not ended.
    pub stuck: Vec<usize>,
    /// Heaps that were found not to add up, and when: always none.
    pub unsound: Vec<(usize, u64)>,
    /// How it looked on the way.
    pub recording: Recording,
}

impl Run {
    /// Blocks that no tag knows, in heaps of living nodes.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let living = (0..self.audits.len()).filter(|node| !self.dead.contains(node));
        living.map(|node| self.audits[node].lost()).sum()
    }

    /// Mean cycles of a request or free, over all nodes; none if there were none.
    #[must_use]
    pub fn cycles_an_event(&self) -> Option<f64> {
        let events: u64 = self.nodes.iter().map(Counts::events).sum();
        let cycles: u128 = self.nodes.iter().map(Counts::managed).sum();
        (events > 0).then(|| cycles as f64 / events as f64)
    }

    /// Microinstructions for communication, of all controllers.
    #[must_use]
    pub fn communication(&self) -> u64 {
        self.nodes.iter().map(|counts| counts.communication).sum()
    }

    /// The sum of one count of all nodes.
    #[must_use]
    pub fn sum(&self, of: impl Fn(&Counts) -> u64) -> u64 {
        self.nodes.iter().map(of).sum()
    }

    /// Part of the cycles of requests and frees that went by waiting for locks.
    #[must_use]
    pub fn lock_share(&self) -> f64 {
        let cycles: u128 = self.nodes.iter().map(Counts::managed).sum();
        match cycles {
            0 => 0.0,
            cycles => self.sum(|counts| counts.lock_wait) as f64 / cycles as f64,
        }
    }
}

/// A program, and how far it is.
struct Played {
    program: RefCell<Box<dyn Program>>,
    runs: Cell<bool>,
}

/// What processes of a run share.
struct Stage {
    manager: Rc<Manager>,
    hardware: Rc<Hardware>,
    programs: Vec<Played>,
    adopted: Cell<u64>,
    bad_frees: Cell<u64>,
}

/// Runs programs, one for each node. Deterministic.
///
/// # Errors
/// [`NotRun`] says what to change.
pub fn run(setup: &Setup, programs: Vec<Box<dyn Program>>) -> Result<Run, NotRun> {
    setup.parameters.check()?;
    let nodes = setup.parameters.nodes();
    setup.faults.check(nodes)?;
    if programs.len() != nodes {
        let programs = programs.len();
        return Err(NotRun::Programs { programs, nodes });
    }
    let mesh = Mesh::new(&setup.parameters.network, &setup.faults.of_network())?;
    let mut simulation = Simulation::new();
    let hardware = Rc::new(Hardware::new(
        &mut simulation,
        &setup.parameters,
        mesh,
        &setup.faults,
    ));
    let manager = Rc::new(Manager::new(
        setup.manager,
        Rc::clone(&hardware),
        setup.heaps,
    )?);
    let played = |program| Played {
        program: RefCell::new(program),
        runs: Cell::new(false),
    };
    let stage = Rc::new(Stage {
        manager,
        hardware,
        programs: programs.into_iter().map(played).collect(),
        adopted: Cell::new(0),
        bad_frees: Cell::new(0),
    });
    for node in 0..nodes {
        stage.set(&mut simulation, node);
    }
    simulation.serve("watch for deaths", Rc::clone(&stage).notice_deaths());
    for &Death { node, from } in &setup.faults.deaths {
        let hardware = Rc::clone(&stage.hardware);
        simulation.serve(format!("death of node {node}"), async move {
            hardware.clock.until(from).await;
            hardware.die(node);
        });
    }
    Ok(stage.watch(simulation, setup))
}

impl Stage {
    /// Puts a node's processes into a simulation.
    fn set(self: &Rc<Self>, simulation: &mut Simulation, node: usize) {
        let living = |does| Living::new(Rc::clone(&self.hardware), node, does);
        let hardware = Rc::clone(&self.hardware);
        let sort = async move { hardware.sort(node).await };
        simulation.serve(format!("interface of node {node}"), sort);
        let serve = Rc::clone(&self.manager).serve(node);
        simulation.serve(format!("controller of node {node}"), living(serve));
        self.play(node);
    }

    /// Lets a node's program run.
    fn play(self: &Rc<Self>, node: usize) {
        self.programs[node].runs.set(true);
        let stage = Rc::clone(self);
        let does = async move { stage.perform(node).await };
        let living = Living::new(Rc::clone(&self.hardware), node, does);
        self.hardware
            .clock
            .serve(format!("program of node {node}"), living);
    }

    async fn perform(&self, node: usize) {
        let hardware = &self.hardware;
        let played = &self.programs[node];
        let mut outcome = Outcome::Begin;
        loop {
            let now = hardware.clock.now();
            let action = played.program.borrow_mut().next(outcome, now);
            outcome = match action {
                Action::Compute(instructions) => {
                    hardware.compute(instructions).await;
                    hardware.count(node, |counts| counts.computed += hardware.clock.now() - now);
                    Outcome::Done
                }
                Action::Pass(cycles) => {
                    hardware.clock.delay(cycles).await;
                    Outcome::Done
                }
                Action::Allocate { size } => match self.manager.allocate(node, size).await {
                    Some(address) => Outcome::Block(address),
                    None => Outcome::Refused,
                },
                Action::Free { address, size } => {
                    let freed = self.manager.free(node, address, size).await;
                    self.bad_frees.set(self.bad_frees.get() + u64::from(!freed));
                    Outcome::Freed(freed)
                }
                Action::At { heap, step } => {
                    let outcome = self.manager.step(node, heap, step).await;
                    let bad = outcome == Outcome::Freed(false);
                    self.bad_frees.set(self.bad_frees.get() + u64::from(bad));
                    outcome
                }
                Action::Send { to, words } => {
                    let message = crate::program::Message { from: node, words };
                    hardware.pass(hardware.parameters.core.command).await;
                    hardware.send_task(message, to).await;
                    Outcome::Done
                }
                Action::Receive => {
                    let message = hardware.nodes[node].tasks.receive().await;
                    hardware.count(node, |counts| counts.waited += hardware.clock.now() - now);
                    Outcome::Message(message)
                }
                Action::End => break,
            };
        }
        played.runs.set(false);
        hardware.count(node, |counts| counts.ended = Some(hardware.clock.now()));
    }

    /// Notices deaths, each after a while, and lets another node take over what the dead had.
    async fn notice_deaths(self: Rc<Self>) {
        loop {
            let dead = self.hardware.deaths.receive().await;
            if self.manager.kind == ManagerKind::Metes {
                let burial = Rc::clone(&self).take_over(dead);
                self.hardware
                    .clock
                    .serve(format!("burial of node {dead}"), burial);
            }
        }
    }

    async fn take_over(self: Rc<Self>, dead: usize) {
        let hardware = &self.hardware;
        let detection = hardware.parameters.recovery.detection;
        hardware.clock.delay(detection).await;
        hardware.declare_dead(dead);
        let nodes = self.programs.len();
        for node in (1..nodes).map(|step| (dead + step) % nodes) {
            if hardware.is_dead(node) {
                continue;
            }
            if let Some(addresses) = self.manager.bury(node, dead).await {
                self.adopted
                    .set(self.adopted.get() + addresses.len() as u64);
                let played = &self.programs[node];
                played.program.borrow_mut().inherit(dead, &addresses);
                if !played.runs.get() {
                    self.play(node);
                }
                return;
            }
        }
    }

    /// Moves the simulation on, and looks at it now and then.
    fn watch(self: Rc<Self>, mut simulation: Simulation, setup: &Setup) -> Run {
        let nodes = self.programs.len();
        let mut recorder = Recorder::new(setup);
        let mut unsound = Vec::new();
        let mut next = setup.every;
        loop {
            let until = if setup.every == 0 {
                setup.limit
            } else {
                next.min(setup.limit)
            };
            let more = simulation.run_until(until);
            if setup.every > 0 {
                let audits = self.audits();
                unsound.extend(self.unsound(&audits, until));
                recorder.look(until, &self.manager, &self.hardware, &audits);
            }
            if !more || until == setup.limit {
                break;
            }
            next += setup.every;
        }
        let audits = self.audits();
        let cycles = simulation.clock().now();
        unsound.extend(self.unsound(&audits, cycles));
        let all = || 0..nodes;
        let hardware = &self.hardware;
        let stuck = |node: &usize| self.programs[*node].runs.get() && !hardware.is_dead(*node);
        Run {
            cycles,
            nodes: hardware
                .nodes
                .iter()
                .map(|node| node.counts.borrow().clone())
                .collect(),
            live: all()
                .map(|node| {
                    let part = &self.manager.memory.parts[node];
                    (part.live.get(), part.peak.get())
                })
                .collect(),
            dead: all().filter(|node| hardware.is_dead(*node)).collect(),
            adopted: self.adopted.get(),
            bad_frees: self.bad_frees.get(),
            network: hardware.fabric.statistics(),
            most_in_flight: hardware.most_in_flight(),
            stuck: all().filter(stuck).collect(),
            unsound,
            recording: recorder.recording(),
            audits,
        }
    }

    fn audits(&self) -> Vec<Audit> {
        let nodes = 0..self.programs.len();
        nodes.map(|node| self.manager.memory.audit(node)).collect()
    }

    /// Heaps that do not add up at a cycle.
    fn unsound(&self, audits: &[Audit], cycle: u64) -> Vec<(usize, u64)> {
        let sum = |audit: &Audit| audit.used + audit.free;
        let is_unsound = |node: &usize| {
            let audit = &audits[*node];
            let tagged = self.manager.kind == ManagerKind::Metes;
            let known = audit.in_use + audit.parked;
            let adds_up = audit.whole && sum(audit) == self.manager.memory.parts[*node].whole;
            !adds_up || tagged && known != audit.blocks
        };
        let unsound = (0..audits.len()).filter(is_unsound);
        unsound.map(|node| (node, cycle)).collect()
    }
}
