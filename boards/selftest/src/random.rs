//! Deterministic pseudo-random numbers (xorshift32; G. Marsaglia, "Xorshift RNGs",
//! Journal of Statistical Software 8(14), 2003). Invariant: the state is never zero.

/// A generator with a period of 2^32 - 1.
pub struct Random(u32);

impl Random {
    /// Starts from a seed; zero is replaced, as the generator would stay there.
    pub fn new(seed: u32) -> Self {
        Self(if seed == 0 { 0x9E37_79B9 } else { seed })
    }

    /// The next number. O(1).
    pub fn next_u32(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    /// A number below `limit` (which must not be zero), by multiplication, O(1). The
    /// bias of at most `limit` / 2^32 does not matter here.
    pub fn below(&mut self, limit: usize) -> usize {
        ((u64::from(self.next_u32()) * limit as u64) >> 32) as usize
    }
}
