//! The flight software of the DUSTER data processing unit, over any hardware.
#![no_std]
