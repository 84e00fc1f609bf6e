//! Resource quantities: exact decimal numbers with a suffix (`500m`, `1Gi`, `1e3`).
//!
//! Numbers are kept to the nano, rounding away from zero below it, and written in the canonical form: the largest
//! suffix that leaves a whole number. A text that is canonical already is kept as it is.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A resource quantity.
#[derive(Clone, Debug)]
pub struct Quantity {
    /// The value is `mantissa * 10^exponent`.
    mantissa: i128,
    exponent: i32,
    format: Format,
    text: Option<Box<str>>,
}

/// Which family of suffixes a quantity is written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `Ki`, `Mi`, …
    Binary,
    /// `m`, `k`, `M`, …
    Decimal,
    /// `e3`
    Exponent,
}

/// Why a text is not a quantity; the texts are the API server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It does not look like one.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number is none.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The canonical form of a quantity's text.
///
/// # Errors
/// When the text is not a quantity.
pub fn canonical(text: &str) -> Result<String, QuantityError> {
    Quantity::parse(text).map(|quantity| quantity.to_string())
}

const NANO: i32 = -9;
/// Whole numbers of up to this many digits take the short way, which keeps the text.
const SHORT_DIGITS: i32 = 18;

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self { mantissa: 0, exponent: 0, format: Format::Decimal, text: None };

    /// A whole number.
    #[must_use]
    pub fn new(value: i64, format: Format) -> Self {
        Self { mantissa: value.into(), exponent: 0, format, text: None }
    }

    /// A number of thousandths.
    #[must_use]
    pub fn milli(value: i64, format: Format) -> Self {
        Self { mantissa: value.into(), exponent: -3, format, text: None }
    }

    /// Reads a quantity.
    ///
    /// # Errors
    /// When the text is not one.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let parts = Parts::of(text)?;
        let (format, power) = suffix(parts.suffix).ok_or(QuantityError::Suffix)?;
        let fraction = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
        let digits = i32::try_from(parts.whole.len()).unwrap_or(i32::MAX).saturating_add(fraction);
        let magnitude = parts.magnitude();
        let sign = if parts.negative { -1 } else { 1 };

        let short = match format {
            Format::Binary => {
                fraction == 0
                    && 15 - i32::try_from(parts.whole.len()).unwrap_or(i32::MAX) - power * 3 / 10 > 0
            }
            _ => digits <= SHORT_DIGITS && power.saturating_sub(fraction) >= NANO,
        };
        if short && let Some((value, 0)) = magnitude {
            let shifted = [parts.whole, parts.fraction].concat();
            let (mantissa, exponent, keep) = match format {
                Format::Binary => (value << power, 0, value & 7 != 0),
                _ => {
                    let exponent = power - fraction;
                    let plain = !shifted.ends_with("000") && !shifted.starts_with('0');
                    (value, exponent, exponent % 3 == 0 && plain)
                }
            };
            let text = (keep || text == "0").then(|| text.into());
            return Ok(Self { mantissa: sign * mantissa, exponent, format, text });
        }

        // The short way takes no digits for zero, the long way does not.
        let (value, extra) = magnitude.filter(|_| parts.digits).ok_or(QuantityError::Numeric)?;
        let mut quantity =
            Self { mantissa: value, exponent: extra.saturating_sub(fraction), format, text: None };
        if format == Format::Binary {
            let largest = i128::from(i64::MAX);
            quantity.mantissa = value.checked_mul(1_i128 << power).unwrap_or(i128::MAX);
            quantity.round(NANO);
            if quantity.cmp(&Self::new(i64::MAX, format)) == Ordering::Greater {
                quantity = Self { mantissa: largest, exponent: 0, format, text: None };
            }
            if quantity.mantissa > 0 && quantity.cmp(&Self::new(1, format)) == Ordering::Less {
                quantity.format = Format::Decimal;
            }
        } else {
            quantity.exponent = quantity.exponent.saturating_add(power);
            quantity.round(NANO);
        }
        quantity.mantissa *= sign;
        Ok(quantity)
    }

    /// The sum; zero takes the other's format.
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        let format = if self.mantissa == 0 { other.format } else { self.format };
        let (left, right, exponent) = align(self, other);
        Self { mantissa: left.saturating_add(right), exponent, format, text: None }
    }

    /// The difference; zero takes the other's format.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        let format = if self.mantissa == 0 { other.format } else { self.format };
        let (left, right, exponent) = align(self, other);
        Self { mantissa: left.saturating_sub(right), exponent, format, text: None }
    }

    /// Its sign: -1, 0 or 1.
    #[must_use]
    pub fn sign(&self) -> i32 {
        match self.mantissa.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// Whether it is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.mantissa == 0
    }

    /// How it is written.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The value as a whole number, rounded away from zero.
    #[must_use]
    pub fn value(&self) -> i64 {
        self.scaled(0)
    }

    /// The value in thousandths, rounded away from zero.
    #[must_use]
    pub fn milli_value(&self) -> i64 {
        self.scaled(-3)
    }

    fn scaled(&self, exponent: i32) -> i64 {
        let mut rounded = self.clone();
        rounded.round(exponent);
        let shift = u32::try_from(rounded.exponent - exponent).unwrap_or(0);
        let value = 10_i128.checked_pow(shift).and_then(|factor| rounded.mantissa.checked_mul(factor));
        let limit = if self.mantissa < 0 { i64::MIN } else { i64::MAX };
        value.and_then(|value| i64::try_from(value).ok()).unwrap_or(limit)
    }

    /// Rounds away from zero to a multiple of `10^exponent`.
    fn round(&mut self, exponent: i32) {
        if self.exponent >= exponent || self.mantissa == 0 {
            return;
        }
        let shift = u32::try_from(i64::from(exponent) - i64::from(self.exponent)).unwrap_or(u32::MAX);
        self.mantissa = match 10_i128.checked_pow(shift) {
            Some(factor) => {
                let quotient = self.mantissa / factor;
                if self.mantissa % factor == 0 { quotient } else { quotient + self.mantissa.signum() }
            }
            None => self.mantissa.signum(),
        };
        self.exponent = exponent;
    }

    /// The value as a whole number, where it is one.
    fn whole(&self) -> Option<i128> {
        if self.exponent >= 0 {
            let factor = 10_i128.checked_pow(u32::try_from(self.exponent).ok()?)?;
            return self.mantissa.checked_mul(factor);
        }
        let factor = 10_i128.checked_pow(self.exponent.unsigned_abs());
        match factor {
            Some(factor) if self.mantissa % factor == 0 => Some(self.mantissa / factor),
            _ => None,
        }
    }

    fn write_decimal(&self, out: &mut fmt::Formatter<'_>, format: Format) -> fmt::Result {
        let (mut mantissa, mut exponent) = (self.mantissa, self.exponent);
        while mantissa != 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            exponent += 1;
        }
        while exponent % 3 != 0 {
            mantissa = mantissa.saturating_mul(10);
            exponent -= 1;
        }
        write!(out, "{mantissa}")?;
        match format {
            Format::Exponent if exponent == 0 => Ok(()),
            Format::Exponent => write!(out, "e{exponent}"),
            _ => out.write_str(match exponent {
                -9 => "n",
                -6 => "u",
                -3 => "m",
                3 => "k",
                6 => "M",
                9 => "G",
                12 => "T",
                15 => "P",
                18 => "E",
                // Larger ones have no suffix; the original leaves it out as well.
                _ => "",
            }),
        }
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.sign() != other.sign() {
            return self.sign().cmp(&other.sign());
        }
        if self.exponent == other.exponent {
            return self.mantissa.cmp(&other.mantissa);
        }
        // Of very different magnitudes only the magnitude counts.
        let digits = |quantity: &Self| {
            i64::from(quantity.mantissa.unsigned_abs().checked_ilog10().unwrap_or(0))
                + i64::from(quantity.exponent)
        };
        match digits(self).cmp(&digits(other)) {
            Ordering::Equal => {
                let (left, right, _) = align(self, other);
                left.cmp(&right)
            }
            different if self.sign() < 0 => different.reverse(),
            different if self.sign() > 0 => different,
            _ => Ordering::Equal,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return out.write_str(text);
        }
        if self.mantissa == 0 {
            return out.write_str("0");
        }
        if self.format != Format::Binary {
            return self.write_decimal(out, self.format);
        }
        let Some(mut whole) = self.whole().filter(|whole| whole.unsigned_abs() >= 1024) else {
            return self.write_decimal(out, Format::Decimal);
        };
        let mut power = 0;
        while whole.unsigned_abs() >= 1024 && whole % 1024 == 0 {
            whole /= 1024;
            power += 1;
        }
        write!(out, "{whole}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(power).unwrap_or(&""))
    }
}

