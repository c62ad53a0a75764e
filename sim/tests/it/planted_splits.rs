//! A product whose splits are wrong: the checkers find it within a few seeds. Without the fault the same seeds pass.

use crate::planted_faults::found_by_a_seed;
use partition::planted::PlantedFault;

#[test]
fn a_forgotten_mask_is_found() {
    found_by_a_seed(PlantedFault::SiblingIsNotMasked, &["audit of the index"]);
}

#[test]
fn a_forgotten_log_entry_is_found() {
    found_by_a_seed(
        PlantedFault::AncestorsAreForgotten,
        &["audit of the index", "is not in the log", "a reader has", "change feed of"],
    );
}

#[test]
fn a_query_that_forgets_a_child_is_found() {
    found_by_a_seed(PlantedFault::ChildIsNotQueried, &["which was there all along"]);
}

#[test]
fn a_query_that_forgets_its_position_is_found() {
    found_by_a_seed(PlantedFault::PositionIsForgotten, &["twice", "after Some"]);
}
