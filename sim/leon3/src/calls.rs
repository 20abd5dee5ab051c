//! Which heap calls an image makes: of `malloc` and its kin, told by their symbols.
//!
//! A call begins where a core comes to the function's first instruction, with its arguments in `%o0` and on; it returns
//! where a core comes to `%o7` + 8 with the caller's stack pointer again. Stack pointer and place name a call wherever
//! its task goes on meanwhile: handlers of interrupts, other tasks and other cores have other stacks or other places.
//! What a heap function calls itself (`calloc` its `malloc`, `realloc` its `free`, and those that it jumps to as its
//! last deed) is part of the outermost call: its caller stands on the same stack, without a trap between, and was
//! called from where the outermost call was made.
//!
//! Invariant: of a stack no two calls are open, one within the other, unless the inner one is made in the handler of a
//! trap. A call that was begun returns, is open at the end, or has never returned: none is forgotten.

use crate::bus::Bus;
use crate::core::Core;
use crate::image::Image;
use crate::observer::Observer;
use crate::trap::Trap;

/// How a function is called: what its arguments are, in their order, and what it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Size; gives the block.
    Malloc,
    /// Count, size of each; gives the block.
    Calloc,
    /// Block.
    Free,
    /// Block, size; gives the block.
    Realloc,
    /// Block, count, size of each; gives the block.
    Reallocarray,
    /// Alignment, size; gives the block.
    Memalign,
    /// Place for the block, alignment, size; gives 0 if there is one.
    PosixMemalign,
    /// Size, alignment; gives the block: Rust's `alloc` and `alloc_zeroed`.
    RustAlloc,
    /// Block, size, alignment: Rust's `dealloc`.
    RustDealloc,
    /// Block, old size, alignment, size; gives the block: Rust's `realloc`.
    RustRealloc,
}

/// A heap function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its first instruction.
    pub address: u32,
    /// Bytes of it, 0 if not known.
    pub size: u32,
    /// How it is called.
    pub shape: Shape,
    /// Arguments before those: the context of newlib's `_malloc_r` and its kin.
    pub before: u8,
}

/// Functions that are known by their names. Rust's stand for their mangled forms, too.
pub const USUAL: [(&str, Shape, u8); 26] = [
    ("malloc", Shape::Malloc, 0),
    ("calloc", Shape::Calloc, 0),
    ("free", Shape::Free, 0),
    ("cfree", Shape::Free, 0),
    ("realloc", Shape::Realloc, 0),
    ("reallocarray", Shape::Reallocarray, 0),
    ("memalign", Shape::Memalign, 0),
    ("aligned_alloc", Shape::Memalign, 0),
    ("posix_memalign", Shape::PosixMemalign, 0),
    ("_malloc_r", Shape::Malloc, 1),
    ("_calloc_r", Shape::Calloc, 1),
    ("_free_r", Shape::Free, 1),
    ("_realloc_r", Shape::Realloc, 1),
    ("_memalign_r", Shape::Memalign, 1),
    ("__rust_alloc", Shape::RustAlloc, 0),
    ("__rust_alloc_zeroed", Shape::RustAlloc, 0),
    ("__rust_dealloc", Shape::RustDealloc, 0),
    ("__rust_realloc", Shape::RustRealloc, 0),
    ("__rg_alloc", Shape::RustAlloc, 0),
    ("__rg_alloc_zeroed", Shape::RustAlloc, 0),
    ("__rg_dealloc", Shape::RustDealloc, 0),
    ("__rg_realloc", Shape::RustRealloc, 0),
    ("__rdl_alloc", Shape::RustAlloc, 0),
    ("__rdl_alloc_zeroed", Shape::RustAlloc, 0),
    ("__rdl_dealloc", Shape::RustDealloc, 0),
    ("__rdl_realloc", Shape::RustRealloc, 0),
];

/// The functions of `image` with names of [`USUAL`].
pub fn usual(image: &Image) -> Vec<Function> {
    let known = |name: &str| {
        let plain = rust_name(name).unwrap_or(name);
        USUAL.iter().find(|(usual, ..)| *usual == plain)
    };
    let found = image.symbols().iter().filter_map(|symbol| {
        let &(_, shape, before) = known(&symbol.name)?;
        Some(Function {
            name: symbol.name.clone(),
            address: symbol.address,
            size: symbol.size,
            shape,
            before,
        })
    });
    found.collect()
}