/// Both mantissas at one exponent.
fn align(left: &Quantity, right: &Quantity) -> (i128, i128, i32) {
    let exponent = left.exponent.min(right.exponent);
    let shift = |quantity: &Quantity| {
        let factor = 10_i128.checked_pow(quantity.exponent.abs_diff(exponent)).unwrap_or(i128::MAX);
        quantity.mantissa.saturating_mul(factor)
    };
    (shift(left), shift(right), exponent)
}

struct Parts<'t> {
    negative: bool,
    /// Whether there is any digit before the suffix.
    digits: bool,
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Result<Self, QuantityError> {
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let run = |text: &str| text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
        let rest = unsigned.trim_start_matches('0');
        let (whole, rest) = rest.split_at(run(rest));
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(after) => after.split_at(run(after)),
            None => ("", rest),
        };
        let letters = rest.bytes().position(|byte| !b"eEinumkKMGTP".contains(&byte)).unwrap_or(rest.len());
        let exponent = &rest[letters..];
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if run(exponent) != exponent.len() {
            return Err(QuantityError::Format);
        }
        let whole = if whole.is_empty() { "0" } else { whole };
        let digits = unsigned[..unsigned.len() - rest.len()].bytes().any(|byte| byte.is_ascii_digit());
        Ok(Self { negative, digits, whole, fraction, suffix: rest })
    }

    /// The digits as a number, and by how many powers of ten it was cut short.
    fn magnitude(&self) -> Option<(i128, i32)> {
        let (mut value, mut cut) = (0_i128, 0);
        let mut inexact = false;
        for byte in self.whole.bytes().chain(self.fraction.bytes()) {
            let digit = i128::from(byte - b'0');
            match value.checked_mul(10).and_then(|value| value.checked_add(digit)).filter(|_| cut == 0) {
                Some(larger) => value = larger,
                None => {
                    cut += 1;
                    inexact |= digit != 0;
                }
            }
        }
        Some((if inexact { value.checked_add(1)? } else { value }, cut))
    }
}

fn suffix(text: &str) -> Option<(Format, i32)> {
    Some(match text {
        "" => (Format::Decimal, 0),
        "n" => (Format::Decimal, -9),
        "u" => (Format::Decimal, -6),
        "m" => (Format::Decimal, -3),
        "k" => (Format::Decimal, 3),
        "M" => (Format::Decimal, 6),
        "G" => (Format::Decimal, 9),
        "T" => (Format::Decimal, 12),
        "P" => (Format::Decimal, 15),
        "E" => (Format::Decimal, 18),
        "Ki" => (Format::Binary, 10),
        "Mi" => (Format::Binary, 20),
        "Gi" => (Format::Binary, 30),
        "Ti" => (Format::Binary, 40),
        "Pi" => (Format::Binary, 50),
        "Ei" => (Format::Binary, 60),
        _ => {
            let power: i64 = text.strip_prefix(['e', 'E'])?.parse().ok()?;
            (Format::Exponent, i32::try_from(power).ok()?)
        }
    })
}

#[cfg(test)]
mod tests;
