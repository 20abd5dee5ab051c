//! A machine in a file: everything that decides how it goes on.
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | `METESL3\n` |
//! | 4 | version of the format |
//! | 4 | length of the state |
//! | so many | the state: configuration, cores, interrupts, devices, ROM, and where the run stands |
//! | 4 | checksum of all before |
//! | 4 | how many pages of RAM are not zero |
//! | 4100 each | its number, in order, and its bytes |
//! | 4 | checksum of all before |
//!
//! Numbers are big-endian, checksums CRC-32. The state is read only when its checksum is right. What follows from the
//! configuration (timing, tables of the bus) and from RAM (decoded and translated code) is not in the file.
//!
//! Invariant: a machine that is resumed does what the one it was taken of would have done, instruction for
//! instruction and cycle for cycle; of a file that is not whole there is no machine.

use std::io::{self, BufReader, BufWriter, Read, Write};

use serde::{Deserialize, Serialize};

use crate::bus::{Bus, PAGE};
use crate::core::Core;
use crate::devices::Device;
use crate::machine::{Configuration, Impossible, Machine};

const MAGIC: &[u8; 8] = b"METESL3\n";
/// Changes with whatever the state is made of: a test holds it beside the bytes of a fresh machine.
const VERSION: u32 = 3;
/// Longest state: the largest ROM, the largest flash memory, and room.
const LONGEST: u32 = 128 << 20;

/// Why there is no machine in a file.
#[derive(Debug, thiserror::Error)]
pub enum NoSnapshot {
    /// It could not be read.
    #[error("the snapshot cannot be read: {0}; see to the file or the disk, and try again")]
    Unread(#[from] io::Error),
    /// Another file.
    #[error("it is no snapshot of a LEON3 machine; give a file that one was saved to")]
    Foreign,
    /// A snapshot of another version of this program.
    #[error(
        "it is a snapshot of format {is}, but this program reads format {VERSION}; take it anew, or use the program that \
         took it"
    )]
    Version {
        /// The file's.
        is: u32,
    },
    /// Not what was written.
    #[error("the snapshot is damaged: {0}; take it anew")]
    Damaged(&'static str),
    /// A device of the file is not on the bus, or one on the bus is not in the file.
    #[error(
        "the snapshot has device {name:?} at {base:#010x}, and the machine has not, or the other way round; attach the same \
         devices as when it was taken"
    )]
    Device {
        /// Its name.
        name: String,
        /// Its first address.
        base: u32,
    },
    /// A device does not know what the file has for it.
    #[error("device {name:?} does not know its state: {why}; take the snapshot anew")]
    State {
        /// Its name.
        name: String,
        /// What it says.
        why: String,
    },
    /// No machine has the configuration.
    #[error("the snapshot is of a machine that cannot be: {0}; take it anew")]
    Impossible(#[from] Impossible),
}

/// A device's state.
#[derive(Serialize, Deserialize)]
struct Held {
    base: u32,
    name: String,
    state: Vec<u8>,
}

/// Everything but RAM.
#[derive(Serialize, Deserialize)]
struct State {
    configuration: Configuration,
    cores: Vec<Core>,
    turn: usize,
    slice: u64,
    printed: Vec<Vec<u8>>,
    rom: Vec<u8>,
    interrupts: Vec<u8>,
    devices: Vec<Held>,
    now: u64,
    busy: u64,
    started: u64,
    past: u64,
    notes: Vec<String>,
}

impl Machine {
    /// Writes everything that decides how it goes on, of RAM the pages that are not zero.
    ///
    /// # Errors
    /// The writer's.
    pub fn snapshot(&self, out: impl Write) -> io::Result<()> {
        let state = postcard::to_stdvec(&self.state()).map_err(io::Error::other)?;
        let mut out = Summed::new(BufWriter::new(out));
        out.put(MAGIC)?;
        out.put_number(VERSION)?;
        out.put_number(length(state.len())?)?;
        out.put(&state)?;
        out.put_sum()?;
        let zero = [0; PAGE];
        let pages = self.bus.ram().chunks(PAGE).zip(0u32..);
        let pages: Vec<_> = pages.filter(|(page, _)| **page != zero).collect();
        out.put_number(length(pages.len())?)?;
        for (page, number) in pages {
            out.put_number(number)?;
            out.put(page)?;
        }
        out.put_sum()?;
        out.through.flush()
    }

