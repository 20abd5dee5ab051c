//! The driver's memory calls as a strict model: reservations of addresses, handles of physical
//! memory, mappings between them, and plain blocks.
//!
//! Rules are those of the driver's documentation (`cuda.h`, section "Virtual Memory Management"),
//! and where it leaves behaviour undefined, the call is refused. So what passes here keeps to the
//! documentation, which a real driver does not always insist on.
//!
//! Invariants:
//! - physical memory exists while its handle has references or mappings, and no longer;
//! - mappings lie within one reservation and do not overlap; a reservation with a mapping cannot
//!   be given back;
//! - the sum of physical memory never exceeds the device;
//! - a call that is refused changes nothing.

mod content_of;

use std::collections::BTreeMap;

use crate::addresses::Addresses;
use crate::content::Content;
use crate::error::{Answer, Code};

/// Bytes of a page of the device: the granularity of mappings, 2 MiB as on data-centre GPUs.
pub const GRANULARITY: u64 = 2 << 20;
/// Alignment of plain blocks, bytes; what the documentation of `cudaMalloc` promises is 256.
const BLOCK_ALIGN: u64 = 512;
/// Plain blocks from this size on have pages of their own; smaller ones share pages.
const OWN_PAGES: u64 = 1 << 20;
/// Addresses of a reservation are multiples of the host's page at least.
const HOST_PAGE: u64 = 4096;
/// The first handle. Far from small numbers, sizes and addresses, so that a mix-up is refused.
const FIRST_HANDLE: u64 = 0x6d65_7465_0000_0001;

/// What the device may do with a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Nothing: a new mapping.
    #[default]
    None,
    /// Read.
    Read,
    /// Read and write.
    ReadWrite,
}

/// What work does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It reads.
    Read,
    /// It writes.
    Write,
}

#[derive(Debug)]
struct Physical {
    size: u64,
    /// Where its bytes lie.
    offset: u64,
    references: u64,
    mappings: u64,
}

#[derive(Debug)]
struct Mapping {
    size: u64,
    handle: u64,
    access: Access,
}

#[derive(Debug)]
struct Reservation {
    addresses: Addresses,
    /// By address.
    mappings: BTreeMap<u64, Mapping>,
}

#[derive(Debug)]
struct Block {
    addresses: Addresses,
    /// Requested bytes.
    size: u64,
    offset: u64,
}

/// Sums, bytes unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Figures {
    /// Physical memory of the device.
    pub capacity: u64,
    /// Physical memory in use.
    pub used: u64,
    /// The most that was ever in use.
    pub peak_used: u64,
    /// Reserved addresses.
    pub reserved: u64,
    /// Mapped addresses.
    pub mapped: u64,
    /// Handles with a reference.
    pub handles: u64,
    /// Plain blocks, how many.
    pub blocks: u64,
    /// Size of the request that was last refused for want of memory; 0 if none was.
    pub refused: u64,
}

/// The memory of one device.
#[derive(Debug)]
pub struct Memory {
    capacity: u64,
    content: Content,
    reservations: BTreeMap<u64, Reservation>,
    physical: BTreeMap<u64, Physical>,
    blocks: BTreeMap<u64, Block>,
    next_handle: u64,
    /// Bytes of handles and of blocks with pages of their own.
    paged: u64,
    /// Bytes of blocks that share pages.
    shared: u64,
    peak: u64,
    refused: u64,
}

impl Memory {
    /// A device of `capacity` bytes; `kept` says whether it keeps what is written to it, or reads
    /// as zeros.
    ///
    /// # Errors
    /// What the host says when it has no memory for it.
    pub fn new(capacity: u64, kept: bool) -> std::io::Result<Memory> {
        Ok(Memory {
            capacity,
            content: Content::new(kept)?,
            reservations: BTreeMap::new(),
            physical: BTreeMap::new(),
            blocks: BTreeMap::new(),
            next_handle: FIRST_HANDLE,
            paged: 0,
            shared: 0,
            peak: 0,
            refused: 0,
        })
    }

    /// Physical bytes in use. O(1).
    #[must_use]
    pub fn used(&self) -> u64 {
        self.paged + self.shared.next_multiple_of(GRANULARITY)
    }

