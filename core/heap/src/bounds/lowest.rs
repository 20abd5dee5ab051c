//! First fit by address against its proof: a plain model plays attacks, each lemma of
//! `docs/guarantees.md#first-fit` is verified at every request, and the list of this crate
//! must decide as the model does.

extern crate std;

use std::collections::BTreeMap;
use std::vec::Vec;

use super::any_fit::Ceiling;
use super::demand::Load;
use super::first_fit::{frontiers, share};
use super::{Demand, Geometry};
use crate::index::any::AnyIndex;
use crate::store::ledger::{ByHandle, Handle, Ledger};
use crate::{Heap, store};

mod attacks;

/// A piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    begin: u64,
    end: u64,
    held: Option<Held>,
}

/// What a live block was asked for: now, and at most since it was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    name: u32,
    now: u64,
    most: u64,
}

impl Piece {
    fn size(&self) -> u64 {
        self.end - self.begin
    }
}

/// Block sizes of a class, and their frontier.
#[derive(Clone, Copy, Debug)]
struct Class {
    low: u128,
    high: u128,
    frontier: u128,
}

type List<'a> = Heap<AnyIndex<store::ledger::LedgerBlock>, Ledger<'a, ByHandle>>;

/// First fit, as plainly as it can be written, with what the proof speaks of.
struct Model<'a> {
    load: Load,
    ceiling: Ceiling,
    pieces: Vec<Piece>,
    names: u32,
    /// Highest end of a block of each size so far.
    ends: BTreeMap<u64, u64>,
    classes: Vec<Class>,
    resized: bool,
    /// The list of this crate, its places by name, and where its first block begins.
    list: Option<(List<'a>, BTreeMap<u32, Handle>, Option<usize>)>,
}