/// The functions of `image` that `name`, a symbol or an address (`0x40001000`), stands for, of the given shape. Static
/// functions of several files may have one name.
pub fn named(image: &Image, name: &str, shape: Shape) -> Vec<Function> {
    let of = |address, size| Function {
        name: name.to_owned(),
        address,
        size,
        shape,
        before: 0,
    };
    let number = name.strip_prefix("0x");
    if let Some(address) = number.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
        return vec![of(address, 0)];
    }
    let symbols = image.symbols().iter();
    let so_called = symbols.filter(|symbol| symbol.name == name);
    so_called
        .map(|symbol| of(symbol.address, symbol.size))
        .collect()
}

/// The name in a symbol of the compiler's own crate, `__rustc`, as `_RNvCs8M2zR_7___rustc12___rust_alloc` or
/// `_ZN7___rustc12___rust_alloc17h0123456789abcdefE`: a length, an underscore where the name begins with one, the name.
fn rust_name(symbol: &str) -> Option<&str> {
    if !symbol.starts_with("_R") && !symbol.starts_with("_ZN") {
        return None;
    }
    let rest = symbol.split_once("__rustc")?.1;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
    let length: usize = rest[..digits].parse().ok()?;
    let rest = &rest[digits..];
    let parted = rest.strip_prefix('_').and_then(|rest| rest.get(..length));
    [parted, rest.get(..length)]
        .into_iter()
        .flatten()
        .find(|name| USUAL.iter().any(|(usual, ..)| usual == name))
}

/// What a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A block is wanted.
    Allocate,
    /// A block is to have another size.
    Resize,
    /// A block is given back.
    Free,
}

/// When something was, by the clock and the counter of the core it was on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Cycles since reset.
    pub cycle: u64,
    /// Instructions that the core had executed.
    pub instructions: u64,
}

/// A call of a heap function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapCall {
    /// The core that made it.
    pub core: usize,
    /// Its number among the functions looked for.
    pub function: usize,
    /// What it is about.
    pub kind: Kind,
    /// Bytes wanted; 0 for a free. More than the machine has addresses if a count and a size say so.
    pub size: u64,
    /// Alignment wanted, 0 if none was named.
    pub align: u32,
    /// The block that was resized or freed, 0 for none.
    pub old_address: u32,
    /// The block that it gave; 0 if none, or none yet.
    pub address: u32,
    /// The instruction that made it.
    pub site: u32,
    /// Before the function's first instruction.
    pub begin: Moment,
    /// Before the first instruction behind the call; none if it has not returned. By the core it returned on.
    pub end: Option<Moment>,
    /// The trap in whose handler it was made.
    pub trap: Option<Trap>,
}

/// Who is told of calls, in the order of what happens.
pub trait Listener {
    /// A call begins: what it gives back may be another's from here on.
    fn begins(&mut self, _call: &HeapCall) {}

    /// A call returns: what it gives is the caller's from here on.
    fn returns(&mut self, call: &HeapCall);
}

/// Keeps all that return.
impl Listener for Vec<HeapCall> {
    fn returns(&mut self, call: &HeapCall) {
        self.push(call.clone());
    }
}

/// Most calls that are kept open. More, and the oldest will hardly return.
const MOST_OPEN: usize = 1024;
/// Most traps that are remembered. More, and the oldest were left without a return.
const MOST_TRAPS: usize = 64;
/// Most callers that are looked at.
const MOST_FRAMES: usize = 128;

/// Looks on for heap calls, and tells a [`Listener`].
#[derive(Debug)]
pub struct HeapCalls<L> {
    functions: Vec<Function>,
    /// Their addresses in order, each with its number.
    entries: Vec<(u32, usize)>,
    /// A bit for each place of interest, by part of its address: most instructions end here.
    interest: Interest,
    listener: L,
    open: Vec<Open>,
    never: Vec<HeapCall>,
    traps: Vec<Taken>,
    /// Begins of calls and traps so far.
    begun: u64,
    /// Callers of the call that begins.
    frames: Vec<Frame>,
}