    /// Physical bytes of the device.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// All sums. O(reservations + mappings).
    #[must_use]
    pub fn figures(&self) -> Figures {
        let reservations = self.reservations.values();
        let mappings = reservations
            .clone()
            .flat_map(|reservation| reservation.mappings.values());
        Figures {
            capacity: self.capacity,
            used: self.used(),
            peak_used: self.peak,
            reserved: reservations.map(|range| range.addresses.size()).sum(),
            mapped: mappings.map(|mapping| mapping.size).sum(),
            handles: self.physical.values().filter(|p| p.references > 0).count() as u64,
            blocks: self.blocks.len() as u64,
            refused: self.refused,
        }
    }

    /// `cuMemAddressReserve`: addresses, a multiple of the granularity long.
    ///
    /// # Errors
    /// [`Code::InvalidValue`] for a size of 0 or that is no multiple of the granularity, and for
    /// an alignment that is no power of two; [`Code::OutOfMemory`] if the host has no such range.
    pub fn reserve(&mut self, size: u64, align: u64, hint: u64) -> Answer<u64> {
        if size == 0
            || !size.is_multiple_of(GRANULARITY)
            || (align != 0 && !align.is_power_of_two())
            || !hint.is_multiple_of(HOST_PAGE)
        {
            return Err(Code::InvalidValue);
        }
        let addresses = Addresses::reserve(size, align.max(GRANULARITY), hint)?;
        let start = addresses.start();
        let mappings = BTreeMap::new();
        self.reservations.insert(
            start,
            Reservation {
                addresses,
                mappings,
            },
        );
        Ok(start)
    }

    /// `cuMemAddressFree`: a whole reservation, without mappings.
    ///
    /// # Errors
    /// [`Code::InvalidValue`] otherwise.
    pub fn unreserve(&mut self, start: u64, size: u64) -> Answer {
        let reservation = self.reservations.get(&start).ok_or(Code::InvalidValue)?;
        if reservation.addresses.size() != size || !reservation.mappings.is_empty() {
            return Err(Code::InvalidValue);
        }
        self.reservations.remove(&start);
        Ok(())
    }

    /// `cuMemCreate`: physical memory, with one reference.
    ///
    /// # Errors
    /// [`Code::InvalidValue`] for a size of 0 or that is no multiple of the granularity;
    /// [`Code::OutOfMemory`] if the device has less left.
    pub fn create(&mut self, size: u64) -> Answer<u64> {
        if size == 0 || !size.is_multiple_of(GRANULARITY) {
            return Err(Code::InvalidValue);
        }
        self.charge(size, 0, size)?;
        let offset = match self.content.create(size) {
            Ok(offset) => offset,
            Err(code) => {
                self.paged -= size;
                return Err(code);
            }
        };
        let handle = self.next_handle;
        self.next_handle += 1;
        self.physical.insert(
            handle,
            Physical {
                size,
                offset,
                references: 1,
                mappings: 0,
            },
        );
        Ok(handle)
    }

    /// `cuMemRelease`: one reference less. The memory goes with the last reference and mapping.
    ///
    /// # Errors
    /// [`Code::InvalidValue`] for a handle without references (the documentation leaves this
    /// undefined).
    pub fn release(&mut self, handle: u64) -> Answer {
        let physical = self.referenced(handle)?;
        physical.references -= 1;
        self.collect(handle);
        Ok(())
    }

    /// `cuMemMap`: the first `size` bytes of a handle at an address.
    ///
    /// # Errors
    /// [`Code::InvalidValue`] unless size and address are multiples of the granularity, offset is
    /// 0 and size within the handle, and the range lies within one reservation and is unmapped.
    pub fn map(&mut self, start: u64, size: u64, offset: u64, handle: u64) -> Answer {
        if size == 0
            || !size.is_multiple_of(GRANULARITY)
            || !start.is_multiple_of(GRANULARITY)
            || offset != 0
            || size > self.referenced(handle)?.size
        {
            return Err(Code::InvalidValue);
        }
        let reservation = self.reservation_mut(start, size)?;
        let last_before = reservation.mappings.range(..start + size).next_back();
        if last_before.is_some_and(|(at, mapping)| at + mapping.size > start) {
            return Err(Code::InvalidValue);
        }
        let access = Access::None;
        reservation.mappings.insert(
            start,
            Mapping {
                size,
                handle,
                access,
            },
        );
        self.referenced(handle)?.mappings += 1;
        Ok(())
    }

