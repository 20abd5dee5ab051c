//! A node whose program is LEON3 code: a machine of one core that runs until it has issued a command.
//!
//! Whoever simulates the platform asks for the next command, does it in whatever time it takes there, and gives the answer with
//! its cycle; the machine's cycles are the node's own time, which an answer that comes late carries forward.
//!
//! *Invariant:* the same image, words and answers give the same commands at the same cycles, by either engine.

use metes_leon3::{Configuration, End, Image, Machine, NoImage, Observer, Stop};

use crate::command::Command;
use crate::controller::{CONTROLLER, Controller, Place, SIZE};

/// A node.
pub struct Leon3Node {
    machine: Machine,
    most: u64,
}

/// What comes of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The result.
    pub word: u32,
    /// The cycle at which it is there, of the node's own time. A core that does not ask for it does not wait.
    pub cycle: u64,
}

/// A command, and when it was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// The command.
    pub command: Command,
    /// The cycle, of the node's own time.
    pub cycle: u64,
    /// Instructions that the core has executed so far.
    pub instructions: u64,
}

/// A program that went astray.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Astray {
    /// It ended otherwise than by `ta 0`.
    #[error(
        "the program of node {node} ended by {end:?}; `metes leon3 run` and `trace` tell where"
    )]
    Ended {
        /// The node.
        node: u32,
        /// How.
        end: End,
    },
    /// It wrote what is no command.
    #[error(
        "node {node} wrote {word:#010x} to its controller, which is no command; its kind, the upper byte, is 1 to 10"
    )]
    NoCommand {
        /// The node.
        node: u32,
        /// The word.
        word: u32,
    },
    /// A command about a node that there is not.
    #[error("node {node} asked for something at node {at}, but there are {nodes}")]
    NoNode {
        /// The node.
        node: u32,
        /// Whom it named.
        at: u32,
        /// How many there are.
        nodes: u32,
    },
    /// An observer has paused it.
    #[error("node {node} was paused before it issued a command; look on without a pause")]
    Paused {
        /// The node.
        node: u32,
    },
    /// It issued nothing for longer than it may.
    #[error(
        "node {node} issued no command within {most} instructions; allow more, or see whether it loops"
    )]
    Silent {
        /// The node.
        node: u32,
        /// How many were allowed.
        most: u64,
    },
}

/// Words that cannot be set in a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// Nothing of the name.
    #[error("the image has no words {name}: give one that has (sim/leon3/images)")]
    Unknown {
        /// The name.
        name: String,
    },
    /// Not as many.
    #[error("{words} words do not fit into {name}, which has {room}")]
    Short {
        /// The name.
        name: String,
        /// How many were given.
        words: usize,
        /// How many it has.
        room: usize,
    },
}

/// Instructions for which a program may be silent, unless told.
const MOST: u64 = 1 << 32;
/// Bytes of a node's own RAM, unless told.
const RAM: usize = 4 << 20;

impl Leon3Node {
    /// A node at the beginning of `image`, on a core with its own RAM of 4 MiB.
    ///
    /// # Errors
    /// The image does not fit.
    pub fn new(image: &Image, place: Place) -> Result<Leon3Node, NoImage> {
        let configuration = Configuration {
            memory: RAM,
            ..Configuration::default()
        };
        Leon3Node::with_configuration(image, place, &configuration)
    }

    /// A node on a core as `configuration` has it, which is alone and without a watchdog whatever that says.
    ///
    /// # Errors
    /// The configuration is impossible, or the image does not fit.
    pub fn with_configuration(
        image: &Image,
        place: Place,
        configuration: &Configuration,
    ) -> Result<Leon3Node, NoImage> {
        let configuration = Configuration {
            cores: 1,
            watchdog: None,
            ..configuration.clone()
        };
        let mut machine = Machine::with_image(&configuration, image)?;
        let controller = Box::new(Controller::new(place));
        machine.bus.attach(CONTROLLER, SIZE, controller);
        Ok(Leon3Node {
            machine,
            most: MOST,
        })
    }

    /// Lets the program be silent for so many instructions, and no longer.
    pub fn silent_for(&mut self, most: u64) {
        self.most = most;
    }

    /// Sets words of the program's data, from `name` on, before it begins.
    ///
    /// # Errors
    /// It has none of the name, or not as many.
    pub fn set(&mut self, image: &Image, name: &str, words: &[u32]) -> Result<(), NoRoom> {
        let unknown = || NoRoom::Unknown {
            name: name.to_owned(),
        };
        let symbol = image.symbol(name).filter(|symbol| !symbol.function);
        let symbol = symbol.ok_or_else(unknown)?;
        let room = symbol.size as usize / 4;
        if words.len() > room {
            return Err(NoRoom::Short {
                name: name.to_owned(),
                words: words.len(),
                room,
            });
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let written = self.machine.bus.write_image(symbol.address, &bytes);
        written.map_err(|_| unknown())
    }

    /// Gives the answer to the command before (at first, any) and runs to the next one.
    ///
    /// # Errors
    /// The program went astray, and cannot go on.
    pub fn next(&mut self, answer: Answer) -> Result<Issued, Astray> {
        self.next_observed(answer, &mut ())
    }

    /// As [`next`](Self::next), while an observer looks on.
    ///
    /// # Errors
    /// As of [`next`](Self::next), or the observer has paused the machine.
    pub fn next_observed(
        &mut self,
        answer: Answer,
        observer: &mut impl Observer,
    ) -> Result<Issued, Astray> {
        let registers = controller(&mut self.machine);
        registers.answer(answer.word, answer.cycle);
        let Place { node, nodes, .. } = registers.place();
        let stop = self.machine.run(self.most, observer);
        let instructions = self.machine.instructions();
        let (cycle, command) = match (stop, controller(&mut self.machine).take()) {
            (_, Some((cycle, command))) => (cycle, command),
            (Stop::End(End::Halt { .. }), None) => (self.machine.cycles(), Ok(Command::Done)),
            (Stop::End(end), None) => return Err(Astray::Ended { node, end }),
            (Stop::Observer { .. }, None) => return Err(Astray::Paused { node }),
            (Stop::Limit, None) => {
                let most = self.most;
                return Err(Astray::Silent { node, most });
            }
        };
        let command = command.map_err(|word| Astray::NoCommand { node, word })?;
        match command.node() {
            Some(at) if at >= nodes => Err(Astray::NoNode { node, at, nodes }),
            _ => Ok(Issued {
                command,
                cycle,
                instructions,
            }),
        }
    }

    /// The machine, to look at, or to choose its engine.
    pub fn machine(&mut self) -> &mut Machine {
        &mut self.machine
    }
}

fn controller(machine: &mut Machine) -> &mut Controller {
    let controller = machine.bus.device(0);
    controller.expect("it was attached")
}
