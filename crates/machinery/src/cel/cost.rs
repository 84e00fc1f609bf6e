//! What expressions cost: at most, by the sizes that a schema allows, and in fact.
//!
//! A unit is the price of a simple step. Both sums follow the real server's, because it refuses expressions by them.

pub(super) mod actual;
mod estimate;
mod range;

pub(super) use estimate::estimate;

/// What walking through one character costs.
const TRAVERSAL: f64 = 0.1;
/// What one character of a pattern multiplies the price of matching with.
const PATTERN: f64 = 0.25;
