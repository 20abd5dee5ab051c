//! The longest path through a function's code for LEON3 (SPARC V8): bounds on the instructions, cycles, window traps and
//! stack of every call of it, whatever data it meets.
//!
//! The code is read from an [`Image`]. Each instruction is a node of a graph; a branch is an edge to
//! each place it leads to, on which its delay slot is executed or annulled. What registers hold is followed
//! as far as that tells where calls return to and jumps go. A call adds the longest path of what it calls, a loop as
//! many rounds as [`Options::loops`] says. Cycles are those of the simulator: its table, its caches and its bus.
//!
//! Left out are paths on which the function does not return (it ends at `unimp` or at a trap of
//! [`Options::ending_traps`], in a function of [`Options::ending`], or never), traps but those of windows,
//! interrupts and what they run, other cores on the bus, and DMA.
//!
//! Invariant: no execution of the function on the simulator that returns exceeds the bound in any count, as long as
//! functions keep the calling convention, the code does not change, and what the options say is so.
//! Whether a path can be taken at all is not asked, so the bound may be larger than any call.

mod body;
mod options;
mod state;

use std::fmt;

use metes_leon3::Image;
use metes_leon3::decode::{Kind, Operation, decode};

pub use options::{NoPlace, Options, WindowTraps};

use crate::paths::{Functions, Known, Longest, Weight};
use body::Body;

/// Counts of a path: those of [`Work`], SAVEs and RESTOREs, then those of [`Work`] again with window traps.
const COUNTS: usize = 8;
const SAVES: usize = 3;
const RESTORES: usize = 4;
const TRAPPED: usize = 5;

/// The condition that always holds, and the one that never does.
const ALWAYS: u8 = 8;
const NEVER: u8 = 0;

/// Deepest nest of calls, which keeps this analysis on its own stack.
const MOST_CALLS: usize = 150;

/// What is executed, and how long that takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Instructions, those that trap counted both times.
    pub instructions: u64,
    /// Cycles if every access is a hit.
    pub cycles: u64,
    /// Cycles if every load and every line of instructions is a miss.
    pub cycles_with_misses: u64,
}

impl Work {
    fn of(weight: &Weight<COUNTS>, at: usize) -> Work {
        Work {
            instructions: weight[at],
            cycles: weight[at + 1],
            cycles_with_misses: weight[at + 2],
        }
    }

    fn plus(self, other: Work, times: u64) -> Work {
        let sum = |a: u64, b: u64| a.saturating_add(b.saturating_mul(times));
        Work {
            instructions: sum(self.instructions, other.instructions),
            cycles: sum(self.cycles, other.cycles),
            cycles_with_misses: sum(self.cycles_with_misses, other.cycles_with_misses),
        }
    }
}

/// What no call exceeds, from the function's first instruction to the delay slot of its return; the `call` itself and
/// its slot are the caller's. Each figure is the largest of some path, not all of the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// If no SAVE or RESTORE traps.
    pub untrapped: Work,
    /// If each SAVE and each RESTORE traps. That holds with interrupts in between, too, whose own work is not in it;
    /// one that comes between an underflow and its RESTORE may cost a further underflow. `None` if [`Options::window_traps`] does not say what a trap costs.
    pub trapped: Option<Work>,
    /// If no interrupt comes meanwhile: a function that enters `d` windows then overflows at most `d` times, and
    /// meets no underflow unless it enters so many that its own window must go.
    pub uninterrupted: Option<Work>,
    /// SAVEs executed.
    pub saves: u64,
    /// RESTOREs executed.
    pub restores: u64,
    /// Most windows entered below the function's own.
    pub windows: u32,
    /// Bytes of stack below the stack pointer that the function is entered with.
    ///
    /// # Errors
    /// [`Unbounded::Frame`]: a frame's size depends on data. The other bounds hold nevertheless.
    pub stack: Result<u32, Unbounded>,
    /// What a window overflow costs beyond the SAVE, and an underflow beyond the RESTORE.
    pub traps: Option<[Work; 2]>,
}

/// An address, in words: with the symbol it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The address.
    pub address: u32,
    /// The symbol and how far behind it, if the image names one.
    pub symbol: Option<(String, u32)>,
}