    fn state(&self) -> State {
        let bus = &self.bus;
        let devices = bus.attached.iter().map(|attached| Held {
            base: attached.base,
            name: attached.device.name().to_owned(),
            state: attached.device.save(),
        });
        State {
            configuration: self.configuration().clone(),
            cores: self.cores.clone(),
            turn: self.turn,
            slice: self.slice,
            printed: self.printed.clone(),
            rom: bus.rom.clone(),
            interrupts: bus.interrupts.save(),
            devices: devices.collect(),
            now: bus.now,
            busy: bus.busy,
            started: bus.started,
            past: bus.past,
            notes: bus.notes.clone(),
        }
    }

    /// The machine of a file that [`Machine::snapshot`] wrote, which has the devices of its configuration alone.
    ///
    /// # Errors
    /// The file is no snapshot, or not whole.
    pub fn resume(from: impl Read) -> Result<Machine, NoSnapshot> {
        Machine::resume_with(from, |_, _| ())
    }

    /// As [`Machine::resume`], with the devices that `attach` attaches beside those of the configuration.
    ///
    /// # Errors
    /// The file is no snapshot, not whole, or has other devices.
    pub fn resume_with(
        from: impl Read,
        attach: impl FnOnce(&Configuration, &mut Bus),
    ) -> Result<Machine, NoSnapshot> {
        let mut from = Summed::new(BufReader::new(from));
        if from.take_array::<8>().ok().as_ref() != Some(MAGIC) {
            return Err(NoSnapshot::Foreign);
        }
        let is = from.take_number()?;
        if is != VERSION {
            return Err(NoSnapshot::Version { is });
        }
        let size = from.take_number()?;
        let state = from.take_bytes(size)?;
        from.check_sum()?;
        let state: State = postcard::from_bytes(&state)
            .map_err(|_| NoSnapshot::Damaged("its state cannot be read"))?;
        let mut machine = Machine::new(&state.configuration)?;
        attach(&state.configuration, &mut machine.bus);
        machine.set_state(state)?;
        machine.take_pages(&mut from)?;
        Ok(machine)
    }

    fn set_state(&mut self, state: State) -> Result<(), NoSnapshot> {
        let like = state.cores.len() == self.cores.len()
            && std::iter::zip(&state.cores, &self.cores).all(|(core, own)| is_like(core, own));
        if !like || state.turn > self.cores.len() || state.printed.len() != self.printed.len() {
            return Err(NoSnapshot::Damaged(
                "its cores are not those of its configuration",
            ));
        }
        self.cores = state.cores;
        self.turn = state.turn;
        self.slice = state.slice;
        self.printed = state.printed;
        let bus = &mut self.bus;
        bus.rom = state.rom;
        restore(&mut bus.interrupts, &state.interrupts)?;
        bus.set_devices(&state.devices)?;
        bus.now = state.now;
        bus.busy = state.busy;
        bus.started = state.started;
        bus.past = state.past;
        bus.notes = state.notes;
        bus.settled();
        Ok(())
    }

    fn take_pages(&mut self, from: &mut Summed<impl Read>) -> Result<(), NoSnapshot> {
        let count = from.take_number()?;
        let mut least = 0;
        for _ in 0..count {
            let number = from.take_number()? as usize;
            let bytes = from.take_array::<PAGE>()?;
            if number < least || !self.bus.set_page(number, &bytes) {
                return Err(NoSnapshot::Damaged("a page of it lies outside RAM"));
            }
            least = number + 1;
        }
        from.check_sum()?;
        match from.through.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(NoSnapshot::Damaged("something follows its end")),
        }
    }
}

impl Bus {
    /// Every device on the bus is in the file once, in the order of addresses, and no other.
    fn set_devices(&mut self, devices: &[Held]) -> Result<(), NoSnapshot> {
        for index in 0..devices.len().max(self.attached.len()) {
            let held = devices.get(index);
            let name = |name: &str, base| NoSnapshot::Device {
                name: name.to_owned(),
                base,
            };
            match (held, self.attached.get_mut(index)) {
                (Some(held), Some(own))
                    if (held.base, held.name.as_str()) == (own.base, own.device.name()) =>
                {
                    restore(&mut *own.device, &held.state)?;
                }
                (Some(held), _) => return Err(name(&held.name, held.base)),
                (None, Some(own)) => return Err(name(own.device.name(), own.base)),
                (None, None) => {}
            }
        }
        Ok(())
    }
}