/// A call under way.
#[derive(Debug)]
struct Open {
    call: HeapCall,
    caller: Frame,
    /// Where the block will stand, for `posix_memalign`.
    place: Option<u32>,
    begun: u64,
}

/// A trap that was taken and has not returned.
#[derive(Debug)]
struct Taken {
    core: usize,
    trap: Trap,
    /// Stack pointer of what it interrupted.
    stack: u32,
    begun: u64,
}

/// A function under way: its stack pointer, and the call instruction at which it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    stack: u32,
    site: u32,
}

#[derive(Debug)]
struct Interest([u64; 64]);

impl Interest {
    #[inline(always)]
    fn place(pc: u32) -> (usize, u32) {
        ((pc >> 8 & 63) as usize, pc >> 2 & 63)
    }

    fn add(&mut self, pc: u32) {
        let (word, bit) = Interest::place(pc);
        self.0[word] |= 1 << bit;
    }

    #[inline(always)]
    fn has(&self, pc: u32) -> bool {
        let (word, bit) = Interest::place(pc);
        self.0[word] >> bit & 1 == 1
    }
}

impl<L: Listener> HeapCalls<L> {
    /// Looks for calls of `functions`; of several at one address for the first.
    pub fn new(functions: Vec<Function>, listener: L) -> HeapCalls<L> {
        let numbered = functions.iter().enumerate();
        let mut entries: Vec<(u32, usize)> = numbered
            .map(|(number, function)| (function.address, number))
            .collect();
        entries.sort_unstable();
        entries.dedup_by_key(|(address, _)| *address);
        let mut interest = Interest([0; 64]);
        for (address, _) in &entries {
            interest.add(*address);
        }
        HeapCalls {
            functions,
            entries,
            interest,
            listener,
            open: Vec::new(),
            never: Vec::new(),
            traps: Vec::new(),
            begun: 0,
            frames: Vec::new(),
        }
    }

    /// What is looked for.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Who is told.
    pub fn listener(&self) -> &L {
        &self.listener
    }

    /// Calls under way.
    pub fn open(&self) -> impl Iterator<Item = &HeapCall> {
        self.open.iter().map(|open| &open.call)
    }

    /// Who was told, and the calls that never returned: those that were left by a jump, and those under way.
    pub fn finish(self) -> (L, Vec<HeapCall>) {
        let mut never = self.never;
        never.extend(self.open.into_iter().map(|open| open.call));
        (self.listener, never)
    }

    /// `core` is at a place that may be of interest.
    #[cold]
    fn look(&mut self, core: &Core, bus: &Bus) {
        if !self.open.is_empty() {
            self.leave(core, bus);
        }
        let entry = self
            .entries
            .binary_search_by_key(&core.pc, |(address, _)| *address);
        if let Ok(entry) = entry {
            self.enter(core, bus, self.entries[entry].1);
        }
    }

    /// Closes the call that returns here, and the one that is made anew and so never returned.
    fn leave(&mut self, core: &Core, bus: &Bus) {
        let stack = core.registers.get(14);
        let is_at = |open: &Open, place: u32| open.caller.stack == stack && place == core.pc;
        let returns = |open: &Open| is_at(open, open.caller.site.wrapping_add(8));
        if let Some(index) = self.latest(core, stack, returns) {
            let open = self.open.remove(index);
            self.returned(core, bus, open);
        }
        let again = |open: &Open| is_at(open, open.caller.site);
        if let Some(index) = self.latest(core, stack, again) {
            self.never.push(self.open.remove(index).call);
        }
    }

    /// The latest open call of which `holds`, of this core or, as tasks move, of any that has a stack.
    fn latest(&self, core: &Core, stack: u32, holds: impl Fn(&Open) -> bool) -> Option<usize> {
        let own = |open: &Open| open.call.core == core.number && holds(open);
        let any = |open: &Open| stack != 0 && holds(open);
        let mut open = self.open.iter();
        open.rposition(own)
            .or_else(|| self.open.iter().rposition(any))
    }

