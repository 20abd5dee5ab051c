//! Leases: blocks of others' heaps taken in advance, so that a request looks into one heap at most, its own.
//!
//! A request that the own heap does not serve looks into all others in the worst case. Who cannot afford that takes some
//! blocks of them while there is time ([`Leases::renew`]): so many requests of at most that size are then served without a
//! step at another node. So what is bounded is not what the node needs over all times, but between two renewals; that is
//! a service curve of a burst of `COUNT` blocks.
//!
//! Invariant: a lease is a block in use of this node, which the program has not; so a dead node's leases are adopted with its
//! blocks.

use core::fmt;

use crate::fabric::Fabric;
use crate::mesh::Mesh;
use crate::refusal::{BadFree, Refusal};

/// A node's view of the mesh, with up to `COUNT` blocks of others taken in advance.
///
/// ```
/// use metes_heap::Tlsf;
/// use metes_mesh::{HeapSpace, Leases, Mesh, Node, Shared};
///
/// let shared = Shared::new(HeapSpace::new(1 << 32, 4096, 3)?, |_| Tlsf::<8>::new())?;
/// let mut leases: Leases<_, 4> = Leases::new(Mesh::new(&shared, Node(0)), 256, 8);
/// assert_eq!(leases.renew()?, 4);
/// // The own heap, and four more blocks.
/// while leases.allocate(256, 8).is_ok() {}
/// assert_eq!(leases.mesh().counts().longest, 1, "no heap but the own one was looked into");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Leases<'f, F: Fabric, const COUNT: usize> {
    mesh: Mesh<'f, F>,
    size: u64,
    align: u64,
    leased: [u64; COUNT],
    held: usize,
}

impl<F: Fabric, const COUNT: usize> fmt::Debug for Leases<'_, F, COUNT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases")
            .field("size", &self.size)
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

impl<'f, F: Fabric, const COUNT: usize> Leases<'f, F, COUNT> {
    /// No leases yet; of `size` bytes aligned to `align` each, once they are renewed.
    pub fn new(mesh: Mesh<'f, F>, size: u64, align: u64) -> Self {
        Leases {
            mesh,
            size,
            align,
            leased: [0; COUNT],
            held: 0,
        }
    }

    /// Takes blocks of others until there are `COUNT` leases or no other heap has room; how many there are. Each from
    /// another heap where that can be.
    ///
    /// # Errors
    /// [`Refusal::Busy`] and [`Refusal::Expelled`]; what was leased stays so.
    pub fn renew(&mut self) -> Result<usize, Refusal> {
        while self.held < COUNT {
            match self.mesh.allocate_away(self.size, self.align) {
                Ok(address) => {
                    self.leased[self.held] = address;
                    self.held += 1;
                }
                Err(Refusal::Full) => break,
                Err(other) => return Err(other),
            }
        }
        Ok(self.held)
    }

    /// Takes a block of the own heap, or else a lease. Looks into no other heap.
    ///
    /// # Errors
    /// [`Refusal::Unleased`] where neither serves; [`Refusal::Busy`] where the own heap was held by another all the time and
    /// no lease serves; [`Refusal::Expelled`].
    pub fn allocate(&mut self, size: u64, align: u64) -> Result<u64, Refusal> {
        let refusal = match self.mesh.allocate_home(size, align) {
            Err(Refusal::Full) => Refusal::Unleased,
            Err(Refusal::Busy) => Refusal::Busy,
            other => return other,
        };
        if size > self.size || align > self.align || self.held == 0 {
            return Err(refusal);
        }
        self.held -= 1;
        Ok(self.leased[self.held])
    }

    /// Frees a block; as [`Mesh::free`].
    ///
    /// # Errors
    /// [`BadFree`].
    pub fn free(&mut self, address: u64) -> Result<(), BadFree> {
        self.mesh.free(address)
    }

    /// Leases that are left.
    pub fn held(&self) -> usize {
        self.held
    }

    /// The view without leases, to ask for its counts.
    pub fn mesh(&self) -> &Mesh<'f, F> {
        &self.mesh
    }

    /// Gives all leases back.
    ///
    /// # Errors
    /// [`BadFree::Expelled`]: they are others' then.
    pub fn give_up(&mut self) -> Result<(), BadFree> {
        while let Some(last) = self.held.checked_sub(1) {
            self.mesh.free(self.leased[last])?;
            self.held = last;
        }
        Ok(())
    }
}

impl<F: Fabric, const COUNT: usize> Drop for Leases<'_, F, COUNT> {
    fn drop(&mut self) {
        // What an expelled node had leased is others' already.
        let _ = self.give_up();
    }
}
