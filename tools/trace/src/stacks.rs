//! Call stacks of a trace: which calls led to its requests.
//!
//! The site of an event ([`Event::site`](crate::Event::site)) is the number of a stack here, from 1 on; 0 is "not
//! known". Stacks are paths of one tree, whose root is outside: a [`Node`] is a call in the context of those that led
//! to it. A call stands for a [`Place`], an address in a module, and a place has names once somebody has found them:
//! several where functions were inlined there.
//!
//! *Invariant:* every number in here leads to something that is there; the parent of a node stands before it, and
//! no stack has more than [`MOST_DEEP`] calls.

#[cfg(feature = "files")]
mod encoded;

use std::collections::HashMap;

#[cfg(feature = "files")]
pub(crate) use encoded::{decode, encode};
#[cfg(feature = "files")]
pub use encoded::{from_bytes, to_bytes};

/// Calls that a stack may have.
pub const MOST_DEEP: usize = 256;
/// Bytes of the longest text that is kept; longer names are cut.
pub const MOST_TEXT: usize = 2048;

/// A program or library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Module {
    /// Its file, as the loader knew it.
    pub path: String,
    /// Its build id; empty if it has none.
    pub build_id: Vec<u8>,
}

/// An address in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of its module; `None` where no module lay, as with code made at run time.
    pub module: Option<u32>,
    /// As in the module's file; without a module, in memory.
    pub address: u64,
    /// Where its names stand.
    names: (u32, u32),
}

/// What is at a place, by names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name<'a> {
    /// The function; empty if not known.
    pub function: &'a str,
    /// The source file; empty if not known.
    pub file: &'a str,
    /// The line in it; 0 if not known.
    pub line: u32,
}

/// A name, by the numbers of its texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbered {
    function: u32,
    file: u32,
    line: u32,
}

/// A call, and those that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The call that it was made in; `None` for an outermost one.
    pub parent: Option<u32>,
    /// Where it is made.
    pub place: u32,
}

/// How a stack ends on its outer side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// With the outermost call.
    Whole,
    /// With the last call that is kept; more lie outside.
    Cut,
    /// Where no caller could be found.
    Broken,
}

/// A stack: the path to its innermost call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The innermost call.
    pub node: u32,
    /// How it ends.
    pub ending: Ending,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    modules: Vec<Module>,
    places: Vec<Place>,
    nodes: Vec<Node>,
    stacks: Vec<Stack>,
    names: Vec<Numbered>,
    /// By their numbers, from 1 on; text 0 is empty.
    texts: Vec<String>,
}

impl Stacks {
    /// Number of stacks: sites are 1 to this.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// True if no stack was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The modules.
    #[must_use]
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The places.
    #[must_use]
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The calls, each after the one that it was made in.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The stack of a site; `None` for 0, and for what is no site. O(1).
    #[must_use]
    pub fn stack(&self, site: u64) -> Option<Stack> {
        let number = usize::try_from(site.checked_sub(1)?).ok()?;
        self.stacks.get(number).copied()
    }

    /// The nodes of a site's calls, the innermost first.
    pub fn calls(&self, site: u64) -> impl Iterator<Item = u32> + '_ {
        let mut next = self.stack(site).map(|stack| stack.node);
        std::iter::from_fn(move || {
            let own = next?;
            next = self.nodes.get(own as usize)?.parent;
            Some(own)
        })
    }

    /// The names at a place, the innermost function first; none if nobody has found them.
    pub fn names(&self, place: u32) -> impl Iterator<Item = Name<'_>> + '_ {
        let (first, behind) = self
            .places
            .get(place as usize)
            .map_or((0, 0), |own| own.names);
        let own = self.names.get(first as usize..behind as usize);
        let text = |number: u32| {
            let index = number.checked_sub(1);
            let text = index.and_then(|index| self.texts.get(index as usize));
            text.map_or("", String::as_str)
        };
        own.unwrap_or(&[]).iter().map(move |name| Name {
            function: text(name.function),
            file: text(name.file),
            line: name.line,
        })
    }

    /// What a place is called where it has no name of a function: `module+0x1234`.
    #[must_use]
    pub fn plain(&self, place: u32) -> String {
        let Some(own) = self.places.get(place as usize) else {
            return String::new();
        };
        match own
            .module
            .and_then(|module| self.modules.get(module as usize))
        {
            Some(module) => {
                let path = &module.path;
                let name = path.rsplit('/').next().unwrap_or(path);
                format!("{name}+{:#x}", own.address)
            }
            None => format!("{:#x}", own.address),
        }
    }

    /// Gives every place the names that `find` gives it; earlier ones are gone. O(places).
    pub fn name(&mut self, mut find: impl FnMut(&[Module], &Place) -> Vec<(String, String, u32)>) {
        self.names.clear();
        self.texts.clear();
        let mut known: HashMap<String, u32> = HashMap::from([(String::new(), 0)]);
        for place in &mut self.places {
            let first = self.names.len() as u32;
            for (function, file, line) in find(&self.modules, place) {
                let mut number = |mut text: String| {
                    cut(&mut text);
                    if let Some(&number) = known.get(&text) {
                        return number;
                    }
                    self.texts.push(text.clone());
                    let number = self.texts.len() as u32;
                    known.insert(text, number);
                    number
                };
                let (function, file) = (number(function), number(file));
                self.names.push(Numbered {
                    function,
                    file,
                    line,
                });
            }
            place.names = (first, self.names.len() as u32);
        }
    }
}