    fn returned(&mut self, core: &Core, bus: &Bus, mut open: Open) {
        let result = core.registers.get(8);
        open.call.end = Some(moment(core));
        open.call.address = match (open.call.kind, open.place) {
            (Kind::Free, _) => 0,
            (_, None) => result,
            (_, Some(place)) if result == 0 => bus.word(place).unwrap_or(0),
            (_, Some(_)) => 0,
        };
        self.listener.returns(&open.call);
    }

    /// A call begins, if it is not part of one.
    fn enter(&mut self, core: &Core, bus: &Bus, number: usize) {
        self.frames.clear();
        if self.open.is_empty() && self.traps.is_empty() {
            self.frames.push(caller(core));
        } else {
            callers(core, bus, &mut self.frames);
        }
        if self.open.iter().any(|open| self.is_part_of(open, core)) {
            return;
        }
        let function = &self.functions[number];
        let site = self.frames[0].site;
        let (call, place) = call(core, number, function, site, self.handler(core));
        self.interest.add(site);
        self.interest.add(site.wrapping_add(8));
        self.listener.begins(&call);
        if self.open.len() == MOST_OPEN {
            self.never.push(self.open.remove(0).call);
        }
        self.begun += 1;
        self.open.push(Open {
            call,
            caller: self.frames[0],
            place,
            begun: self.begun,
        });
    }

    /// Whether the call whose callers are `frames` is made by `open`.
    fn is_part_of(&self, open: &Open, core: &Core) -> bool {
        if open.caller.stack == 0 && open.call.core != core.number {
            return false;
        }
        let function = &self.functions[open.call.function];
        let by = |site: u32| {
            site == open.caller.site || site.wrapping_sub(function.address) < function.size
        };
        let is_caller = |frame: &Frame| frame.stack == open.caller.stack && by(frame.site);
        let Some(depth) = self.frames.iter().position(is_caller) else {
            return false;
        };
        // Unless a handler stands between.
        !self.traps.iter().any(|taken| {
            let between = |frame: &Frame| frame.stack == taken.stack;
            taken.begun > open.begun && self.frames[..=depth].iter().any(between)
        })
    }

    /// The trap in whose handler `core` is: one that interrupted a caller, or an interrupt of which no more is let
    /// through, where handlers have a stack of their own.
    fn handler(&self, core: &Core) -> Option<Trap> {
        let taken = self.traps.iter().rev().find(|taken| {
            let level = taken.trap.0.wrapping_sub(Trap::interrupt(0).0);
            let masked = (1..=15).contains(&level) && core.interrupt_level >= level;
            let on_stack = |frame: &Frame| frame.stack == taken.stack;
            taken.core == core.number && (masked || self.frames.iter().any(on_stack))
        });
        taken.map(|taken| taken.trap)
    }

    /// `core`, with traps off, may be about to return from one.
    #[cold]
    fn returns_from_trap(&mut self, core: &Core, bus: &Bus) {
        const RETT: u32 = 0x81c8_0000;
        if bus
            .word(core.pc)
            .is_none_or(|word| word & 0xc1f8_0000 != RETT)
        {
            return;
        }
        // What was interrupted has its outs where the handler has its ins.
        let stack = core.registers.get(30);
        let of_stack = |taken: &Taken| taken.stack == stack;
        let own = |taken: &Taken| of_stack(taken) && taken.core == core.number;
        let mut traps = self.traps.iter();
        let found = traps.rposition(own).or_else(|| {
            let moved = |taken: &Taken| of_stack(taken) && stack != 0;
            self.traps.iter().rposition(moved)
        });
        if let Some(index) = found {
            self.traps.remove(index);
        }
    }
}

impl<L: Listener> Observer for HeapCalls<L> {
    #[inline(always)]
    fn before(&mut self, core: &Core, bus: &Bus) -> bool {
        if self.interest.has(core.pc) {
            self.look(core, bus);
        }
        if !core.traps && !self.traps.is_empty() {
            self.returns_from_trap(core, bus);
        }
        false
    }

    fn trapped(&mut self, core: &Core, trap: Trap) {
        if !core.traps {
            return;
        }
        if self.traps.len() == MOST_TRAPS {
            self.traps.remove(0);
        }
        self.begun += 1;
        self.traps.push(Taken {
            core: core.number,
            trap,
            stack: core.registers.get(14),
            begun: self.begun,
        });
    }
}

