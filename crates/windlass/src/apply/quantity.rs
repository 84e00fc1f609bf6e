//! Quantities of the API: `500m`, `0.5` and `5e-1` are one and the same.

use windlass_machinery::quantity::Quantity;

/// Whether two texts are one quantity: `1Gi` and `1024Mi`, or the very same text.
#[must_use]
pub fn same_quantity(one: &str, other: &str) -> bool {
    one == other
        || Quantity::parse(one).is_ok_and(|one| Quantity::parse(other).is_ok_and(|other| one == other))
}

/// Whether a text is a quantity.
#[must_use]
pub fn is_quantity(text: &str) -> bool {
    Quantity::parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{is_quantity, same_quantity};

    #[test]
    fn one_quantity_has_many_forms() {
        for forms in [
            &["0.5", "500m", "5e-1", "500000u"][..],
            &["1Gi", "1024Mi", "1073741824", "1048576Ki"],
            &["1k", "1000", "1e3", "1E3", "1000000m"],
            &["-2", "-2000m"],
        ] {
            assert!(forms.iter().all(|form| same_quantity(forms[0], form)), "{forms:?}");
        }
        for other in ["", "m", "1Gb", "elasticsearch", "1.2.3", "-"] {
            assert!(!same_quantity(other, "1"), "{other}");
        }
        // The API takes a suffix without a number for zero.
        assert!(["500m", "m"].iter().all(|text| is_quantity(text)));
        assert!(!["", "1Gb", "elasticsearch", "1.2.3"].iter().any(|text| is_quantity(text)));
        assert!(!same_quantity("1G", "1Gi"));
    }
}
