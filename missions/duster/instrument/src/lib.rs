//! The probes and supplies of DUSTER, simulated, with ground truth and faults.
