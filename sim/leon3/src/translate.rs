//! Translation of hot code into code of the host.
//!
//! Where execution comes by often, a [`Region`] is compiled: its registers are the host's, RAM is accessed in place.
//! Whatever is more than that - a device, a trap, a store into decoded code, an instruction without a translation, the
//! deadline - leaves the region *at* that instruction, with the core as if all before it had been interpreted, and the
//! interpreter goes on. So nothing in a region can concern another part of the machine, and nothing looks in between.
//!
//! Cycles of an instruction have to be known beforehand: with caches they are not, and everything is interpreted, as
//! it is where an observer looks.
//!
//! Invariant: a region that can be entered was made from what is in RAM now; a core behind a region is in the state
//! in which the interpreter would be after as many instructions, but for the sink.

mod emit;
mod region;

use std::mem::offset_of;

use crate::bus::Bus;
use crate::core::{Common, Core};
use crate::decode::Operation;
use crate::machine::Machine;
use emit::Compiler;
use region::Region;

/// Executions of a block by the interpreter before it is translated: to compile an instruction takes as long as to
/// interpret it some ten thousand times.
const HOT: u16 = 10_000;
/// The heat of a word at which nothing can be translated.
const REFUSED: u16 = u16::MAX;
/// Translations that are given up when code is written, before translating ends for good: what is
/// given up keeps its memory until the machine ends.
const MOST_FORGOTTEN: usize = 2048;

/// RAM and what is known about it, for regions.
#[repr(C)]
pub(crate) struct Memory {
    pub(crate) ram: *mut u8,
    pub(crate) decoded: *const bool,
    pub(crate) code: *const Operation,
}

const RAM: i32 = offset_of!(Memory, ram) as i32;
const DECODED: i32 = offset_of!(Memory, decoded) as i32;
const CODE: i32 = offset_of!(Memory, code) as i32;

/// A region: takes the cycles that it may use, gives back those that it has left.
type Function = unsafe extern "C" fn(*mut Core, *const Memory, i64) -> i64;

/// A region that can be entered.
struct Known {
    /// Word of RAM at which it begins.
    begin: usize,
    /// Words of RAM that it is made of: first, and behind the last.
    words: Vec<(usize, usize)>,
}

/// What is translated of a machine's RAM.
pub(crate) struct Translations {
    /// The region that begins at each word of RAM.
    slots: Vec<Option<Function>>,
    /// How often the interpreter came by there, or [`REFUSED`].
    heat: Vec<u16>,
    known: Vec<Known>,
    forgotten: usize,
    /// Executions before a block is translated; never, if none.
    hot: Option<u16>,
    compiler: Lazy,
    base: u32,
}

/// Most machines end before anything is hot.
enum Lazy {
    Unasked,
    /// There is none for this host.
    None,
    Made(Box<Compiler>),
}

impl Translations {
    /// For a RAM of `words`, from `base` on.
    pub(crate) fn new(base: u32, words: usize) -> Translations {
        Translations {
            slots: bytemuck::allocation::zeroed_vec(words),
            heat: bytemuck::allocation::zeroed_vec(words),
            known: Vec::new(),
            forgotten: 0,
            hot: Some(HOT),
            compiler: Lazy::Unasked,
            base,
        }
    }

    /// None where there is none for this host, or no more is to be translated.
    fn compiler(&mut self) -> Option<&mut Compiler> {
        if self.forgotten >= MOST_FORGOTTEN {
            return None;
        }
        if let Lazy::Unasked = self.compiler {
            let compiler = Compiler::new(self.base, 4 * self.slots.len());
            self.compiler = compiler.map_or(Lazy::None, |made| Lazy::Made(Box::new(made)));
        }
        match &mut self.compiler {
            Lazy::Made(compiler) => Some(compiler),
            _ => None,
        }
    }

    /// Word `index` of RAM is another one now.
    pub(crate) fn forget(&mut self, index: usize) {
        let reaches = |known: &Known| {
            known
                .words
                .iter()
                .any(|&(first, behind)| (first..behind).contains(&index))
        };
        let slots = &mut self.slots;
        let heat = &mut self.heat;
        let before = self.known.len();
        self.known.retain(|known| {
            let stays = !reaches(known);
            if !stays {
                slots[known.begin] = None;
                heat[known.begin] = 0;
            }
            stays
        });
        self.forgotten += before - self.known.len();
        // What is refused is refused for its first instruction, or for a jump there and the one behind it.
        for heat in &mut heat[index.saturating_sub(1)..=index] {
            if *heat == REFUSED {
                *heat = 0;
            }
        }
    }