impl Model<'_> {
    fn new(geometry: &Geometry, demand: &Demand, ceiling: Ceiling, resized: bool) -> Self {
        let load = Load::new(geometry, demand).unwrap();
        let mut classes = Vec::new();
        frontiers(&load, ceiling, resized, |low, high, frontier| {
            classes.push(Class {
                low,
                high,
                frontier,
            });
        })
        .unwrap();
        let highest = classes.last().unwrap().frontier as u64;
        Model {
            load,
            ceiling,
            pieces: std::vec![Piece {
                begin: 0,
                end: highest,
                held: None
            }],
            names: 0,
            ends: BTreeMap::new(),
            classes,
            resized,
            list: None,
        }
    }

    fn block(&self, request: u64) -> u64 {
        self.load.gross(request.into()) as u64
    }

    fn hole(&self, block: u64) -> u64 {
        (self.ceiling.of(block.into(), &self.load) - self.load.granule) as u64
    }

    fn live(&self) -> u64 {
        self.pieces
            .iter()
            .filter_map(|piece| piece.held)
            .map(|held| held.most)
            .sum()
    }

    fn high(&self) -> u64 {
        self.ends.values().copied().max().unwrap_or(0)
    }

    fn allocate(&mut self, request: u64) -> u32 {
        let block = self.block(request);
        let needed = self.hole(block) + self.load.granule as u64;
        let at = self
            .pieces
            .iter()
            .position(|piece| piece.held.is_none() && piece.size() >= needed);
        let at = at.expect("a heap of the bound refuses nothing");
        self.account(at, request);
        let hole = self.pieces[at];
        let rest = hole.size() - block;
        let end = if rest < self.load.minimum as u64 {
            hole.end
        } else {
            hole.begin + block
        };
        self.names += 1;
        let held = Held {
            name: self.names,
            now: request,
            most: request,
        };
        self.pieces[at] = Piece {
            end,
            held: Some(held),
            ..hole
        };
        if end < hole.end {
            self.pieces.insert(at + 1, Piece { begin: end, ..hole });
        }
        self.reached(at);
        if let Some((list, places, first)) = &mut self.list {
            let place = list.allocate(request as usize, 1).unwrap();
            let offset = list.place_offset(place);
            let first = *first.get_or_insert(offset);
            assert_eq!((offset - first) as u64, hole.begin);
            places.insert(self.names, place);
        }
        self.names
    }

    /// The block at `at` counts for the frontier of its size.
    fn reached(&mut self, at: usize) {
        let Piece { end, held, .. } = self.pieces[at];
        let size = self.block(held.unwrap().most);
        let highest = self.ends.entry(size).or_insert(0);
        *highest = end.max(*highest);
        let of_size = |class: &&Class| class.low <= size.into() && class.high >= size.into();
        let class = self.classes.iter().find(of_size).unwrap();
        assert!(
            u128::from(end) <= class.frontier,
            "a block of {size} ends at {end}: {class:?}"
        );
    }

    fn free(&mut self, name: u32) {
        let at = self.position(name);
        self.pieces[at].held = None;
        self.merge(at);
        if let Some((list, places, _)) = &mut self.list {
            list.release_place(places.remove(&name).unwrap()).unwrap();
        }
    }

    fn position(&self, name: u32) -> usize {
        let named = |piece: &Piece| piece.held.is_some_and(|held| held.name == name);
        self.pieces.iter().position(named).unwrap()
    }

    fn merge(&mut self, at: usize) {
        if self
            .pieces
            .get(at + 1)
            .is_some_and(|next| next.held.is_none())
        {
            self.pieces[at].end = self.pieces.remove(at + 1).end;
        }
        if at > 0 && self.pieces[at - 1].held.is_none() {
            self.pieces[at - 1].end = self.pieces.remove(at).end;
        }
    }

    /// Resizes a block where it lies, if there is room behind it.
    fn resize(&mut self, name: u32, request: u64) {
        let at = self.position(name);
        let block = self.block(request);
        let next = self.pieces.get(at + 1).filter(|next| next.held.is_none());
        let room_end = next.map_or(self.pieces[at].end, |next| next.end);
        let piece = &mut self.pieces[at];
        if room_end - piece.begin < block {
            return;
        }
        let had_hole = room_end > piece.end;
        let rest = room_end - piece.begin - block;
        piece.end = if rest < self.load.minimum as u64 {
            room_end
        } else {
            piece.begin + block
        };
        let end = piece.end;
        let held = piece.held.as_mut().unwrap();
        held.now = request;
        held.most = held.most.max(request);
        if had_hole {
            self.pieces.remove(at + 1);
        }
        if end < room_end {
            self.pieces.insert(
                at + 1,
                Piece {
                    begin: end,
                    end: room_end,
                    held: None,
                },
            );
        }
        self.reached(at);
    }

    /// The inequalities of the proof for a request that goes into piece `at`.
    fn account(&self, at: usize, request: u64) {
        let place = self.pieces[at].begin;
        let block = self.block(request);
        let hole = self.hole(block);
        let below = &self.pieces[..at];
        let slack = self.load.slack as u64;
        let mut live = 0;
        for (number, piece) in below.iter().enumerate() {
            match piece.held {
                // Lemma 1: what was passed over is smaller than the search.
                None => assert!(piece.size() <= hole),
                Some(held) => {
                    live += held.most;
                    let kept = piece.size() - self.block(held.now);
                    assert!(kept <= slack);
                    // Lemma 2: behind slack there is no hole, or one of a whole freed block.
                    let next = below.get(number + 1).filter(|next| next.held.is_none());
                    if kept > 0 && !self.resized {
                        let least = self.load.gross(self.load.smallest) as u64;
                        assert!(next.is_none_or(|next| next.size() >= least));
                    }
                }
            }
        }
        // The accounting: shares of the zones up to the place, against what is live there.
        let scale = 1_u128 << 40;
        let (mut before, mut shares) = (0, 0_u128);
        for (&size, _) in self.ends.range(..block) {
            let frontier = self.ends.range(..=size).map(|(_, &end)| end).max().unwrap();
            let zone = frontier.min(place).saturating_sub(before);
            let share = share(&self.load, size.into(), (hole + slack).into());
            shares += u128::from(zone) * share;
            before = before.max(frontier.min(place));
        }
        let own = u128::from(place - before);
        let plain = share(&self.load, block.into(), (hole + slack).into());
        assert!(
            shares + own * plain <= u128::from(live) * scale,
            "{:?} {:?} {:?} at {place}: {:?} {:?} {live} {}",
            self.load,
            self.ceiling,
            self.resized,
            self.ends,
            below,
            request
        );
        if block > hole && !self.resized {
            let closer = share(&self.load, block.into(), hole.max(slack).into());
            let spared = u128::from(2 * slack) * closer;
            assert!(shares + own * closer <= u128::from(live) * scale + spared);
        }
    }
}
