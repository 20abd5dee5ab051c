//! The longest path through a function of a module, in operators, as the engine's fuel counts them.
//!
//! Control in WebAssembly is structured, so one walk over the operators of a function, with the longest way to
//! each label that is open, finds the longest way to its end. A loop that is never branched back to is a block. One
//! that is has no longest way, unless it is known how often it goes round at the most; nor has recursion, a call
//! through a table, or a bulk operator, which costs a unit a byte.
//!
//! Invariant: no call of the function that returns takes more fuel, where what is given of its callees and loops
//! is true.

use std::collections::{HashMap, HashSet};

use wasmparser::{KnownCustom, Name, Operator, Parser, Payload};

/// What is known from outside: the cost of functions, and how often loops go round.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Operators of a call of a function, its entry included, by number.
    pub functions: HashMap<u32, u64>,
    /// Times that a loop goes round after the first at the most, by function and the loop's number in it.
    pub rounds: HashMap<(u32, u32), u64>,
}

/// Why there is no longest path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unbounded {
    /// A loop of which nothing is given.
    #[error("loop {loop_number} of {function} may go round any number of times")]
    Loop {
        /// The function.
        function: String,
        /// Which of its loops, from 0.
        loop_number: u32,
    },
    /// A function that calls itself.
    #[error("{0} calls itself")]
    Recursion(String),
    /// A call whose target is not known.
    #[error("{0} calls through a table")]
    Indirect(String),
    /// A bulk operator.
    #[error("{0} copies or fills a number of bytes that is not known")]
    Bytes(String),
    /// A function of the host.
    #[error("{0} is a function of the host")]
    Host(String),
}

/// Why a module cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the module cannot be read: {0}; give one that `wasm-validate` accepts")]
pub struct Unreadable(#[from] wasmparser::BinaryReaderError);

struct Function<'m> {
    operators: Vec<Operator<'m>>,
    bytes: usize,
}

/// The code of a module.
pub struct Code<'m> {
    imported: u32,
    functions: Vec<Function<'m>>,
    exports: HashMap<String, u32>,
    names: HashMap<u32, String>,
}

