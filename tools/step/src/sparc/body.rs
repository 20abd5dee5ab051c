//! A function's or a handler's own code as a graph: what is done from each instruction to those that may follow.
//!
//! Registers are followed while the graph grows: an instruction is looked at again when less is known of them than when
//! it was looked at before.
//!
//! Invariant: the edges from an instruction are all that the core can do there, with what is known of its
//! registers on every path there, and their weights are no less than the simulator counts.

use std::collections::HashMap;

use metes_leon3::decode::{Kind, Operation, SINK};

use super::state::{State, Unbalanced, Value};
use super::{ALWAYS, Analysis, COUNTS, NEVER, RESTORES, SAVES, Summary, TRAPPED, Unbounded, Work};
use crate::paths::{self, Edge, Graph, Knot, RETURNS, To, Weight};

/// The code under way.
pub(super) struct Body<'b, 'a> {
    analysis: &'b mut Analysis<'a>,
    handler: bool,
    windows: u32,
    stack: Result<u32, Unbounded>,
    states: HashMap<u32, State>,
}

/// What is done one after another on the way to a place.
#[derive(Clone)]
struct Run {
    weight: Weight<COUNTS>,
    state: State,
    /// The line of instructions that is surely in the cache.
    line: Option<u32>,
}

/// An edge, and what is known at its end.
struct Way {
    edge: Edge<u32, COUNTS>,
    state: State,
}

type Ways = Result<Vec<Way>, Unbounded>;

impl<'b, 'a> Body<'b, 'a> {
    pub(super) fn of_function(analysis: &'b mut Analysis<'a>) -> Body<'b, 'a> {
        Body {
            analysis,
            handler: false,
            windows: 0,
            stack: Ok(0),
            states: HashMap::new(),
        }
    }

    /// A handler of a window trap, whose own SAVEs and RESTOREs do not trap.
    pub(super) fn of_handler(analysis: &'b mut Analysis<'a>) -> Body<'b, 'a> {
        Body {
            handler: true,
            ..Body::of_function(analysis)
        }
    }

    /// All about the code that begins at `entry`.
    pub(super) fn summary(mut self, entry: u32) -> Result<Summary, Unbounded> {
        let graph = self.graph(entry)?;
        let loops = &self.analysis.options.loops;
        let longest = paths::longest(&graph, entry, &|head| loops.get(&head).copied());
        let mut returns = longest.map_err(|knot| match knot {
            Knot::Loop(head) => Unbounded::Loop(self.analysis.place(head)),
            Knot::Entries(place) => Unbounded::Entries(self.analysis.place(place)),
        })?;
        let first = self.analysis.options.line_of_instructions();
        for longest in returns.iter_mut().flatten() {
            add_misses(longest, first);
        }
        Ok(Summary {
            returns,
            windows: self.windows,
            stack: self.stack,
        })
    }

    fn graph(&mut self, entry: u32) -> Result<Graph<u32, COUNTS>, Unbounded> {
        let mut graph = Graph::new();
        let mut work = vec![entry];
        let state = if self.handler {
            State::of_handler()
        } else {
            State::of_function()
        };
        self.states.insert(entry, state);
        while let Some(at) = work.pop() {
            let ways = self.ways(at)?;
            let mut edges = Vec::with_capacity(ways.len());
            for way in ways {
                edges.push(way.edge);
                if let To::Place(to) = way.edge.to
                    && self.arrive(to, way.state)?
                {
                    work.push(to);
                }
            }
            graph.insert(at, edges);
        }
        Ok(graph)
    }

    /// Another path comes to `at`; whether that must be looked at now.
    fn arrive(&mut self, at: u32, state: State) -> Result<bool, Unbounded> {
        match self.states.get_mut(&at) {
            Some(known) => known
                .join(&state)
                .map_err(|Unbalanced| Unbounded::Windows(self.analysis.place(at))),
            None => {
                self.states.insert(at, state);
                Ok(true)
            }
        }
    }

