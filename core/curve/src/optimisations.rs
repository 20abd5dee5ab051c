//! Which optimisations operations may use.
//!
//! Invariant: none of them changes a result; each saves work only.

/// Defines [`Optimisations`]: a switch each, its name, and how it is set.
macro_rules! optimisations {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        /// Optimisations of convolutions, each of which can be switched off, to compare. All are on by
        /// default; results are the same whichever are.
        ///
        /// ```
        /// use metes_curve::{Algebra, Optimisations};
        ///
        /// let algebra = Algebra {
        ///     optimisations: Optimisations::default().without("slope_gap").expect("there is one"),
        ///     ..Algebra::default()
        /// };
        /// # let _ = algebra;
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct Optimisations {
            $($(#[$doc])* pub $name: bool,)*
        }

        impl Optimisations {
            /// The names of all switches.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// All on.
            #[must_use]
            pub const fn all() -> Self {
                Optimisations { $($name: true),* }
            }

            /// All off.
            #[must_use]
            pub const fn none() -> Self {
                Optimisations { $($name: false),* }
            }

            fn set(mut self, name: &str, on: bool) -> Option<Self> {
                match name {
                    $(stringify!($name) => self.$name = on,)*
                    _ => return None,
                }
                Some(self)
            }
        }
    };
}

optimisations! {
    /// Cut the faster curve where the gap between the slopes has outgrown what the slower one
    /// varies by.
    slope_gap;
    /// Cut the faster curve where it has outgrown what the slower one grows by within as long a time.
    growth;
    /// Cut the faster of two curves, of which the slower never falls, by common multiples of steps.
    isospeed;
    /// Take the least shift of the faster curve, by whole periods, that the slower one makes up for;
    /// and of each cut, the slower curve's period rather than a common multiple.
    super_isospeed;
    /// With equal slopes, compute to one common multiple of the periods and their greatest common
    /// divisor, rather than to two multiples.
    common_divisor;
    /// Convolve what is needed of steeper curves first, and with the slow one at once, on whole numbers of
    /// 64 bits.
    together;
    /// Merge convex curves by slope.
    convex;
    /// Take the minimum of concave curves.
    concave;
    /// Build envelopes in two buffers, row by row, instead of an allocation for each pair.
    merge_tree;
    /// Pass over pairs that begin too late or lie too high, without looking at each.
    early_exit;
    /// Scale operands to whole numbers first.
    integers;
    /// Convolve staircases that never fall on a grid, or by their skyline.
    staircase;
}

impl Default for Optimisations {
    fn default() -> Self {
        Optimisations::all()
    }
}

impl Optimisations {
    /// These optimisations with one switched on; `None` if there is none of that name.
    #[must_use]
    pub fn with(self, name: &str) -> Option<Self> {
        self.set(name, true)
    }

    /// These optimisations with one switched off; `None` if there is none of that name.
    #[must_use]
    pub fn without(self, name: &str) -> Option<Self> {
        self.set(name, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_has_its_name() {
        let mut all = Optimisations::none();
        for name in Optimisations::NAMES {
            let more = all.with(name).expect("a name");
            assert_ne!(more, all, "{name}");
            assert_eq!(more.without(name), Some(all), "{name}");
            all = more;
        }
        assert_eq!(all, Optimisations::default());
        assert_eq!(all.with("slopes"), None);
    }
}
