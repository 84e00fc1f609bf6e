//! Quantities.

use std::cmp::Ordering;
use std::sync::Arc;

use super::super::Error;
use super::super::value::Value;
use super::Found;
use crate::quantity::{Format, Quantity};

pub(super) fn call<'a>(function: &str, args: &[Value<'a>]) -> Found<'a> {
    let result = match (function, args) {
        ("quantity", [Value::String(text)]) => {
            Quantity::parse(text).map(made).map_err(|error| Error::new(error.to_string()))
        }
        ("isQuantity", [Value::String(text)]) => Ok(Quantity::parse(text).is_ok().into()),
        ("sign", [Value::Quantity(one)]) => Ok(Value::Int(i64::from(one.sign()))),
        ("asInteger", [Value::Quantity(one)]) => {
            whole(one).map(Value::Int).ok_or_else(|| Error::new("cannot convert value to integer"))
        }
        ("isInteger", [Value::Quantity(one)]) => Ok(whole(one).is_some().into()),
        ("asApproximateFloat", [Value::Quantity(one)]) => Ok(Value::Double(match whole(one) {
            Some(value) => value as f64,
            None => one.milli_value() as f64 / 1000.0,
        })),
        ("isGreaterThan", [Value::Quantity(one), Value::Quantity(two)]) => Ok((one > two).into()),
        ("isLessThan", [Value::Quantity(one), Value::Quantity(two)]) => Ok((one < two).into()),
        ("compareTo", [Value::Quantity(one), Value::Quantity(two)]) => Ok(Value::Int(match one.cmp(two) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        })),
        ("add", [Value::Quantity(one), Value::Quantity(two)]) => Ok(made(one.add(two))),
        ("add", [Value::Quantity(one), Value::Int(two)]) => {
            Ok(made(one.add(&Quantity::new(*two, Format::Exponent))))
        }
        ("sub", [Value::Quantity(one), Value::Quantity(two)]) => Ok(made(one.subtract(two))),
        ("sub", [Value::Quantity(one), Value::Int(two)]) => {
            Ok(made(one.subtract(&Quantity::new(*two, Format::Exponent))))
        }
        _ => return None,
    };
    Some(result)
}

fn made<'a>(quantity: Quantity) -> Value<'a> {
    Value::Quantity(Arc::new(quantity))
}

/// The value of a quantity that is a whole number.
fn whole(quantity: &Quantity) -> Option<i64> {
    let value = quantity.value();
    (Quantity::new(value, Format::Decimal) == *quantity).then_some(value)
}
