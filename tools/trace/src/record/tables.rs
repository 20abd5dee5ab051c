//! The tables of a raw recording: modules, and stacks of addresses in them.
//!
//! *Invariant:* a stack's addresses are those of the modules that lay there when it was written: an entry of a
//! module stands before the stacks in it, and takes the place of those it lies over.

use std::collections::HashMap;
use std::path::PathBuf;

use super::layout::{BROKEN_STACK, CUT_STACK, MODULE, PACKED, STACK};
use crate::stacks::{Ending, Module, Stacks, StacksBuilder};

/// Words of an entry that are kept: more than a stack or module has.
const MOST_WORDS: u64 = 1024;
/// Addresses in words of 61 bits.
const ADDRESS: u64 = (1 << 61) - 1;

/// A module where it lies.
struct Lying {
    start: u64,
    end: u64,
    /// What its addresses in memory are above those in its file.
    above: u64,
    module: Module,
    /// Its number, once a stack has it.
    number: Option<u32>,
}

/// See the module.
pub(super) struct Tables {
    /// The program, which the loader calls nothing.
    program: PathBuf,
    /// By their first addresses; none overlap.
    modules: Vec<Lying>,
    stacks: StacksBuilder,
    /// Sites by the places of their stacks.
    sites: HashMap<u64, u64>,
}

impl Tables {
    /// Empty ones, of a process that runs `program`.
    pub(super) fn new(program: PathBuf) -> Tables {
        Tables {
            program,
            modules: Vec::new(),
            stacks: StacksBuilder::default(),
            sites: HashMap::new(),
        }
    }

    /// Takes the entry whose head stands at `place`; false if it is not whole.
    pub(super) fn entry(
        &mut self,
        place: u64,
        head: u64,
        further: &mut impl FnMut() -> Option<u64>,
    ) -> bool {
        let (what, count) = (head >> 3 & 0x7f, head >> 10);
        if count > MOST_WORDS {
            return false;
        }
        let words: Vec<u64> = (0..count).map_while(|_| further()).collect();
        if (words.len() as u64) < count {
            return false;
        }
        let ending = match what {
            STACK => Ending::Whole,
            CUT_STACK => Ending::Cut,
            BROKEN_STACK => Ending::Broken,
            MODULE => return self.module(&words).is_some(),
            _ => return false,
        };
        let calls: Vec<(Option<u32>, u64)> = words.iter().map(|&at| self.call(at)).collect();
        let site = self.stacks.stack(&calls, ending);
        self.sites.insert(place, site);
        true
    }

    fn module(&mut self, words: &[u64]) -> Option<()> {
        let (&[start, end, above, lengths], packed) = words.split_first_chunk()?;
        let (id, path) = ((lengths & 0xffff) as usize, (lengths >> 16) as usize);
        let bytes: Vec<u8> = packed
            .iter()
            .flat_map(|word| word.to_le_bytes().into_iter().take(PACKED))
            .collect();
        let build_id = bytes.get(..id)?.to_vec();
        let path = bytes.get(id..id.checked_add(path)?)?;
        let path = match path {
            [] => self.program.to_string_lossy().into_owned(),
            path => String::from_utf8_lossy(path).into_owned(),
        };
        self.modules
            .retain(|old| old.end <= start || old.start >= end);
        let at = self.modules.partition_point(|old| old.start < start);
        let module = Module { path, build_id };
        self.modules.insert(
            at,
            Lying {
                start,
                end,
                above,
                module,
                number: None,
            },
        );
        Some(())
    }

    /// The call at an address in memory: its module and the address in that.
    fn call(&mut self, at: u64) -> (Option<u32>, u64) {
        let behind = self.modules.partition_point(|module| module.start <= at);
        let lying = behind
            .checked_sub(1)
            .and_then(|own| self.modules.get_mut(own));
        let Some(lying) = lying.filter(|lying| at < lying.end) else {
            return (None, at);
        };
        let stacks = &mut self.stacks;
        let number = *lying
            .number
            .get_or_insert_with(|| stacks.module(lying.module.clone()));
        (Some(number), at.wrapping_sub(lying.above) & ADDRESS)
    }

    /// The site of a stack by what requests name it by; 0 for none.
    pub(super) fn site(&self, name: u64) -> u64 {
        let place = name.checked_sub(1);
        let site = place.and_then(|place| self.sites.get(&place));
        site.copied().unwrap_or(0)
    }

    /// The stacks.
    pub(super) fn finish(self) -> Stacks {
        self.stacks.finish()
    }
}