    /// What may be done from the instruction at `at` on.
    fn ways(&mut self, at: u32) -> Ways {
        let operation = self.analysis.operation(at)?;
        let mut run = Run {
            weight: [0; COUNTS],
            state: self.states[&at].clone(),
            line: Some(self.line(at)),
        };
        match operation.kind {
            Kind::Branch | Kind::FloatBranch => self.branch(run, at, operation),
            Kind::Call => {
                let target = at.wrapping_add(operation.immediate);
                self.step(&mut run, at, operation)?;
                if target == at.wrapping_add(8) {
                    // It tells code where it stands.
                    return self.on(run, at, &[target]);
                }
                self.call(run, at, &[target])
            }
            Kind::Jmpl => self.jump(run, at, operation),
            _ if self.plain(&mut run, at, operation)? => {
                Ok(vec![self.to(&run, at.wrapping_add(4))])
            }
            _ => Ok(Vec::new()),
        }
    }

    fn branch(&mut self, mut run: Run, at: u32, operation: Operation) -> Ways {
        self.step(&mut run, at, operation)?;
        let target = at.wrapping_add(operation.immediate);
        let annul = operation.rs1 != 0;
        let mut ways = Vec::new();
        if operation.rd != ALWAYS {
            let mut run = run.clone();
            let next = if annul {
                self.annulled(&mut run);
                at.wrapping_add(8)
            } else {
                at.wrapping_add(4)
            };
            ways.push(self.to(&run, next));
        }
        if operation.rd == ALWAYS && annul {
            self.annulled(&mut run);
            ways.push(self.to(&run, target));
        } else if operation.rd != NEVER {
            ways.extend(self.on(run, at, &[target])?);
        }
        Ok(ways)
    }

    fn annulled(&self, run: &mut Run) {
        let cycles = u64::from(self.analysis.options.timing.annulled);
        add_cycles(&mut run.weight, [cycles; 2]);
    }

    /// Through a register: a return, a call, or a jump.
    fn jump(&mut self, mut run: Run, at: u32, operation: Operation) -> Ways {
        let target = run.state.sum(operation);
        self.step(&mut run, at, operation)?;
        let named = self.analysis.options.targets.get(&at).cloned();
        let targets = match (named, target) {
            (Some(targets), _) => targets,
            (None, Value::Number(target)) => vec![target],
            (None, Value::Return(behind)) if operation.rd == SINK => {
                return self.returns(run, at, behind);
            }
            _ => return Err(self.indirect(at)),
        };
        match operation.rd {
            SINK => self.on(run, at, &targets),
            15 => self.call(run, at, &targets),
            _ => Err(self.indirect(at)),
        }
    }

    fn indirect(&self, at: u32) -> Unbounded {
        Unbounded::Indirect(self.analysis.place(at))
    }

    /// The delay slot of what stands at `at`; false if nothing goes on behind it.
    fn slot(&mut self, run: &mut Run, at: u32) -> Result<bool, Unbounded> {
        let slot = at.wrapping_add(4);
        let operation = self.analysis.operation(slot)?;
        self.plain(run, slot, operation)
    }

    /// The delay slot, then one of `targets`.
    fn on(&mut self, mut run: Run, at: u32, targets: &[u32]) -> Ways {
        if !self.slot(&mut run, at)? {
            return Ok(Vec::new());
        }
        Ok(targets.iter().map(|&to| self.to(&run, to)).collect())
    }

    /// The delay slot, then the return address and `behind`.
    fn returns(&mut self, mut run: Run, at: u32, behind: u32) -> Ways {
        if self.handler {
            return self.returns_from_trap(run, at, behind);
        }
        let way = way_of(behind).ok_or_else(|| self.indirect(at))?;
        if !self.slot(&mut run, at)? {
            return Ok(Vec::new());
        }
        Ok(vec![self.back(&run, at, way)?])
    }

    /// `jmp %l1; rett %l2`.
    fn returns_from_trap(&mut self, mut run: Run, at: u32, behind: u32) -> Ways {
        let slot = at.wrapping_add(4);
        let operation = self.analysis.operation(slot)?;
        let to = run.state.sum(operation);
        if operation.kind != Kind::Rett || behind != 0 || to != Value::Return(4) {
            return Err(self.indirect(at));
        }
        self.step(&mut run, slot, operation)?;
        Ok(vec![self.back(&run, at, 0)?])
    }

