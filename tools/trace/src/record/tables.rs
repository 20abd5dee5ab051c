//! The tables of a raw recording: modules, and stacks of addresses in them.
//!
//! *Invariant:* a stack's addresses are those of the modules that lay there when it was written: an entry of a
//! module has a lower number than the stacks in it, and takes the place of those it lies over. Entries are taken
//! in the order of their numbers, whichever order they are met in.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use super::layout::{BROKEN_STACK, CUT_STACK, MODULE, PACKED, STACK};
use crate::stacks::{Ending, Module, Stacks, StacksBuilder};

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
    /// Sites by the numbers of their stacks.
    sites: HashMap<u64, u64>,
    /// The number of the next entry.
    next: u64,
    /// Entries that came before their turn.
    early: BTreeMap<u64, Entry>,
    /// Whether they are taken before it.
    impatient: bool,
}

/// An entry.
struct Entry {
    what: u64,
    words: Vec<u64>,
}

impl Tables {
    /// Empty ones, of a process that runs `program`.
    pub(super) fn new(program: PathBuf) -> Tables {
        Tables {
            program,
            modules: Vec::new(),
            stacks: StacksBuilder::default(),
            sites: HashMap::new(),
            next: 0,
            early: BTreeMap::new(),
            impatient: false,
        }
    }

    /// Takes an entry, its words after the head; false if it is none.
    pub(super) fn entry(&mut self, head: u64, words: &[u64]) -> bool {
        let what = head >> 3 & 0x7f;
        let (&[number], words) = words.split_first_chunk().unwrap_or((&[0], &[]));
        let words = words.to_vec();
        let known = matches!(what, STACK | CUT_STACK | BROKEN_STACK | MODULE);
        if !known || number < self.next {
            return false;
        }
        self.early.insert(number, Entry { what, words });
        let mut whole = true;
        while let Some(entry) = self.early.remove(&self.next) {
            whole &= self.take(self.next, &entry);
            self.next += 1;
        }
        if self.impatient {
            self.close();
        }
        whole
    }

    fn take(&mut self, number: u64, entry: &Entry) -> bool {
        let Entry { what, words } = entry;
        let ending = match *what {
            STACK => Ending::Whole,
            CUT_STACK => Ending::Cut,
            BROKEN_STACK => Ending::Broken,
            _ => return self.module(words).is_some(),
        };
        let calls: Vec<(Option<u32>, u64)> = words.iter().map(|&at| self.call(at)).collect();
        let site = self.stacks.stack(&calls, ending);
        self.sites.insert(number, site);
        true
    }

    /// From now on an entry does not wait for those before it: some will never come.
    pub(super) fn close(&mut self) {
        self.impatient = true;
        for (number, entry) in std::mem::take(&mut self.early) {
            self.take(number, &entry);
            self.next = number + 1;
        }
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
        let number = name.checked_sub(1);
        let site = number.and_then(|number| self.sites.get(&number));
        site.copied().unwrap_or(0)
    }

    /// The stacks so far.
    pub(super) fn stacks(&self) -> Stacks {
        self.stacks.clone().finish()
    }

    /// The stacks.
    pub(super) fn finish(self) -> Stacks {
        self.stacks.finish()
    }
}