    /// Counts that the interpreter comes by at word `index`; whether it is time to translate.
    #[inline(always)]
    fn warm(&mut self, index: usize) -> bool {
        let heat = &mut self.heat[index];
        match self.hot {
            Some(hot) if *heat != REFUSED => {
                *heat += 1;
                *heat >= hot
            }
            _ => false,
        }
    }
}

impl Machine {
    /// Has code be translated after `executions` of it (at least 1; 10 000 unless told), or, by none, never: what is
    /// translated by then is still used. What a run does is the same to the bit, cycles included; how long it takes depends
    /// on it. Under the model with caches, and where an observer looks, nothing is translated.
    pub fn translate_after(&mut self, executions: Option<u16>) {
        self.bus.translations.hot = executions.map(|executions| executions.max(1));
    }

    /// How many regions of what is in memory are translated.
    pub fn translations(&self) -> usize {
        self.bus.translations.known.len()
    }
}

/// Executes what is translated from `core.pc` on, as far as all of it may begin before the deadline; the core is
/// not in a delay slot. Whether anything was executed.
#[inline]
pub(crate) fn run(core: &mut Core, bus: &mut Bus, common: &Common) -> bool {
    let base = bus.base();
    let deadline = bus.deadline;
    let before = core.instructions;
    loop {
        let offset = core.pc.wrapping_sub(base);
        let index = (offset >> 2) as usize;
        let function = match bus.translations.slots.get(index).copied() {
            Some(Some(function)) if offset & 3 == 0 => function,
            Some(_) if offset & 3 == 0 && bus.translations.warm(index) => {
                if translate(core.pc, bus, common) {
                    continue;
                }
                bus.translations.heat[index] = REFUSED;
                break;
            }
            _ => break,
        };
        let last = core.instructions;
        let (memory, length) = bus.memory();
        assert_eq!(
            length,
            4 * memory_words(bus),
            "RAM has another size than it had"
        );
        let most = deadline.saturating_sub(core.cycles).min(i64::MAX as u64) as i64;
        let core_at: *mut Core = core;
        // SAFETY: `function` is a slot of `bus.translations`, so `Compiler::compile` made it, with this type, and it lives
        // until that compiler is dropped, which nothing but the end of `bus.translations` does. It reads and writes
        // only: fields of `Core` at offsets that `offset_of!` gave, through `core_at`, which is unique and not used
        // otherwise meanwhile; bytes of RAM below the length that it was compiled with, four times that of `slots`,
        // which is that of RAM, just asserted; flags of pages and decoded words of such bytes, of which
        // `Bus::new` allocates one per page and one per word, and which never change their length. `memory` points
        // into vectors of `bus`, which nobody else uses meanwhile. It calls nothing but `change_window`, with `core_at`.
        let left = unsafe { function(core_at, &memory, most) };
        core.cycles += (most - left) as u64;
        if core.instructions == last
            || core.npc != core.pc.wrapping_add(4)
            || core.cycles >= deadline
        {
            break;
        }
    }
    core.instructions != before
}

fn memory_words(bus: &Bus) -> usize {
    bus.translations.slots.len()
}

/// Translates the region that begins at `address`; false if that cannot be.
#[cold]
fn translate(address: u32, bus: &mut Bus, common: &Common) -> bool {
    if bus.translations.compiler().is_none() {
        return false;
    }
    let base = bus.base();
    let word_of = |address: u32| (address.wrapping_sub(base) >> 2) as usize;
    let hot = bus.translations.hot.unwrap_or(HOT);
    let heat = std::mem::take(&mut bus.translations.heat);
    let region = Region::find(
        address,
        common,
        |at| {
            (word_of(at) < heat.len())
                .then(|| bus.fetch(at).ok())
                .flatten()
        },
        |at| heat.get(word_of(at)).is_some_and(|&heat| heat > hot / 8),
    );
    bus.translations.heat = heat;
    let Some(region) = region else { return false };
    let compiler = bus.translations.compiler();
    let Some(function) = compiler.and_then(|compiler| compiler.compile(&region, common)) else {
        return false;
    };
    let words = region.blocks.iter().map(|block| {
        let first = word_of(block.begin);
        (first, first + block.words() as usize)
    });
    let begin = word_of(address);
    bus.translations.known.push(Known {
        begin,
        words: words.collect(),
    });
    bus.translations.slots[begin] = Some(function);
    true
}

/// Enters the window below or above, if it is not masked: 1, otherwise 0.
extern "C" fn change_window(core: &mut Core, below: u32) -> u32 {
    let registers = &mut core.registers;
    let window = if below != 0 {
        registers.below()
    } else {
        registers.above()
    };
    if core.wim >> window & 1 == 1 {
        return 0;
    }
    registers.enter(window);
    1
}
