//! What is due a few cycles from now: packets on links, credits on their way back.
//!
//! *Invariant:* nothing is due farther ahead than a lap, and every cycle is visited while anything is due; so a slot holds
//! what is due in one cycle alone.

/// Lists of what is due, a slot a cycle.
pub(super) struct Wheel<T> {
    slots: Vec<Vec<T>>,
    count: usize,
}

impl<T> Wheel<T> {
    /// A wheel for what is due at most so many cycles ahead.
    pub(super) fn new(farthest: u64) -> Wheel<T> {
        Wheel {
            slots: (0..=farthest).map(|_| Vec::new()).collect(),
            count: 0,
        }
    }

    /// How much is due.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Files what is due at a later cycle.
    pub(super) fn file(&mut self, cycle: u64, item: T) {
        self.count += 1;
        self.slot(cycle).push(item);
    }

    /// Takes what is due; the list goes back by [`restore`](Self::restore), so that none is allocated a cycle.
    pub(super) fn take(&mut self, cycle: u64) -> Vec<T> {
        let due = std::mem::take(self.slot(cycle));
        self.count -= due.len();
        due
    }

    /// Gives a list back, in the cycle in which it was taken: what was filed since is due in other cycles.
    pub(super) fn restore(&mut self, cycle: u64, mut list: Vec<T>) {
        list.clear();
        let slot = self.slot(cycle);
        debug_assert!(slot.is_empty(), "nothing is due a lap ahead");
        *slot = list;
    }

    fn slot(&mut self, cycle: u64) -> &mut Vec<T> {
        let laps = self.slots.len() as u64;
        &mut self.slots[(cycle % laps) as usize]
    }
}