    /// `cuMemUnmap`: whole mappings, without a gap.
    ///
    /// # Errors
    /// [`Code::InvalidValue`] otherwise.
    pub fn unmap(&mut self, start: u64, size: u64) -> Answer {
        let found = self.whole_mappings(start, size)?;
        let reservation = self.reservation_mut(start, size)?;
        let removed: Vec<u64> = found
            .into_iter()
            .filter_map(|at| reservation.mappings.remove(&at))
            .map(|mapping| mapping.handle)
            .collect();
        for handle in removed {
            if let Some(physical) = self.physical.get_mut(&handle) {
                physical.mappings -= 1;
            }
            self.collect(handle);
        }
        Ok(())
    }

    /// `cuMemSetAccess`: of whole mappings, without a gap.
    ///
    /// # Errors
    /// [`Code::InvalidValue`] otherwise.
    pub fn set_access(&mut self, start: u64, size: u64, access: Access) -> Answer {
        let found = self.whole_mappings(start, size)?;
        let reservation = self.reservation_mut(start, size)?;
        for at in found {
            if let Some(mapping) = reservation.mappings.get_mut(&at) {
                mapping.access = access;
            }
        }
        Ok(())
    }

    /// `cuMemGetAccess` of the mapping at an address.
    ///
    /// # Errors
    /// [`Code::InvalidValue`] if nothing is mapped there.
    pub fn access(&self, address: u64) -> Answer<Access> {
        Ok(self.mapping(address)?.1.access)
    }

    /// `cuMemRetainAllocationHandle`: one reference more to what is mapped at an address.
    ///
    /// # Errors
    /// [`Code::InvalidValue`] if nothing is mapped there.
    pub fn retain(&mut self, address: u64) -> Answer<u64> {
        let handle = self.mapping(address)?.1.handle;
        let physical = self.physical.get_mut(&handle).ok_or(Code::InvalidValue)?;
        physical.references += 1;
        Ok(handle)
    }

    /// Bytes of a handle.
    ///
    /// # Errors
    /// [`Code::InvalidValue`] for a handle without references.
    pub fn size_of_handle(&mut self, handle: u64) -> Answer<u64> {
        Ok(self.referenced(handle)?.size)
    }

    /// `cuMemAlloc`: a plain block.
    ///
    /// # Errors
    /// [`Code::InvalidValue`] for 0 bytes, [`Code::OutOfMemory`] if the device has less left.
    pub fn allocate(&mut self, size: u64) -> Answer<u64> {
        if size == 0 {
            return Err(Code::InvalidValue);
        }
        let (paged, shared) = charge_of(size).ok_or(Code::OutOfMemory)?;
        self.charge(paged, shared, size)?;
        let made = Addresses::reserve(size.next_multiple_of(HOST_PAGE), GRANULARITY, 0)
            .and_then(|addresses| Ok((addresses, self.content.create(size)?)));
        let (addresses, offset) = made.inspect_err(|_| {
            self.paged -= paged;
            self.shared -= shared;
        })?;
        let start = addresses.start();
        self.blocks.insert(
            start,
            Block {
                addresses,
                size,
                offset,
            },
        );
        Ok(start)
    }

    /// `cuMemFree`: a plain block, by the address at which it begins.
    ///
    /// # Errors
    /// [`Code::InvalidValue`] if no plain block begins there.
    pub fn free(&mut self, start: u64) -> Answer {
        let block = self.blocks.remove(&start).ok_or(Code::InvalidValue)?;
        let (paged, shared) = charge_of(block.size).unwrap_or((0, 0));
        self.paged -= paged;
        self.shared -= shared;
        self.content.release(block.offset, block.size);
        Ok(())
    }

    /// Frees every plain block, as the end of a context does.
    pub fn free_all(&mut self) {
        while let Some(start) = self.blocks.keys().next().copied() {
            let freed = self.free(start);
            debug_assert!(freed.is_ok());
        }
    }