impl<'m> Code<'m> {
    /// Reads a module.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn new(wasm: &'m [u8]) -> Result<Code<'m>, Unreadable> {
        let mut code = Code {
            imported: 0,
            functions: Vec::new(),
            exports: HashMap::new(),
            names: HashMap::new(),
        };
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        if let wasmparser::TypeRef::Func(_) = import?.ty {
                            code.imported += 1;
                        }
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        let export = export?;
                        if export.kind == wasmparser::ExternalKind::Func {
                            code.exports.insert(export.name.to_owned(), export.index);
                        }
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    let mut operators = Vec::new();
                    for operator in body.get_operators_reader()? {
                        operators.push(operator?);
                    }
                    code.functions.push(Function {
                        operators,
                        bytes: body.range().len(),
                    });
                }
                Payload::CustomSection(section) => code.read_names(&section),
                _ => {}
            }
        }
        Ok(code)
    }

    /// Names are for people: what of them cannot be read is left out.
    fn read_names(&mut self, section: &wasmparser::CustomSectionReader<'_>) {
        let KnownCustom::Name(names) = section.as_known() else {
            return;
        };
        for subsection in names.into_iter().flatten() {
            if let Name::Function(functions) = subsection {
                for naming in functions.into_iter().flatten() {
                    self.names.insert(naming.index, naming.name.to_owned());
                }
            }
        }
    }

    /// The function that is exported under a name.
    pub fn exported(&self, name: &str) -> Option<u32> {
        self.exports.get(name).copied()
    }

    /// The functions in whose names the words occur.
    pub fn named(&self, words: &str) -> Vec<u32> {
        let found = self.names.iter().filter(|(_, name)| name.contains(words));
        let mut found: Vec<u32> = found.map(|(&number, _)| number).collect();
        found.sort_unstable();
        found
    }

    /// What a function is called.
    pub fn name(&self, function: u32) -> String {
        let exported = || self.exports.iter().find(|&(_, &number)| number == function);
        (self.names.get(&function).cloned())
            .or_else(|| exported().map(|(name, _)| name.clone()))
            .unwrap_or_else(|| format!("function {function}"))
    }

    fn body(&self, function: u32) -> Option<&Function<'m>> {
        let own = function.checked_sub(self.imported)?;
        self.functions.get(own as usize)
    }

    /// The functions that those call, and so on, they included; `without` are not entered.
    pub fn reached(&self, roots: &[u32], without: &[u32]) -> HashSet<u32> {
        let mut reached = HashSet::new();
        let mut open: Vec<u32> = roots.to_vec();
        while let Some(function) = open.pop() {
            if without.contains(&function) || !reached.insert(function) {
                continue;
            }
            for operator in self.body(function).iter().flat_map(|body| &body.operators) {
                if let Operator::Call { function_index } = operator {
                    open.push(*function_index);
                }
            }
        }
        reached
    }

    /// Bytes of the bodies of functions.
    pub fn bytes(&self, functions: &HashSet<u32>) -> usize {
        let bodies = functions.iter().filter_map(|&function| self.body(function));
        bodies.map(|body| body.bytes).sum()
    }

    /// Bytes of all bodies.
    pub fn all_bytes(&self) -> usize {
        self.functions.iter().map(|function| function.bytes).sum()
    }

    /// Whether any of the functions asks for more memory.
    pub fn grows(&self, functions: &HashSet<u32>) -> bool {
        let bodies = functions.iter().filter_map(|&function| self.body(function));
        bodies
            .flat_map(|body| &body.operators)
            .any(|operator| matches!(operator, Operator::MemoryGrow { .. }))
    }

    /// Operators of the longest path through a function that returns, its entry included.
    ///
    /// # Errors
    /// [`Unbounded`] where there is none.
    pub fn longest(&self, function: u32, given: &Given) -> Result<u64, Unbounded> {
        let mut known = given.functions.clone();
        self.longest_of(function, given, &mut known, &mut Vec::new())
    }

    fn longest_of(
        &self,
        function: u32,
        given: &Given,
        known: &mut HashMap<u32, u64>,
        open: &mut Vec<u32>,
    ) -> Result<u64, Unbounded> {
        if let Some(&cost) = known.get(&function) {
            return Ok(cost);
        }
        if open.contains(&function) {
            return Err(Unbounded::Recursion(self.name(function)));
        }
        let Some(body) = self.body(function) else {
            return Err(Unbounded::Host(self.name(function)));
        };
        open.push(function);
        for operator in &body.operators {
            if let Operator::Call { function_index } = operator {
                self.longest_of(*function_index, given, known, open)?;
            }
        }
        open.pop();
        // What going round costs is known once the way round is: inner loops first, so as often as loops nest.
        let mut rounds: HashMap<u32, u64> = HashMap::new();
        loop {
            let mut walk = Walk {
                code: self,
                function,
                given,
                known,
                rounds: &rounds,
                found: HashMap::new(),
            };
            let cost = walk.whole(&body.operators)?;
            let found = walk.found;
            if found == rounds {
                known.insert(function, cost);
                return Ok(cost);
            }
            rounds = found;
        }
    }
}

/// A label that is open.
struct Label {
    kind: Kind,
    /// The longest way to where it begins; `None`: there is none.
    begin: Option<u64>,
    /// The longest way to where branches to it lead, of a loop those to its end.
    end: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Block,
    /// With its number in the function.
    Loop(u32),
    /// Whether its other branch has begun.
    If(bool),
}

/// One walk over a function.
struct Walk<'w, 'm> {
    code: &'w Code<'m>,
    function: u32,
    given: &'w Given,
    known: &'w HashMap<u32, u64>,
    /// What all rounds of a loop after the first cost.
    rounds: &'w HashMap<u32, u64>,
    /// The same as this walk finds it.
    found: HashMap<u32, u64>,
}

fn later(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.max(other)
}

