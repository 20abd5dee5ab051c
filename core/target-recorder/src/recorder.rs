//! The ring.
//!
//! *Invariant:* `sent ≤ taken ≤ sent + EVENTS`, modulo 2³²; slots outside `sent..taken` have a second word of zero.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};

use metes_layout::target::{
    self as layout, ALLOCATED, BATCH_EVENTS, BATCH_MAGIC, EVENT_WORDS, FREED, HEADER_WORDS,
    REFUSED, RESIZED, RESIZING, RING_MAGIC, TOLD, batch, ring,
};

/// What a recorder must know of its target.
///
/// # Safety
/// Of all that call a recorder (other tasks, interrupts, cores), no two are in [`exclusively`](Target::exclusively) at
/// one time.
pub unsafe trait Target {
    /// Ticks of a second; 0 if there is no clock.
    const FREQUENCY: u32;

    /// The time in ticks, from any start, which may go on from 2³² − 1 at 0. A reader takes the steps between events for
    /// the least that they can be, so events must not be further apart than 2³² ticks.
    fn now() -> u32;

    /// Who asks: the number of a task, say. Only to be told from others.
    fn context() -> u8 {
        0
    }

    /// Does `work` while nobody else does: with interrupts blocked, or under a lock of all cores.
    fn exclusively<R>(work: impl FnOnce() -> R) -> R;
}

type Event = [AtomicU32; EVENT_WORDS];

/// A ring of `EVENTS` events, a power of two: the header, then events of 16 bytes.
#[repr(C, align(4))]
pub struct Recorder<T, const EVENTS: usize> {
    header: [AtomicU32; HEADER_WORDS],
    events: [Event; EVENTS],
    target: PhantomData<fn() -> T>,
}

impl<T: Target, const EVENTS: usize> Default for Recorder<T, EVENTS> {
    fn default() -> Self {
        Recorder::new()
    }
}

impl<T: Target, const EVENTS: usize> Recorder<T, EVENTS> {
    /// An empty ring. Fails to compile if `EVENTS` is not a power of two up to 2¹⁵.
    #[must_use]
    pub const fn new() -> Self {
        const {
            assert!(EVENTS.is_power_of_two() && EVENTS <= 1 << 15);
        }
        // All zero, so that it costs no room where programs are stored; the first event writes the header.
        Recorder {
            header: [const { AtomicU32::new(0) }; HEADER_WORDS],
            events: [const { [const { AtomicU32::new(0) }; EVENT_WORDS] }; EVENTS],
            target: PhantomData,
        }
    }

    /// A block of `size` bytes is at `address`; 0: the request was refused.
    pub fn allocated(&self, address: usize, size: usize, align: usize) {
        let kind = if address == 0 { REFUSED } else { ALLOCATED };
        self.take(kind, align.trailing_zeros(), address, size);
    }

    /// The block at `address` is freed: before it is.
    pub fn freed(&self, address: usize) {
        self.take(FREED, 0, address, 0);
    }

    /// The block at `address` is given `size` bytes: before it is.
    pub fn resizing(&self, address: usize, size: usize, align: usize) {
        self.take(RESIZING, align.trailing_zeros(), address, size);
    }

    /// The block that was at `before` is at `address` now; 0: that was refused, and it stays.
    pub fn resized(&self, before: usize, address: usize) {
        self.take(RESIZED, 0, address, before);
    }

    /// Says a [`figure`](layout::figure) of the heap or of the recording.
    pub fn tell(&self, figure: u32, first: u32, second: u32) {
        self.take(TOLD, figure & 31, first as usize, second as usize);
    }