    /// An edge to a return.
    fn back(&self, run: &Run, at: u32, way: usize) -> Result<Way, Unbounded> {
        if !run.state.level() {
            return Err(Unbounded::Windows(self.analysis.place(at)));
        }
        Ok(Way {
            edge: Edge {
                to: To::Return(way),
                weight: run.weight,
            },
            state: run.state.clone(),
        })
    }

    /// The delay slot of the call at `at`, one of the functions `targets`, and where that returns to, which the slot may
    /// have changed: to where this function was called from, as a last call does.
    fn call(&mut self, mut run: Run, at: u32, targets: &[u32]) -> Ways {
        if self.analysis.ends_at(at) && self.keeps_return(&run, at)? {
            return Ok(Vec::new());
        }
        if !self.slot(&mut run, at)? {
            return Ok(Vec::new());
        }
        let mut ways = Vec::new();
        for &target in targets {
            if !self.analysis.options.ending.contains(&target) {
                self.one_call(&run, at, target, &mut ways)?;
            }
        }
        Ok(ways)
    }

    fn one_call(
        &mut self,
        run: &Run,
        at: u32,
        target: u32,
        ways: &mut Vec<Way>,
    ) -> Result<(), Unbounded> {
        let called = self.analysis.of_function(target)?;
        self.below(run, at, &called);
        for way in 0..RETURNS {
            let Some(weight) = called.returns[way] else {
                continue;
            };
            let mut run = run.clone();
            run.weight = paths::plus(&run.weight, &weight);
            // What was called may have taken the line's place.
            run.line = None;
            ways.push(match run.state.get(15) {
                Value::Number(from) => {
                    run.state.called();
                    self.to(&run, from.wrapping_add(behind(way)))
                }
                Value::Return(0) => self.back(&run, at, way)?,
                _ => return Err(self.indirect(at)),
            });
        }
        Ok(())
    }

    /// Windows and stack of a function that is called.
    fn below(&mut self, run: &Run, at: u32, called: &Summary) {
        let windows = run.state.depth().saturating_add(called.windows);
        self.windows = self.windows.max(windows);
        let deepest = match (run.state.get(14), &called.stack) {
            (_, Err(error)) => Err(error.clone()),
            (Value::Stack(offset), Ok(stack)) => Ok(depth(offset).saturating_add(*stack)),
            _ => Err(Unbounded::Frame(self.analysis.place(at))),
        };
        self.deepen(deepest);
    }

    fn deepen(&mut self, stack: Result<u32, Unbounded>) {
        match (&mut self.stack, stack) {
            (Ok(before), Ok(stack)) => *before = (*before).max(stack),
            (Ok(_), error) => self.stack = error,
            (Err(_), _) => {}
        }
    }

    /// An instruction that is no branch, call or jump; false if nothing goes on behind it.
    fn plain(&mut self, run: &mut Run, at: u32, operation: Operation) -> Result<bool, Unbounded> {
        let refused = |words| Err(Unbounded::Instruction(self.analysis.place(at), words));
        match operation.kind {
            Kind::Branch | Kind::FloatBranch | Kind::Call | Kind::Jmpl => {
                return Err(Unbounded::Slot(self.analysis.place(at)));
            }
            Kind::Undecoded | Kind::Illegal | Kind::Coprocessor => {
                return Err(Unbounded::Undecoded(self.analysis.place(at)));
            }
            Kind::Unimp => return Ok(false),
            Kind::Rett => return refused("returns from a trap"),
            Kind::Wrasr if operation.rd == 19 => return refused("waits for an interrupt"),
            Kind::Ticc if operation.rd != NEVER => {
                if !self.ends(run, operation) {
                    return refused("enters the system by a software trap");
                }
                if operation.rd == ALWAYS {
                    return Ok(false);
                }
            }
            _ => {}
        }
        self.step(run, at, operation)?;
        Ok(true)
    }

    /// Whether a software trap is one from which nothing returns.
    fn ends(&self, run: &Run, operation: Operation) -> bool {
        match run.state.sum(operation) {
            Value::Number(number) => self.analysis.ends(number),
            _ => false,
        }
    }

