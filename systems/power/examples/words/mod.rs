//! Numbers on the command line of the examples.
//!
//! *Invariant:* a word that is no number, or one too many, ends the program with status 2 and says so; a default stands
//! for what was left out alone.

/// The words behind the program's name.
pub(crate) struct Words {
    usage: &'static str,
    rest: std::vec::IntoIter<String>,
}

impl Words {
    /// `usage` names them.
    pub(crate) fn new(usage: &'static str) -> Words {
        let all: Vec<String> = std::env::args().skip(1).collect();
        Words {
            usage,
            rest: all.into_iter(),
        }
    }

    /// The next, a whole number.
    pub(crate) fn number(&mut self, default: u64) -> u64 {
        let Some(word) = self.rest.next() else {
            return default;
        };
        word.parse()
            .unwrap_or_else(|_| self.wrong(&format!("`{word}` is no whole number")))
    }

    /// The next, as it is.
    #[allow(dead_code, reason = "not every example has one")]
    pub(crate) fn text(&mut self) -> Option<String> {
        self.rest.next()
    }

    /// There are no more.
    pub(crate) fn end(mut self) {
        if let Some(word) = self.rest.next() {
            self.wrong(&format!("`{word}` is one word too many"));
        }
    }

    fn wrong(&self, what: &str) -> ! {
        eprintln!("{what}: give {}", self.usage);
        std::process::exit(2)
    }
}
