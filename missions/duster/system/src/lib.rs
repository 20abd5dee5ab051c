//! The declaration of the DUSTER data processing unit.
