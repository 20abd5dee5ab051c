//! What the DUSTER data processing unit and the ground say to each other.
#![no_std]
