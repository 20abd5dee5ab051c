//! The figures of a heap on its board, in their order.

/// A quantity: what it is, has been at most, and by how much it rose and fell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Now.
    pub current: u64,
    /// At most.
    pub peak: u64,
    /// Sum of what was added.
    pub added: u64,
    /// Sum of what was taken away.
    pub removed: u64,
}

impl Count {
    fn words(self) -> [u64; 4] {
        [self.current, self.peak, self.added, self.removed]
    }
}

/// Words before the figures: those of the protocol.
pub(crate) const FIRST: usize = 2;

macro_rules! figures {
    ($($(#[$about:meta])* $name:ident: $kind:tt,)*) => {
        /// What a heap has and did.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Figures {
            $($(#[$about])* pub $name: figures!(@type $kind),)*
        }

        /// Words of figures, those of the protocol included.
        pub(crate) const WORDS: usize = FIRST $(+ figures!(@words $kind))*;

        impl Figures {
            /// Writes them behind the first words.
            #[inline]
            pub(crate) fn write(&self, words: &mut [u64; WORDS]) {
                let mut at = FIRST;
                $(figures!(@write $kind, self.$name, words, at);)*
                debug_assert_eq!(at, WORDS);
            }

            /// Reads the figures behind the first words; `None` for fewer words.
            pub(crate) fn read(words: &[u64]) -> Option<Self> {
                let mut words = words.get(FIRST..WORDS)?.iter().copied();
                Some(Figures {
                    $($name: figures!(@read $kind, words),)*
                })
            }

            /// Every count, with its name.
            pub(crate) fn counts(&self) -> impl Iterator<Item = (&'static str, Count)> {
                let all: [(&'static str, Option<Count>); _] = [
                    $((stringify!($name), figures!(@count $kind, self.$name)),)*
                ];
                all.into_iter().filter_map(|(name, count)| Some((name, count?)))
            }
        }
    };
    (@type count) => { Count };
    (@type word) => { u64 };
    (@words count) => { 4 };
    (@words word) => { 1 };
    (@write count, $value:expr, $words:ident, $at:ident) => {
        $words[$at..$at + 4].copy_from_slice(&$value.words());
        $at += 4;
    };
    (@write word, $value:expr, $words:ident, $at:ident) => {
        $words[$at] = $value;
        $at += 1;
    };
    (@read count, $words:ident) => {
        Count {
            current: $words.next()?,
            peak: $words.next()?,
            added: $words.next()?,
            removed: $words.next()?,
        }
    };
    (@read word, $words:ident) => { $words.next()? };
    (@count count, $value:expr) => { Some($value) };
    (@count word, $value:expr) => { None };
}

figures! {
    /// Blocks in use.
    blocks: count,
    /// Bytes of them, in whole granules.
    allocated: count,
    /// Bytes of them that were asked for.
    requested: count,
    /// Bytes of the device's memory that the heap has.
    reserved: count,
    /// Most bytes of the device's memory.
    cap: word,
    /// Pages under blocks in use.
    live_pages: word,
    /// Pages mapped under none.
    idle_pages: word,
    /// Pages mapped nowhere.
    spare_pages: word,
    /// Maps of new and spare pages so far.
    mapped: word,
    /// Moves of idle pages so far.
    moved: word,
    /// Most pages that one request moved.
    most_moved: word,
    /// Events recorded for frees.
    marks: word,
    /// Waits of the host for a stream.
    waits: word,
    /// Streams ordered behind another.
    orders: word,
    /// Streams followed now.
    streams: word,
    /// Requests refused for lack of memory.
    refusals: word,
    /// Requests tried again after memory was given back.
    retries: word,
    /// Frees of what is no block in use.
    bad_frees: word,
    /// 1 while the heap sleeps.
    asleep: word,
}
