//! Whether a set of functions fits a host: processor demand by core, memory, and a certificate that is checked apart.