fn moment(core: &Core) -> Moment {
    Moment {
        cycle: core.cycles,
        instructions: core.instructions,
    }
}

/// Who has called the function at whose entry `core` is.
fn caller(core: &Core) -> Frame {
    Frame {
        stack: core.registers.get(14),
        site: core.registers.get(15),
    }
}

/// All who have, the nearest first: out of the windows while they are valid, then out of the stack.
fn callers(core: &Core, bus: &Bus, frames: &mut Vec<Frame>) {
    let registers = &core.registers;
    frames.push(caller(core));
    let mut window = registers.current();
    let mut in_windows = registers.windows() - 1;
    let mut stack = registers.get(14);
    while frames.len() < MOST_FRAMES {
        let (next, site) = if in_windows > 0 {
            let ins = registers.outs((window + 1) % registers.windows());
            (ins[6], ins[7])
        } else {
            // Where the overflow handler has put them.
            let saved = |offset: u32| bus.word(stack.wrapping_add(offset)).unwrap_or(0);
            (saved(56), saved(60))
        };
        // Stacks grow down.
        if next <= stack || next & 7 != 0 {
            return;
        }
        frames.push(Frame { stack: next, site });
        stack = next;
        window = (window + 1) % registers.windows();
        let spilled = core.wim >> window & 1 == 1;
        in_windows = if spilled {
            0
        } else {
            in_windows.saturating_sub(1)
        };
    }
}

/// The call that begins, and where its result will stand if not in `%o0`.
fn call(
    core: &Core,
    number: usize,
    function: &Function,
    site: u32,
    trap: Option<Trap>,
) -> (HeapCall, Option<u32>) {
    let argument = |index: u8| core.registers.get(8 + function.before + index);
    let size = |index: u8| u64::from(argument(index));
    let product = |index: u8| size(index) * size(index + 1);
    let mut place = None;
    let (kind, old_address, size, align) = match function.shape {
        Shape::Malloc => (Kind::Allocate, 0, size(0), 0),
        Shape::Calloc => (Kind::Allocate, 0, product(0), 0),
        Shape::Free | Shape::RustDealloc => (Kind::Free, argument(0), 0, 0),
        Shape::Realloc => (Kind::Resize, argument(0), size(1), 0),
        Shape::Reallocarray => (Kind::Resize, argument(0), product(1), 0),
        Shape::Memalign => (Kind::Allocate, 0, size(1), argument(0)),
        Shape::PosixMemalign => {
            place = Some(argument(0));
            (Kind::Allocate, 0, size(2), argument(1))
        }
        Shape::RustAlloc => (Kind::Allocate, 0, size(0), argument(1)),
        Shape::RustRealloc => (Kind::Resize, argument(0), size(3), argument(2)),
    };
    let kind = match kind {
        Kind::Resize if old_address == 0 => Kind::Allocate,
        kind => kind,
    };
    let call = HeapCall {
        core: core.number,
        function: number,
        kind,
        size,
        align,
        old_address,
        address: 0,
        site,
        begin: moment(core),
        end: None,
        trap,
    };
    (call, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rust_are_known_mangled() {
        let cases = [
            (
                "_RNvCsfLfy6EI15iL_7___rustc12___rust_alloc",
                Some("__rust_alloc"),
            ),
            (
                "_RNvCsfLfy6EI15iL_7___rustc14___rust_realloc",
                Some("__rust_realloc"),
            ),
            (
                "_RNvCsfLfy6EI15iL_7___rustc19___rust_alloc_zeroed",
                Some("__rust_alloc_zeroed"),
            ),
            (
                "_ZN7__rustc12__rdl_dealloc17h0123456789abcdefE",
                None, // its length is not 12
            ),
            (
                "_ZN7__rustc13__rdl_dealloc17h0123456789abcdefE",
                Some("__rdl_dealloc"),
            ),
            (
                "_RNvCsfLfy6EI15iL_7___rustc26___rust_alloc_error_handler",
                None,
            ),
            ("__rust_alloc", None),
            ("_R__rustc99999999999999999999_x", None),
            ("_RNvCs_7___rustc", None),
        ];
        for (symbol, name) in cases {
            assert_eq!(rust_name(symbol), name, "{symbol}");
        }
    }
}
