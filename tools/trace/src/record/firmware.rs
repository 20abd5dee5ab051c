//! Recording firmware: runs an image for LEON3 in the simulator of this workspace, and gives the trace of its heap
//! calls.
//!
//! The image is not changed: its heap is known by the names of its functions ([`calls`]). Times are cycles of the cores
//! as nanoseconds, threads are cores. The same image and configuration give the same trace.
//!
//! What a recording does not have: calls that the compiler has put into their callers (of a heap in Rust that is
//! optimised as a whole, say), and requests that were refused, which are counted.
//!
//! Invariant: an event stands where it takes effect: a free where it begins, an allocation where it returns. Whatever
//! ended the image, what it had asked for until then is in the trace.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use metes_leon3::calls::{self, Function, HeapCall, HeapCalls, Kind, Listener, Shape};
use metes_leon3::{Configuration, Image, Machine, NoImage, Stop};

use crate::blocks::{Asked, Blocks, Resizing};
use crate::error::Inconsistency;
use crate::trace::{Provenance, Trace};

/// Alignment that `malloc` promises on SPARC V8.
const MALLOC_ALIGN: u32 = 8;
/// Instructions between two looks of the caller.
const PORTION: u64 = 5_000_000;
/// Most functions that an error names.
const MOST_NAMES: usize = 8;

/// How to record firmware.
#[derive(Clone, Debug, Default)]
pub struct FirmwareOptions {
    /// The machine.
    pub configuration: Configuration,
    /// Heap functions, by symbol or address (`0x40001000`), and how they are called. If there are none, the usual ones
    /// ([`calls::USUAL`]) are looked for.
    pub functions: Vec<(Shape, String)>,
    /// Most instructions of all cores together; None is no end.
    pub most: Option<u64>,
}

/// What a recording of firmware gave.
pub struct FirmwareRecording {
    /// The trace.
    pub trace: Trace,
    /// Of each event of the trace, where its block lies: of a free, where it lay.
    pub places: Vec<u32>,
    /// Instructions of allocations, frees and resizes that returned, in this order.
    pub counted: [CallCount; 3],
    /// What is to be said of it.
    pub findings: Findings,
    /// Why the run ended; None if the caller ended it.
    pub stop: Option<Stop>,
    /// The machine as it is then.
    pub machine: Machine,
    /// The image.
    pub image: Image,
    /// The functions that were looked on.
    pub functions: Vec<Function>,
}

/// Calls of heap functions, from the first instruction of each to the first one behind its call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCount {
    /// Calls.
    pub calls: u64,
    /// Instructions of all.
    pub instructions: u64,
    /// Instructions of the longest.
    pub most: u64,
}

/// What a recording met and a trace does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Calls that returned; those within others count with these.
    pub calls: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Frees of addresses where no block was.
    pub unknown_frees: u64,
    /// Resizes of such; in the trace they are allocations.
    pub unknown_resizes: u64,
    /// Blocks that were given out although one of the trace was still there: it is freed in the trace then.
    pub replaced: u64,
    /// Calls that were made in handlers of traps.
    pub in_handlers: u64,
    /// Calls that never returned.
    pub never_returned: Vec<HeapCall>,
}

/// Why firmware cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum FirmwareError {
    /// The file cannot be read.
    #[error("image {} cannot be read: {source}; check the path", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no image, or there is no such machine.
    #[error("{}: {cause}", .path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: NoImage,
    },
    /// None of the usual functions.
    #[error(
        "{} has no heap function of a usual name ({usual}); name its own with --malloc NAME, --free NAME and so on{like}",
        .path.display()
    )]
    NoFunction {
        /// The file.
        path: PathBuf,
        /// Those looked for.
        usual: String,
        /// Those that may be meant, as the end of a sentence.
        like: String,
    },
    /// A function that was named.
    #[error("{} has no symbol {name}; give a name that its symbols have, or an address as 0x40001000{like}", .path.display())]
    NotNamed {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
        /// Those that may be meant, as the end of a sentence.
        like: String,
    },
    /// The trace has no room for its requests.
    #[error("its requests make no trace: {0}")]
    Inconsistent(#[from] Inconsistency),
}

