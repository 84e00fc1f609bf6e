//! Quantities of the API: `500m`, `0.5` and `5e-1` are one and the same.

/// Whether two texts are one quantity: `1Gi` and `1024Mi`, or the very same text.
#[must_use]
pub fn same_quantity(one: &str, other: &str) -> bool {
    one == other || billionths(one).is_some_and(|value| billionths(other) == Some(value))
}

/// A quantity in billionths, if the text is one that fits.
fn billionths(text: &str) -> Option<i128> {
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 || (whole.trim_start_matches(['+', '-']).is_empty() && fraction.is_empty()) {
        return None;
    }
    let negative = whole.starts_with('-');
    let whole: i128 = match whole.trim_start_matches(['+', '-']) {
        "" => 0,
        digits => digits.parse().ok()?,
    };
    let fraction: i128 = format!("{fraction:0<9}").parse().ok()?;
    let value = whole.checked_mul(1_000_000_000)?.checked_add(fraction)?;
    let value = if negative { -value } else { value };
    let scaled = |factor: i128| value.checked_mul(factor);
    match suffix {
        "" => Some(value),
        "n" => exact(value, 1_000_000_000),
        "u" => exact(value, 1_000_000),
        "m" => exact(value, 1_000),
        "k" => scaled(1_000),
        "M" => scaled(1_000_000),
        "G" => scaled(1_000_000_000),
        "T" => scaled(1_000_000_000_000),
        "P" => scaled(1_000_000_000_000_000),
        "E" => scaled(1_000_000_000_000_000_000),
        "Ki" => scaled(1 << 10),
        "Mi" => scaled(1 << 20),
        "Gi" => scaled(1 << 30),
        "Ti" => scaled(1 << 40),
        "Pi" => scaled(1 << 50),
        "Ei" => scaled(1 << 60),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let factor = 10_i128.checked_pow(exponent.unsigned_abs())?;
            if exponent < 0 { exact(value, factor) } else { scaled(factor) }
        }
    }
}

fn exact(value: i128, divisor: i128) -> Option<i128> {
    (value % divisor == 0).then(|| value / divisor)
}

#[cfg(test)]
mod tests {
    use super::billionths;

    #[test]
    fn one_quantity_has_many_forms() {
        for forms in [
            &["0.5", "500m", ".5", "5e-1", "500000u"][..],
            &["1Gi", "1024Mi", "1073741824", "1048576Ki"],
            &["1k", "1000", "1e3", "1E3", "1000000m"],
            &["-2", "-2000m"],
        ] {
            let values: Vec<_> = forms.iter().map(|form| billionths(form)).collect();
            assert!(values[0].is_some() && values.iter().all(|value| *value == values[0]), "{forms:?}");
        }
        for other in ["", "m", "1Gb", "elasticsearch", "1.2.3", "-"] {
            assert_eq!(billionths(other), None, "{other}");
        }
    }
}