impl Place {
    /// The place at `address`.
    pub fn of(image: &Image, address: u32) -> Place {
        let symbol = image.symbol_at(address);
        Place {
            address,
            symbol: symbol.map(|symbol| (symbol.name.clone(), address - symbol.address)),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.symbol {
            Some((name, 0)) => write!(f, "{name} ({:#010x})", self.address),
            Some((name, behind)) => write!(f, "{name}+{behind:#x} ({:#010x})", self.address),
            None => write!(f, "{:#010x}", self.address),
        }
    }
}

/// Why code tells no bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unbounded {
    /// A loop has its head here.
    #[error(
        "a loop begins at {0}, and how often it is repeated depends on data; say how often that place is reached, at \
         most, each time the loop is entered"
    )]
    Loop(Place),
    /// A loop is entered here and elsewhere.
    #[error(
        "a loop is entered at {0} and at another place too, so that no bound can be said for it; write it with one entry"
    )]
    Entries(Place),
    /// The function calls itself, directly or not.
    #[error(
        "the function {0} calls itself, directly or through others; write it as a loop, or name the function as one that \
         does not return if it does not"
    )]
    Recursion(Place),
    /// Where this jump, call or return goes depends on data.
    #[error("the jump, call or return at {0} goes where data says; name its targets")]
    Indirect(Place),
    /// This instruction enters the system, or is left for another time.
    #[error(
        "the instruction at {0} {1}; name the function as one that does not return if it does not, or bound its parts"
    )]
    Instruction(Place, &'static str),
    /// A branch, call or jump in the delay slot of another one.
    #[error(
        "the instruction at {0} goes elsewhere in the delay slot of another that does; separate the two"
    )]
    Slot(Place),
    /// Windows are not as a function leaves them.
    #[error(
        "at {0} SAVEs and RESTOREs do not match on every path; if a function called before does not return, name it as one"
    )]
    Windows(Place),
    /// There is no instruction here.
    #[error(
        "at {0} there is no instruction; if a function called before does not return, name it as one"
    )]
    Undecoded(Place),
    /// A frame's size depends on data.
    #[error(
        "at {0} the stack pointer becomes something that depends on data; use frames of fixed size"
    )]
    Frame(Place),
    /// No path returns.
    #[error("no path through the function {0} returns")]
    NeverReturns(Place),
    /// Calls nest too deep.
    #[error("calls nest more than {MOST_CALLS} deep at {0}; bound its parts")]
    Deep(Place),
}

/// The most that a call of the function at the address `function` of `image` can take.
///
/// # Errors
/// [`Unbounded`]: code and options tell no bound.
pub fn longest_on_leon3(
    image: &Image,
    function: u32,
    options: &Options,
) -> Result<Bound, Unbounded> {
    let mut analysis = Analysis {
        image,
        options,
        traps: None,
        functions: Functions::default(),
        calls: 0,
    };
    analysis.traps = analysis.window_traps()?;
    let found = analysis.of_function(function)?;
    let ways = found.returns.iter().flatten();
    let longest = ways
        .copied()
        .reduce(|a, b| std::array::from_fn(|i| a[i].max(b[i])));
    let longest = longest.ok_or_else(|| Unbounded::NeverReturns(analysis.place(function)))?;
    Ok(analysis.bound(&longest, found))
}

/// What is known of a function.
#[derive(Clone)]
struct Summary {
    returns: Longest<COUNTS>,
    windows: u32,
    stack: Result<u32, Unbounded>,
}

struct Analysis<'a> {
    image: &'a Image,
    options: &'a Options,
    /// What a SAVE and a RESTORE cost beyond themselves if they trap.
    traps: Option<[Work; 2]>,
    functions: Functions<u32, Summary>,
    /// Functions that are being looked at.
    calls: usize,
}