/// Runs the image in the file `path` and records it. `between` sees the machine from time to time, and at the end: it
/// may take what was printed, and end the run.
///
/// # Errors
/// [`FirmwareError`]: what stands in the way of running or of recording. An image that fails is no error; see
/// [`FirmwareRecording::stop`].
pub fn record_firmware(
    path: &Path,
    options: &FirmwareOptions,
    between: &mut dyn FnMut(&mut Machine) -> ControlFlow<()>,
) -> Result<FirmwareRecording, FirmwareError> {
    let wrong = |cause: NoImage| FirmwareError::Image {
        path: path.to_owned(),
        cause,
    };
    let bytes = std::fs::read(path).map_err(|source| FirmwareError::Io {
        path: path.to_owned(),
        source,
    })?;
    let image = Image::read(&bytes).map_err(wrong)?;
    let functions = functions(path, &image, &options.functions)?;
    let mut machine = Machine::with_image(&options.configuration, &image).map_err(wrong)?;
    let builder = Builder::new(options.configuration.frequency);
    let mut calls = HeapCalls::new(functions.clone(), builder);
    let stop = run(&mut machine, options.most, &mut calls, between);
    let (builder, never_returned) = calls.finish();
    let (places, counted) = (builder.places.clone(), builder.counted);
    let (trace, findings) = builder.finish(provenance(path, &machine))?;
    Ok(FirmwareRecording {
        trace,
        places,
        counted,
        findings: Findings {
            never_returned,
            ..findings
        },
        stop,
        machine,
        image,
        functions,
    })
}

/// The functions to look on.
fn functions(
    path: &Path,
    image: &Image,
    named: &[(Shape, String)],
) -> Result<Vec<Function>, FirmwareError> {
    let mut functions = Vec::new();
    for (shape, name) in named {
        let found = calls::named(image, name, *shape);
        if found.is_empty() {
            return Err(FirmwareError::NotNamed {
                path: path.to_owned(),
                name: name.clone(),
                like: like(image),
            });
        }
        functions.extend(found);
    }
    if named.is_empty() {
        functions = calls::usual(image);
    }
    if functions.is_empty() {
        let usual = calls::USUAL.map(|(name, ..)| name);
        return Err(FirmwareError::NoFunction {
            path: path.to_owned(),
            usual: usual.join(", "),
            like: like(image),
        });
    }
    Ok(functions)
}

/// Functions of the image that may be of its heap, as the end of a sentence.
fn like(image: &Image) -> String {
    if image.symbols().is_empty() {
        return " (it has no symbols at all: it is stripped, or linked with -s)".to_owned();
    }
    let symbols = image.symbols().iter().filter(|symbol| symbol.function);
    let may_be = symbols.filter(|symbol| {
        let name = symbol.name.to_ascii_lowercase();
        name.contains("alloc") || name.contains("free")
    });
    let names: Vec<&str> = may_be
        .take(MOST_NAMES)
        .map(|symbol| symbol.name.as_str())
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!(" (it has {})", names.join(", "))
}

/// Runs to the end, to as many instructions as allowed, or until `between` breaks.
fn run(
    machine: &mut Machine,
    most: Option<u64>,
    calls: &mut HeapCalls<Builder>,
    between: &mut dyn FnMut(&mut Machine) -> ControlFlow<()>,
) -> Option<Stop> {
    let mut left = most.unwrap_or(u64::MAX);
    loop {
        let before = machine.instructions();
        let stop = machine.run(left.min(PORTION), calls);
        left = left.saturating_sub(machine.instructions() - before);
        let goes_on = between(machine).is_continue();
        if stop != Stop::Limit || left == 0 {
            return Some(stop);
        }
        if !goes_on {
            return None;
        }
    }
}

fn provenance(path: &Path, machine: &Machine) -> Provenance {
    let configuration = machine.configuration();
    Provenance {
        command: vec![path.display().to_string()],
        recorder: "leon3".to_owned(),
        host: format!(
            "LEON3, simulated, cores: {}, {} Hz, {}",
            configuration.cores,
            configuration.frequency,
            machine.timing()
        ),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        timed: true,
        ..Provenance::default()
    }
}

/// Makes the trace as calls come.
struct Builder {
    frequency: u32,
    blocks: Blocks,
    places: Vec<u32>,
    counted: [CallCount; 3],
    findings: Findings,
    /// Resizes under way, by what tells their calls apart: core and instructions at the beginning.
    resizing: HashMap<(usize, u64), Resizing>,
    cores: BTreeSet<usize>,
    last_time: u64,
    /// The first request that has no place in a trace; nothing follows it.
    wrong: Option<Inconsistency>,
}

impl Builder {
    fn new(frequency: u32) -> Builder {
        Builder {
            frequency,
            blocks: Blocks::default(),
            places: Vec::new(),
            counted: [CallCount::default(); 3],
            findings: Findings::default(),
            resizing: HashMap::new(),
            cores: BTreeSet::new(),
            last_time: 0,
            wrong: None,
        }
    }

