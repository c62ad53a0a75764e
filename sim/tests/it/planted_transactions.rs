//! A product that commits transactions which others have overtaken: the checkers find it within a few seeds. Without the
//! fault the same seeds pass.

use crate::planted_faults::found_by_a_seed;
use partition::planted::PlantedFault;

const WORDS: [&str; 2] = ["no order explains", "the records are not what the answers say"];

#[test]
fn a_transaction_that_is_not_validated_is_found() {
    found_by_a_seed(PlantedFault::DraftsAreNotValidated, &WORDS);
}

#[test]
fn a_forgotten_floor_is_found() {
    found_by_a_seed(PlantedFault::FloorIsForgotten, &WORDS);
}
