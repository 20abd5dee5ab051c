//! Any telecommands at any time: an answer to each, no panic, and memory that is empty again.

use metes_duster_application::testing::campaign;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_telecommands_are_answered(seed in any::<u64>()) {
        let outcome = campaign::run(seed, 300);
        prop_assert_eq!(outcome.telecommands, 300);
        prop_assert_eq!(outcome.answered, 300);
        prop_assert_eq!(outcome.live_at_end, 0);
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        campaign::feed(&bytes);
    }
}