    /// Who asks, at `cycle` of that core. Of several cores one is ahead of another by a little, and time never goes
    /// back.
    fn asked(&mut self, call: &HeapCall, cycle: u64) -> Asked {
        self.cores.insert(call.core);
        let time = u128::from(cycle) * 1_000_000_000 / u128::from(self.frequency.max(1));
        self.last_time = u64::try_from(time).unwrap_or(u64::MAX).max(self.last_time);
        Asked {
            time: self.last_time,
            thread: call.core as u32,
            site: 0,
        }
    }

    fn keep(&mut self, done: Result<(), Inconsistency>) {
        if let Err(wrong) = done {
            self.wrong.get_or_insert(wrong);
        }
    }

    /// The events since the last time are of the block at this address.
    fn lie(&mut self, address: u32) {
        self.places.resize(self.blocks.len(), address);
    }

    fn count(&mut self, call: &HeapCall) {
        let Some(end) = call.end else { return };
        let count = &mut self.counted[match call.kind {
            Kind::Allocate => 0,
            Kind::Free => 1,
            Kind::Resize => 2,
        }];
        let instructions = end.instructions.saturating_sub(call.begin.instructions);
        count.calls += 1;
        count.instructions += instructions;
        count.most = count.most.max(instructions);
    }

    fn ended(&mut self, call: &HeapCall) -> Result<(), Inconsistency> {
        let cycle = call.end.map_or(call.begin.cycle, |end| end.cycle);
        let address = u64::from(call.address);
        let (size, align) = wanted(call);
        match call.kind {
            Kind::Free => {}
            Kind::Allocate if address == 0 => self.findings.refused += 1,
            Kind::Allocate => {
                let asked = self.asked(call, cycle);
                self.blocks.alloc(asked, address, size, align)?;
                self.lie(call.address);
            }
            Kind::Resize => {
                let Some(resizing) = self.resizing.remove(&key(call)) else {
                    return Ok(());
                };
                let asked = self.asked(call, cycle);
                self.blocks.resized(asked, resizing, address)?;
                self.lie(match call.address {
                    0 => call.old_address,
                    address => address,
                });
                // To no size is another word for a free, where nothing comes back.
                if address == 0 && size == 0 {
                    self.blocks.free(asked, u64::from(call.old_address))?;
                    self.lie(call.old_address);
                } else if address == 0 {
                    self.findings.refused += 1;
                }
            }
        }
        Ok(())
    }

    fn finish(self, provenance: Provenance) -> Result<(Trace, Findings), FirmwareError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong.into());
        }
        let findings = Findings {
            unknown_frees: self.blocks.unknown_frees,
            unknown_resizes: self.blocks.unknown_resizes,
            replaced: self.blocks.replaced,
            ..self.findings
        };
        let trace = self.blocks.finish(Provenance {
            threads: self.cores.len() as u32,
            ..provenance
        });
        Ok((trace, findings))
    }
}

impl Listener for Builder {
    fn begins(&mut self, call: &HeapCall) {
        if self.wrong.is_some() {
            return;
        }
        self.findings.in_handlers += u64::from(call.trap.is_some());
        let address = u64::from(call.old_address);
        match call.kind {
            Kind::Allocate => {}
            Kind::Free if address == 0 => {}
            Kind::Free => {
                let asked = self.asked(call, call.begin.cycle);
                let done = self.blocks.free(asked, address);
                self.lie(call.old_address);
                self.keep(done);
            }
            Kind::Resize => {
                let (size, align) = wanted(call);
                let resizing = self.blocks.resize(address, size, align);
                self.resizing.insert(key(call), resizing);
            }
        }
    }

    fn returns(&mut self, call: &HeapCall) {
        self.findings.calls += 1;
        self.count(call);
        if self.wrong.is_none() {
            let done = self.ended(call);
            self.keep(done);
        }
    }
}

/// What tells calls apart: a core begins one at an instruction.
fn key(call: &HeapCall) -> (usize, u64) {
    (call.core, call.begin.instructions)
}

/// Size and alignment for a trace: no block is larger than what addresses reach, and alignments are powers of two.
fn wanted(call: &HeapCall) -> (u64, u32) {
    let align = match call.align {
        0 => MALLOC_ALIGN,
        align => align.checked_next_power_of_two().unwrap_or(1 << 31),
    };
    (call.size.min(u64::from(u32::MAX)), align)
}