/// Cuts a text that is longer than [`MOST_TEXT`].
fn cut(text: &mut String) {
    if text.len() > MOST_TEXT {
        let mut end = MOST_TEXT - 4;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
}

/// Makes stacks, each thing once.
#[derive(Clone, Debug, Default)]
pub struct StacksBuilder {
    stacks: Stacks,
    modules: HashMap<Module, u32>,
    places: HashMap<(Option<u32>, u64), u32>,
    nodes: HashMap<Node, u32>,
    known: HashMap<Stack, u64>,
}

impl StacksBuilder {
    /// The number of a module.
    pub fn module(&mut self, module: Module) -> u32 {
        if let Some(&number) = self.modules.get(&module) {
            return number;
        }
        let number = self.stacks.modules.len() as u32;
        self.stacks.modules.push(module.clone());
        self.modules.insert(module, number);
        number
    }

    /// The site of a stack, whose calls are given as module and address, the innermost first; of more
    /// than [`MOST_DEEP`] the innermost are taken. 0 for a stack without calls. O(calls).
    pub fn stack(&mut self, calls: &[(Option<u32>, u64)], ending: Ending) -> u64 {
        let kept = calls.get(..MOST_DEEP).unwrap_or(calls);
        let ending = match kept.len() < calls.len() {
            true => Ending::Cut,
            false => ending,
        };
        let mut parent = None;
        for &(module, address) in kept.iter().rev() {
            let place = self.place(module, address);
            let node = Node { parent, place };
            let nodes = &mut self.stacks.nodes;
            parent = Some(*self.nodes.entry(node).or_insert_with(|| {
                nodes.push(node);
                nodes.len() as u32 - 1
            }));
        }
        let Some(node) = parent else {
            return 0;
        };
        let stack = Stack { node, ending };
        let stacks = &mut self.stacks.stacks;
        *self.known.entry(stack).or_insert_with(|| {
            stacks.push(stack);
            stacks.len() as u64
        })
    }

    fn place(&mut self, module: Option<u32>, address: u64) -> u32 {
        let places = &mut self.stacks.places;
        let place = self.places.entry((module, address));
        *place.or_insert_with(|| {
            places.push(Place {
                module,
                address,
                names: (0, 0),
            });
            places.len() as u32 - 1
        })
    }

    /// The stacks.
    #[must_use]
    pub fn finish(self) -> Stacks {
        self.stacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_with_a_common_outside_share_it() {
        let mut builder = StacksBuilder::default();
        let module = builder.module(Module::default());
        let at = |address| (Some(module), address);
        let one = builder.stack(&[at(3), at(2), at(1)], Ending::Whole);
        let other = builder.stack(&[at(4), at(2), at(1)], Ending::Whole);
        assert_eq!((one, other), (1, 2));
        assert_eq!(builder.stack(&[at(3), at(2), at(1)], Ending::Whole), 1);
        assert_eq!(builder.stack(&[at(3), at(2), at(1)], Ending::Cut), 3);
        assert_eq!(builder.stack(&[], Ending::Whole), 0);
        let stacks = builder.finish();
        assert_eq!((stacks.nodes().len(), stacks.places().len()), (4, 4));
        let addresses = |site| -> Vec<u64> {
            let places = stacks
                .calls(site)
                .map(|node| stacks.nodes()[node as usize].place);
            places
                .map(|place| stacks.places()[place as usize].address)
                .collect()
        };
        assert_eq!(addresses(1), [3, 2, 1]);
        assert_eq!(addresses(2), [4, 2, 1]);
        assert_eq!(addresses(0), [0; 0]);
        assert_eq!(addresses(9), [0; 0]);
    }

    #[test]
    fn places_without_names_are_called_by_module_and_address() {
        let mut builder = StacksBuilder::default();
        let module = builder.module(Module {
            path: "/usr/lib/libz.so.1".to_owned(),
            build_id: vec![1],
        });
        builder.stack(&[(Some(module), 0x1234), (None, 0x7f00)], Ending::Broken);
        let mut stacks = builder.finish();
        assert_eq!(stacks.plain(1), "libz.so.1+0x1234");
        assert_eq!(stacks.plain(0), "0x7f00");
        assert_eq!(stacks.plain(7), "");
        stacks.name(|modules, place| match place.module {
            Some(_) => vec![
                ("inner".to_owned(), String::new(), 0),
                (modules[0].path.clone(), "x".repeat(9000), 7),
            ],
            None => Vec::new(),
        });
        let names: Vec<Name<'_>> = stacks.names(1).collect();
        assert_eq!(names[0].function, "inner");
        assert_eq!(
            (names[1].function, names[1].line),
            ("/usr/lib/libz.so.1", 7)
        );
        assert!(names[1].file.len() <= MOST_TEXT && names[1].file.ends_with('…'));
        assert_eq!(stacks.names(0).count(), 0);
    }
}
