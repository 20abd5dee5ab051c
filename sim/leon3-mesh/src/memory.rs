//! Memory of which each node has a part, as a device of the machine.
//!
//! A load, a store and an exchange (`casa`, `swap`, `ldstub`) of a word at home is served by the node's own memory. Of another
//! node's it is a packet there, the service, and a packet back: two halves of an exchange go as one, and a store waits for its
//! answer, so that nodes see each other's stores in the order of the program without a fence. A doubleword is two words.
//!
//! *Invariant:* a memory serves one access at a time; a packet keeps to the links' timelines; what a core waits for is over
//! before it goes on.

use metes_leon3::devices::{Access, Device, Identity};
use metes_leon3::{Bus, Machine};
use metes_noc::mesh::{Timeline, Timelines};
use serde::{Deserialize, Serialize};

use crate::homes::Homes;
use crate::settings::{Settings, Unfit};

/// Where the memory begins: the heap space of the paper (section II).
pub const BASE: u32 = 0x6000_0000;
/// Where the registers of its map lie: in the page before.
pub const REGISTERS: u32 = BASE - PAGE;
const PAGE: u32 = 0x1000;

/// What nodes have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Accesses at home.
    pub local: u64,
    /// Accesses to other nodes.
    pub remote: u64,
    /// Of all, exchanges.
    pub exchanges: u64,
    /// Links that packets have passed.
    pub hops: u64,
    /// Cycles that cores have waited for accesses.
    pub waited: u64,
    /// Of these, cycles beyond those of the same accesses with nobody in the way.
    pub contended: u64,
}

/// The memory of all nodes.
pub struct MeshMemory {
    settings: Settings,
    words: Vec<u32>,
    homes: Homes,
    ways: Timelines,
    /// When each node's memory serves.
    ports: Vec<Timeline>,
    counts: Counts,
}

/// Attaches a memory of `settings` to a machine, at [`BASE`], its map at [`REGISTERS`].
///
/// # Errors
/// [`Unfit`] says what to change.
pub fn attach(machine: &mut Machine, settings: &Settings) -> Result<(), Unfit> {
    let configuration = machine.configuration();
    let ram = configuration.memory;
    if machine.bus.base() as usize + ram > REGISTERS as usize {
        return Err(Unfit::Ram { ram });
    }
    let cores = configuration.cores;
    attach_to(&mut machine.bus, cores, settings)
}

/// Attaches to a bus, as a snapshot asks for when it is resumed.
///
/// # Errors
/// As of [`attach`].
pub fn attach_to(bus: &mut Bus, cores: usize, settings: &Settings) -> Result<(), Unfit> {
    let memory = MeshMemory::new(settings, cores)?;
    bus.attach(REGISTERS, PAGE + settings.memory, Box::new(memory));
    Ok(())
}

impl MeshMemory {
    /// A memory for so many cores, all zero.
    ///
    /// # Errors
    /// [`Unfit`] says what to change.
    pub fn new(settings: &Settings, cores: usize) -> Result<MeshMemory, Unfit> {
        settings.check(cores)?;
        let nodes = settings.network.topology().nodes();
        Ok(MeshMemory {
            words: vec![0; settings.memory as usize / 4],
            homes: Homes::default(),
            ways: Timelines::alone(&settings.network)?,
            ports: vec![Timeline::default(); nodes],
            counts: Counts::default(),
            settings: settings.clone(),
        })
    }

    /// What nodes have done so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The map.
    #[must_use]
    pub fn homes(&self) -> &Homes {
        &self.homes
    }

    /// Its words.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Lets a core wait for its access to `address`.
    fn serve(&mut self, address: u32, access: &mut Access) {
        let nodes = self.ports.len();
        let (node, home) = (access.core, self.homes.home(address, nodes));
        let (begin, past, service) = (access.cycle, access.past, self.settings.service);
        let counts = &mut self.counts;
        let (done, alone) = if node == home {
            counts.local += 1;
            let served = self.ports[home].reserve(past, begin, service) + service;
            (served, service)
        } else {
            counts.remote += 1;
            let network = &self.settings.network;
            let hops = network.topology().hops(node, home) as u64;
            counts.hops += 2 * hops;
            let arrived = self.ways.carry(node, home, begin, past);
            let served = self.ports[home].reserve(past, arrived, service) + service;
            let back = self.ways.carry(home, node, served, past);
            let way = network.interface_in + hops * network.hop() + network.interface_out;
            (back, 2 * way + service)
        };
        let waits = done - begin;
        counts.waited += waits;
        counts.contended += waits - alone;
        counts.exchanges += u64::from(access.exchange);
        access.wait(waits);
    }
}

/// All that changes, as a snapshot has it.
#[derive(Serialize, Deserialize)]
struct Saved {
    settings: Settings,
    words: Vec<u32>,
    homes: Homes,
    ways: Vec<Timeline>,
    ports: Vec<Timeline>,
    counts: Counts,
}

impl Device for MeshMemory {
    fn name(&self) -> &'static str {
        "memory of a mesh"
    }

    fn identity(&self) -> Option<Identity> {
        None
    }

    fn read(&mut self, offset: u32, access: &mut Access) -> u32 {
        let Some(at) = offset.checked_sub(PAGE) else {
            return self.homes.register(offset as usize / 4);
        };
        self.serve(BASE + at, access);
        self.words[at as usize / 4]
    }

    fn write(&mut self, offset: u32, value: u32, access: &mut Access) {
        let Some(at) = offset.checked_sub(PAGE) else {
            self.homes.set_register(offset as usize / 4, value);
            return;
        };
        // The second half of an exchange has gone with the first.
        if !access.exchange {
            self.serve(BASE + at, access);
        }
        let word = &mut self.words[at as usize / 4];
        *word = *word & !access.bits | value & access.bits;
    }

    fn save(&self) -> Vec<u8> {
        let saved = Saved {
            settings: self.settings.clone(),
            words: self.words.clone(),
            homes: self.homes.clone(),
            ways: self.ways.taken(),
            ports: self.ports.clone(),
            counts: self.counts,
        };
        postcard::to_stdvec(&saved).expect("plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let saved: Saved = postcard::from_bytes(bytes).map_err(|error| error.to_string())?;
        let fits = saved.settings == self.settings
            && saved.words.len() == self.words.len()
            && saved.ports.len() == self.ports.len()
            && saved.ports.iter().all(Timeline::can_be);
        if !fits || !self.ways.take_up(&saved.ways) {
            return Err("it is of a mesh with other settings, or of none".to_owned());
        }
        self.words = saved.words;
        self.homes = saved.homes;
        self.ports = saved.ports;
        self.counts = saved.counts;
        Ok(())
    }
}