impl Analysis<'_> {
    fn place(&self, address: u32) -> Place {
        Place::of(self.image, address)
    }

    fn bound(&self, longest: &Weight<COUNTS>, found: Summary) -> Bound {
        // The last store before the call may still keep the bus.
        let busy = 2 * u64::from(self.options.cost.write);
        let work = |at| {
            let work = Work::of(longest, at);
            Work {
                cycles_with_misses: work.cycles_with_misses.saturating_add(busy),
                ..work
            }
        };
        let [untrapped, trapped] = [work(0), work(TRAPPED)];
        let uninterrupted = |[overflow, _]: [Work; 2]| {
            // One window is invalid, one the function's own.
            if found.windows.saturating_add(2) > self.options.windows {
                return trapped;
            }
            untrapped.plus(overflow, longest[SAVES].min(u64::from(found.windows)))
        };
        Bound {
            untrapped,
            trapped: self.traps.map(|_| trapped),
            uninterrupted: self.traps.map(uninterrupted),
            saves: longest[SAVES],
            restores: longest[RESTORES],
            windows: found.windows,
            stack: found.stack,
            traps: self.traps,
        }
    }

    /// What a window overflow and an underflow cost, as far as the options tell.
    fn window_traps(&mut self) -> Result<Option<[Work; 2]>, Unbounded> {
        let handlers = match self.options.window_traps {
            WindowTraps::Unknown => return Ok(None),
            WindowTraps::Handlers(handlers) => handlers,
            WindowTraps::Table(table) => [self.handler(table, 5)?, self.handler(table, 6)?],
        };
        Ok(Some([
            self.with_entry(handlers[0], Kind::Save),
            self.with_entry(handlers[1], Kind::Restore),
        ]))
    }

    /// The longest path through the handler of trap `number`.
    fn handler(&mut self, table: u32, number: u32) -> Result<Work, Unbounded> {
        let entry = table.wrapping_add(number << 4);
        let found = Body::of_handler(self).summary(entry)?;
        match found.returns[0] {
            Some(longest) => Ok(Work::of(&longest, 0)),
            None => Err(Unbounded::NeverReturns(self.place(entry))),
        }
    }

    /// The instruction that traps is executed, in vain, the trap is taken, and the instruction is fetched again.
    fn with_entry(&self, handler: Work, kind: Kind) -> Work {
        let timing = &self.options.timing;
        let cycles = timing.of(kind).saturating_add_signed(timing.trap.into());
        let entry = Work {
            instructions: 1,
            cycles,
            cycles_with_misses: cycles + self.options.line_of_instructions(),
        };
        entry.plus(handler, 1)
    }

    fn of_function(&mut self, entry: u32) -> Result<Summary, Unbounded> {
        match self.functions.open(entry) {
            Known::Open => return Err(Unbounded::Recursion(self.place(entry))),
            Known::Done(summary) => return Ok(summary),
            Known::New => {}
        }
        if self.calls >= MOST_CALLS {
            return Err(Unbounded::Deep(self.place(entry)));
        }
        self.calls += 1;
        let summary = Body::of_function(self).summary(entry)?;
        self.calls -= 1;
        self.functions.close(entry, summary.clone());
        Ok(summary)
    }

    /// The instruction at `address`.
    fn operation(&self, address: u32) -> Result<Operation, Unbounded> {
        let operation = self.word(address).map(decode);
        operation.ok_or_else(|| Unbounded::Undecoded(self.place(address)))
    }

    fn word(&self, address: u32) -> Option<u32> {
        let code = self.image.segments().iter().filter(|segment| segment.code);
        let mut words = code.filter_map(|segment| {
            let offset = address.checked_sub(segment.address)? as usize;
            segment.bytes.get(offset..)?.first_chunk()
        });
        let word = words.next().filter(|_| address.is_multiple_of(4))?;
        Some(u32::from_be_bytes(*word))
    }

    /// Whether the compiler takes what is called at `at` not to return: another function, or a trap that ends the path,
    /// follows.
    fn ends_at(&self, at: u32) -> bool {
        let back = at.wrapping_add(8);
        let symbol = self.image.symbol_at(at);
        let last = symbol.is_some_and(|it| it.function && back == it.address.wrapping_add(it.size));
        last || self.word(back).map(decode).is_some_and(|after| {
            let fixed = after.rd == ALWAYS && after.rs1 == 0 && after.rs2 == 0;
            after.kind == Kind::Ticc && fixed && self.ends(after.immediate)
        })
    }

    /// Whether nothing returns from the software trap `number`.
    fn ends(&self, number: u32) -> bool {
        let number = (number & 0x7f) as u8;
        self.options.ending_traps.contains(&number)
    }
}