impl Walk<'_, '_> {
    fn whole(&mut self, operators: &[Operator<'_>]) -> Result<u64, Unbounded> {
        // Entering a function is one unit.
        let mut now = Some(1);
        let mut labels = vec![Label {
            kind: Kind::Block,
            begin: now,
            end: None,
        }];
        let mut loops = 0;
        for operator in operators {
            if let Some(way) = &mut now {
                *way += cost(operator);
            }
            match operator {
                Operator::Block { .. } => labels.push(Label {
                    kind: Kind::Block,
                    begin: now,
                    end: None,
                }),
                Operator::Loop { .. } => {
                    let number = loops;
                    loops += 1;
                    let all = self.rounds.get(&number).copied().unwrap_or(0);
                    let begin = now;
                    now = now.map(|way| way + all);
                    labels.push(Label {
                        kind: Kind::Loop(number),
                        begin,
                        end: None,
                    });
                }
                Operator::If { .. } => {
                    labels.push(Label {
                        kind: Kind::If(false),
                        begin: now,
                        end: None,
                    });
                }
                Operator::Else => {
                    if let Some(label) = labels.last_mut() {
                        label.end = later(label.end, now);
                        label.kind = Kind::If(true);
                        now = label.begin;
                    }
                }
                Operator::End => {
                    let Some(label) = labels.pop() else { break };
                    now = match label.kind {
                        Kind::Block | Kind::If(true) => later(now, label.end),
                        Kind::If(false) => later(later(now, label.end), label.begin),
                        Kind::Loop(_) => now,
                    };
                }
                Operator::Br { relative_depth } => {
                    self.branch(&mut labels, *relative_depth, now)?;
                    now = None;
                }
                Operator::BrIf { relative_depth } => {
                    self.branch(&mut labels, *relative_depth, now)?;
                }
                Operator::BrTable { targets } => {
                    for target in targets.targets().flatten() {
                        self.branch(&mut labels, target, now)?;
                    }
                    self.branch(&mut labels, targets.default(), now)?;
                    now = None;
                }
                Operator::Return => {
                    labels[0].end = later(labels[0].end, now);
                    now = None;
                }
                Operator::Unreachable => now = None,
                Operator::Call { function_index } => {
                    let callee = self.known.get(function_index).copied().unwrap_or(0);
                    now = now.map(|way| way + callee);
                }
                Operator::CallIndirect { .. } | Operator::CallRef { .. } if now.is_some() => {
                    return Err(Unbounded::Indirect(self.code.name(self.function)));
                }
                Operator::MemoryCopy { .. } | Operator::MemoryFill { .. } if now.is_some() => {
                    return Err(Unbounded::Bytes(self.code.name(self.function)));
                }
                _ => {}
            }
        }
        Ok(now.unwrap_or(0))
    }

    fn branch(
        &mut self,
        labels: &mut [Label],
        depth: u32,
        now: Option<u64>,
    ) -> Result<(), Unbounded> {
        let Some(way) = now else { return Ok(()) };
        let at = labels.len() - 1 - depth as usize;
        let label = &mut labels[at];
        let Kind::Loop(number) = label.kind else {
            label.end = later(label.end, now);
            return Ok(());
        };
        let Some(&times) = self.given.rounds.get(&(self.function, number)) else {
            return Err(Unbounded::Loop {
                function: self.code.name(self.function),
                loop_number: number,
            });
        };
        // The way before the loop is no part of a round, nor what the rounds cost together.
        let all = self.rounds.get(&number).copied().unwrap_or(0);
        let round = way - label.begin.unwrap_or(0) - all;
        let whole = self.found.entry(number).or_insert(0);
        *whole = (*whole).max(round * times);
        Ok(())
    }
}

/// What the engine takes for an operator.
fn cost(operator: &Operator<'_>) -> u64 {
    match operator {
        Operator::Nop
        | Operator::Drop
        | Operator::Block { .. }
        | Operator::Loop { .. }
        | Operator::Unreachable
        | Operator::Return
        | Operator::Else
        | Operator::End => 0,
        _ => 1,
    }
}