    /// Executes an instruction.
    fn step(&mut self, run: &mut Run, at: u32, operation: Operation) -> Result<(), Unbounded> {
        self.fetch(run, at);
        let options = self.analysis.options;
        let float = match operation.kind {
            Kind::FloatOperate | Kind::FloatCompare => options.timing.float(operation.immediate),
            _ => 0,
        };
        let cycles = options.timing.of(operation.kind) + float;
        let access = options.access(operation.kind);
        add_instruction(&mut run.weight);
        add_cycles(&mut run.weight, access.map(|access| cycles + access));
        self.window(run, operation.kind);
        if flushes(operation.kind) {
            run.line = None;
        }
        let applied = run.state.apply(at, operation);
        applied.map_err(|Unbalanced| Unbounded::Windows(self.analysis.place(at)))?;
        self.windows = self.windows.max(run.state.depth());
        if !self.handler {
            self.deepen(match run.state.get(14) {
                Value::Stack(offset) => Ok(depth(offset)),
                _ => Err(Unbounded::Frame(self.analysis.place(at))),
            });
        }
        Ok(())
    }

    /// What a SAVE or RESTORE costs if it traps.
    fn window(&self, run: &mut Run, kind: Kind) {
        let (count, trap) = match kind {
            Kind::Save => (SAVES, 0),
            Kind::Restore => (RESTORES, 1),
            _ => return,
        };
        run.weight[count] += 1;
        if let Some(traps) = self.analysis.traps.filter(|_| !self.handler) {
            let Work {
                instructions,
                cycles,
                cycles_with_misses,
            } = traps[trap];
            let costs = [instructions, cycles, cycles_with_misses];
            for (count, cost) in run.weight[TRAPPED..].iter_mut().zip(costs) {
                *count = count.saturating_add(cost);
            }
        }
    }

    fn line(&self, address: u32) -> u32 {
        address / self.analysis.options.lines[0].max(4)
    }

    fn fetch(&self, run: &mut Run, at: u32) {
        let line = Some(self.line(at));
        if std::mem::replace(&mut run.line, line) != line {
            add_misses(
                &mut run.weight,
                self.analysis.options.line_of_instructions(),
            );
        }
    }

    /// An edge to the instruction at `to`, which is fetched.
    fn to(&self, run: &Run, to: u32) -> Way {
        let mut run = run.clone();
        self.fetch(&mut run, to);
        Way {
            edge: Edge {
                to: To::Place(to),
                weight: run.weight,
            },
            state: run.state,
        }
    }

    /// Whether the call at `at` leaves its own address as the one to return to.
    fn keeps_return(&mut self, run: &Run, at: u32) -> Result<bool, Unbounded> {
        let slot = self.analysis.operation(at.wrapping_add(4))?;
        let mut state = run.state.clone();
        let applied = state.apply(at.wrapping_add(4), slot);
        Ok(applied.is_ok() && state.get(15) == Value::Number(at))
    }
}

/// How a function returns that goes on `behind` the address of the call.
fn way_of(behind: u32) -> Option<usize> {
    match behind {
        8 => Some(0),
        12 => Some(1),
        _ => None,
    }
}

fn behind(way: usize) -> u32 {
    8 + 4 * way as u32
}

/// Bytes below the stack pointer at the entry.
fn depth(offset: u32) -> u32 {
    (offset as i32).min(0).unsigned_abs()
}

/// Whether the caches may be empty after it.
fn flushes(kind: Kind) -> bool {
    use Kind::*;
    matches!(kind, Flush | Sta | Stba | Stha | Stda)
}

fn add_instruction(weight: &mut Weight<COUNTS>) {
    weight[0] += 1;
    weight[TRAPPED] += 1;
}

/// Cycles with hits, and with misses.
fn add_cycles(weight: &mut Weight<COUNTS>, cycles: [u64; 2]) {
    for first in [0, TRAPPED] {
        for (count, cycles) in weight[first + 1..].iter_mut().zip(cycles) {
            *count = count.saturating_add(cycles);
        }
    }
}

fn add_misses(weight: &mut Weight<COUNTS>, cycles: u64) {
    add_cycles(weight, [0, cycles]);
}
