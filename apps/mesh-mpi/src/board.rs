//! What ranks tell each other beside the protocol: in the window of whom it is about.
//!
//! Invariant: the bytes of a block are written by who asked for it and read by who frees it, all of them.

use metes_mesh::Fabric;
use metes_mesh_replay::Board;

use crate::heap::sure;
use crate::ranks::Ranks;

impl Board for Ranks {
    fn load(&self, node: u32, word: usize) -> u64 {
        sure(self.window.load(node, self.layout.board(word)))
    }

    fn store(&self, node: u32, word: usize, value: u64) {
        sure(self.window.store(node, self.layout.board(word), value));
    }

    fn add(&self, node: u32, word: usize, value: u64) -> u64 {
        sure(self.window.add(node, self.layout.board(word), value))
    }

    fn raise(&self, node: u32, word: usize, value: u64) {
        sure(self.window.raise(node, self.layout.board(word), value));
    }

    fn write(&self, address: u64, size: u64, mark: u64) {
        if let Some(place) = self.space().place(address) {
            let at = self.layout.heap() + place.offset;
            sure(self.window.put(place.node.0, at, &filled(size, mark)));
        }
    }

    fn holds(&self, address: u64, size: u64, mark: u64) -> bool {
        self.space().place(address).is_some_and(|place| {
            let at = self.layout.heap() + place.offset;
            let mut found = vec![0; size as usize];
            sure(self.window.get(place.node.0, at, &mut found));
            found == filled(size, mark)
        })
    }

    fn wait(&self, _node: u32) {
        self.look();
        std::thread::yield_now();
    }

    fn rest(&self, _node: u32) {
        self.look();
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
}

/// What a block of that size holds that is marked so.
fn filled(size: u64, mark: u64) -> Vec<u8> {
    let mark = mark.to_ne_bytes();
    mark.into_iter().cycle().take(size as usize).collect()
}
