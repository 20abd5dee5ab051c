//! The table of the slides, `TLSF vs. opt., non-comp. CF Performance`.

/// A row of the slides' table: TLSF's value and compact-fit's.
pub(super) type Pair = (f64, f64);

/// What the slides give for a program.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Which program.
    pub name: &'static str,
    /// Megabytes under TLSF, and under compact-fit with smallest blocks of 16 and of 32 bytes.
    pub memory: [f64; 3],
    /// Megabytes of size-class fragmentation, of the same two.
    pub size_class: [f64; 2],
    /// Clock ticks of malloc: mean, maximum.
    pub malloc: [Pair; 2],
    /// Clock ticks of free: mean, maximum.
    pub free: [Pair; 2],
}

/// The editor of the slides.
pub const EMACS: Published = Published {
    name: "Emacs",
    memory: [25.7, 34.6, 34.5],
    size_class: [0.46, 0.38],
    malloc: [(228.0, 260.0), (93_359.0, 81_662.0)],
    free: [(153.0, 279.0), (71_159.0, 74_798.0)],
};

/// The browser of the slides.
pub const HUMMINGBIRD: Published = Published {
    name: "Hummingbird",
    memory: [203.7, 245.3, 245.9],
    size_class: [8.3, 11.4],
    malloc: [(411.0, 529.0), (109_079.0, 98_820.0)],
    free: [(500.0, 574.0), (69_192.0, 79_914.0)],
};