    /// `cuMemGetAddressRange`: the plain block or mapping around an address.
    ///
    /// # Errors
    /// [`Code::InvalidValue`] if there is none.
    pub fn range(&self, address: u64) -> Answer<(u64, u64)> {
        if let Some((start, block)) = self.block(address) {
            return Ok((start, block.size));
        }
        let (start, mapping) = self.mapping(address)?;
        Ok((start, mapping.size))
    }

    /// Whether an address is of the device at all: reserved, or of a plain block. O(log n).
    #[must_use]
    pub fn is_known(&self, address: u64) -> bool {
        self.reservation(address, 1).is_ok() || self.block(address).is_some()
    }

    /// Counts physical memory as used; `request` is what the error remembers.
    fn charge(&mut self, paged: u64, shared: u64, request: u64) -> Answer {
        let after = |sum: u64, more: u64| sum.checked_add(more);
        let wanted = after(self.paged, paged).and_then(|paged| {
            let shared = after(self.shared, shared)?.checked_next_multiple_of(GRANULARITY)?;
            after(paged, shared)
        });
        if wanted.is_none_or(|wanted| wanted > self.capacity) {
            self.refused = request;
            return Err(Code::OutOfMemory);
        }
        self.paged += paged;
        self.shared += shared;
        self.peak = self.peak.max(self.used());
        Ok(())
    }

    /// Gives physical memory back that nothing refers to.
    fn collect(&mut self, handle: u64) {
        let unused = self
            .physical
            .get(&handle)
            .is_some_and(|physical| physical.references == 0 && physical.mappings == 0);
        if unused && let Some(physical) = self.physical.remove(&handle) {
            self.paged -= physical.size;
            self.content.release(physical.offset, physical.size);
        }
    }

    fn referenced(&mut self, handle: u64) -> Answer<&mut Physical> {
        self.physical
            .get_mut(&handle)
            .filter(|physical| physical.references > 0)
            .ok_or(Code::InvalidValue)
    }

    fn reservation(&self, address: u64, size: u64) -> Answer<&Reservation> {
        let (_, reservation) = self
            .reservations
            .range(..=address)
            .next_back()
            .filter(|(_, found)| found.addresses.contains(address, size))
            .ok_or(Code::InvalidValue)?;
        Ok(reservation)
    }

    fn reservation_mut(&mut self, address: u64, size: u64) -> Answer<&mut Reservation> {
        let (_, reservation) = self
            .reservations
            .range_mut(..=address)
            .next_back()
            .filter(|(_, found)| found.addresses.contains(address, size))
            .ok_or(Code::InvalidValue)?;
        Ok(reservation)
    }

    /// The mapping around an address, and where it begins.
    fn mapping(&self, address: u64) -> Answer<(u64, &Mapping)> {
        let (start, mapping) = self
            .reservation(address, 1)?
            .mappings
            .range(..=address)
            .next_back()
            .filter(|(start, mapping)| *start + mapping.size > address)
            .ok_or(Code::InvalidValue)?;
        Ok((*start, mapping))
    }

    /// Where the mappings begin that fill a range, each of them wholly within.
    fn whole_mappings(&self, start: u64, size: u64) -> Answer<Vec<u64>> {
        if size == 0 {
            return Err(Code::InvalidValue);
        }
        let reservation = self.reservation(start, size)?;
        let mut end = start;
        let mut found = Vec::new();
        for (at, mapping) in reservation.mappings.range(start..start + size) {
            if *at != end {
                return Err(Code::InvalidValue);
            }
            end += mapping.size;
            found.push(*at);
        }
        match end == start + size {
            true => Ok(found),
            false => Err(Code::InvalidValue),
        }
    }

    fn block(&self, address: u64) -> Option<(u64, &Block)> {
        self.blocks
            .range(..=address)
            .next_back()
            .filter(|(_, block)| block.addresses.contains(address, 1))
            .map(|(start, block)| (*start, block))
    }
}

/// Bytes of own and of shared pages that a plain block takes.
fn charge_of(size: u64) -> Option<(u64, u64)> {
    match size >= OWN_PAGES {
        true => Some((size.checked_next_multiple_of(GRANULARITY)?, 0)),
        false => Some((0, size.next_multiple_of(BLOCK_ALIGN))),
    }
}

#[cfg(test)]
mod tests;