    /// Events that wait to be sent.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.word(ring::TAKEN).wrapping_sub(self.word(ring::SENT))
    }

    /// Events that found no room so far.
    #[must_use]
    pub fn lost(&self) -> u32 {
        self.word(ring::LOST)
    }

    /// Hands the next events, a batch of up to [`BATCH_EVENTS`], to `put` in pieces; how many. Events
    /// that are being written, and those after them, wait. For one caller at a time, which what is recorded may interrupt.
    pub fn send(&self, mut put: impl FnMut(&[u8])) -> usize {
        let first = self.word(ring::SENT);
        let most = self.waiting().min(BATCH_EVENTS as u32);
        let written =
            |number: &u32| self.slot(first.wrapping_add(*number))[1].load(Ordering::Acquire) != 0;
        let count = (0..most).take_while(written).count();
        if count == 0 {
            return 0;
        }
        let mut header = [0; HEADER_WORDS];
        header[batch::MAGIC] = BATCH_MAGIC;
        header[batch::VERSION] = layout::VERSION;
        header[batch::COUNT] = count as u32;
        header[batch::FIRST] = first;
        header[batch::LOST] = self.word(ring::LOST);
        header[batch::LOST_FROM] = self.word(ring::LOST_FROM);
        header[batch::FREQUENCY] = T::FREQUENCY;
        let mut sum = 0;
        let mut word = |word: u32| {
            sum = layout::checksum(sum, word);
            put(&word.to_ne_bytes());
        };
        header.into_iter().for_each(&mut word);
        for number in 0..count as u32 {
            let event = self.slot(first.wrapping_add(number));
            for part in event {
                word(part.load(Ordering::Relaxed));
            }
            event[1].store(0, Ordering::Relaxed);
        }
        put(&sum.to_ne_bytes());
        // Only now are the slots somebody else's.
        self.header[ring::SENT].store(first.wrapping_add(count as u32), Ordering::Release);
        count
    }

    /// The ring as bytes: what a debugger would read. Nothing may be recorded meanwhile.
    #[must_use]
    pub fn dump(&self) -> (*const u8, usize) {
        (
            core::ptr::from_ref(self).cast(),
            4 * (HEADER_WORDS + EVENTS * EVENT_WORDS),
        )
    }

    fn begin(&self) {
        self.header[ring::VERSION].store(layout::VERSION, Ordering::Relaxed);
        self.header[ring::CAPACITY].store(EVENTS as u32, Ordering::Relaxed);
        self.header[ring::FREQUENCY].store(T::FREQUENCY, Ordering::Relaxed);
        self.header[ring::MAGIC].store(RING_MAGIC, Ordering::Release);
    }

    fn word(&self, at: usize) -> u32 {
        self.header[at].load(Ordering::Acquire)
    }

    fn slot(&self, number: u32) -> &Event {
        &self.events[number as usize & (EVENTS - 1)]
    }

    /// One event.
    #[inline]
    fn take(&self, kind: u32, align_log2: u32, address: usize, last: usize) {
        let taken = T::exclusively(|| {
            let now = T::now();
            if self.header[ring::MAGIC].load(Ordering::Relaxed) == 0 {
                self.begin();
            }
            let taken = self.header[ring::TAKEN].load(Ordering::Relaxed);
            let sent = self.header[ring::SENT].load(Ordering::Acquire);
            if taken.wrapping_sub(sent) < EVENTS as u32 {
                self.header[ring::TAKEN].store(taken.wrapping_add(1), Ordering::Relaxed);
                return Some((taken, now));
            }
            let lost = self.header[ring::LOST].load(Ordering::Relaxed);
            if lost == 0 {
                self.header[ring::LOST_FROM].store(now, Ordering::Relaxed);
            }
            self.header[ring::LOST].store(lost.saturating_add(1), Ordering::Relaxed);
            None
        });
        let Some((number, now)) = taken else { return };
        let event = self.slot(number);
        event[0].store(now, Ordering::Relaxed);
        event[2].store(address as u32, Ordering::Relaxed);
        event[3].store(last.min(u32::MAX as usize) as u32, Ordering::Relaxed);
        let what = layout::what(kind, align_log2, T::context(), number);
        event[1].store(what, Ordering::Release);
    }
}