fn restore(device: &mut dyn Device, state: &[u8]) -> Result<(), NoSnapshot> {
    let name = device.name();
    device.restore(state).map_err(|why| NoSnapshot::State {
        name: name.to_owned(),
        why,
    })
}

/// Whether `core` can take the place of `own`.
fn is_like(core: &Core, own: &Core) -> bool {
    let (registers, others) = (&core.registers, &own.registers);
    let caches = match (&core.caches, &own.caches) {
        (Some(caches), Some(own)) => {
            std::iter::zip(&**caches, &**own).all(|(cache, own)| cache.is_like(own))
        }
        (None, None) => true,
        _ => false,
    };
    caches
        && core.number == own.number
        && registers.windows() == others.windows()
        && registers.current() < registers.windows()
        && registers.get(0) == 0
}

fn length(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(io::Error::other)
}

/// What is read or written, and the checksum of it.
struct Summed<T> {
    through: T,
    sum: crc32fast::Hasher,
}

impl<T> Summed<T> {
    fn new(through: T) -> Summed<T> {
        Summed {
            through,
            sum: crc32fast::Hasher::new(),
        }
    }
}

impl<W: Write> Summed<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.through.write_all(bytes)
    }

    fn put_number(&mut self, number: u32) -> io::Result<()> {
        self.put(&number.to_be_bytes())
    }

    fn put_sum(&mut self) -> io::Result<()> {
        let sum = self.sum.clone().finalize();
        self.put_number(sum)
    }
}

impl<R: Read> Summed<R> {
    fn take_array<const SIZE: usize>(&mut self) -> Result<[u8; SIZE], NoSnapshot> {
        let mut bytes = [0; SIZE];
        self.through.read_exact(&mut bytes).map_err(ends_early)?;
        self.sum.update(&bytes);
        Ok(bytes)
    }

    fn take_number(&mut self) -> Result<u32, NoSnapshot> {
        self.take_array().map(u32::from_be_bytes)
    }

    /// Takes `size` bytes, and memory only for as many as there are.
    fn take_bytes(&mut self, size: u32) -> Result<Vec<u8>, NoSnapshot> {
        if size > LONGEST {
            return Err(NoSnapshot::Damaged("its state is too long"));
        }
        let mut bytes = Vec::new();
        let source = &mut self.through;
        source.take(u64::from(size)).read_to_end(&mut bytes)?;
        if bytes.len() < size as usize {
            return Err(ends_early(io::ErrorKind::UnexpectedEof.into()));
        }
        self.sum.update(&bytes);
        Ok(bytes)
    }

    fn check_sum(&mut self) -> Result<(), NoSnapshot> {
        let must = self.sum.clone().finalize();
        if self.take_number()? == must {
            Ok(())
        } else {
            Err(NoSnapshot::Damaged("its checksum is another"))
        }
    }
}

fn ends_early(error: io::Error) -> NoSnapshot {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        NoSnapshot::Damaged("it ends too early")
    } else {
        NoSnapshot::Unread(error)
    }
}

/// Arrays of 64 words, which serde knows up to 32.
pub(crate) mod words {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        words: &[u32; 64],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        words.as_slice().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[u32; 64], D::Error> {
        let words = Vec::<u32>::deserialize(deserializer)?;
        words
            .try_into()
            .map_err(|_| D::Error::custom("not 64 registers"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who changes what the state is made of changes these bytes, and then VERSION, too.
    #[test]
    fn the_version_stands_for_these_bytes() {
        let configuration = Configuration {
            memory: 4096,
            ..Configuration::default()
        };
        let mut bytes = Vec::new();
        let machine = Machine::new(&configuration).unwrap();
        machine.snapshot(&mut bytes).unwrap();
        let sum = crc32fast::hash(&bytes[..bytes.len() - 4]);
        let message = "the state is another: count VERSION up, and write the new figures here";
        assert_eq!(
            (VERSION, bytes.len(), sum),
            (3, 883, 3_693_365_811),
            "{message}"
        );
    }
}
