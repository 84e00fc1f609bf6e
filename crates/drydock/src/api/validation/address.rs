//! IP addresses and networks.

use std::net::IpAddr;

use windlass_machinery::invalid::FieldError;

use super::field::{At, Errors};

/// An address.
pub(super) fn ip(out: &mut Errors, value: &str, at: &At<'_>) {
    match (value.parse::<IpAddr>(), sloppy(value)) {
        (_, None) => {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            out.push(FieldError::invalid(at, value, why));
        }
        (Err(_), Some(_)) => out.push(FieldError::invalid(at, value, "must not have leading 0s")),
        (Ok(IpAddr::V6(address)), _) if address.to_ipv4_mapped().is_some() => {
            out.push(FieldError::invalid(at, value, "must not be an IPv4-mapped IPv6 address"));
        }
        _ => {}
    }
}

/// A network.
pub(super) fn cidr(out: &mut Errors, value: &str, at: &At<'_>) {
    let mut refuse = |why: &str| out.push(FieldError::invalid(at, value, why));
    let Some((address, length)) = network(value) else {
        return refuse("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    };
    let (text, digits) = value.split_once('/').unwrap_or_default();
    if text.parse::<IpAddr>().is_err() || (digits.len() > 1 && digits.starts_with('0')) {
        refuse("must not have leading 0s in IP or prefix length");
    } else if matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
        refuse("must not have an IPv4-mapped IPv6 address");
    } else if masked(address, length) != address {
        refuse("must not have bits set beyond the prefix length");
    }
}

/// An address that can be an endpoint.
pub(super) fn endpoint(out: &mut Errors, value: &str, at: &At<'_>) {
    let Some(address) = sloppy(value) else {
        out.push(FieldError::invalid(at, value, "must be a valid IP address"));
        return;
    };
    let mut refuse = |bad: bool, why: String| {
        if bad {
            out.push(FieldError::invalid(at, value, why));
        }
    };
    refuse(address.is_unspecified(), format!("may not be unspecified ({value})"));
    refuse(address.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)".into());
    let local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    refuse(local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".into());
    let multicast = match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    };
    refuse(multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".into());
}

/// The address of a network interface: an address and the length of its network.
pub(super) fn interface(out: &mut Errors, value: &str, at: &At<'_>) {
    let Some((address, length)) = network(value) else {
        let why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        out.push(FieldError::invalid(at, value, why));
        return;
    };
    let whole = format!("{address}/{length}");
    if whole != value {
        let why = format!("must be in canonical form ({whole:?})");
        out.push(FieldError::invalid(at, value, why));
    }
}

/// Whether a text is an address.
pub(super) fn is_ip(value: &str) -> bool {
    sloppy(value).is_some()
}

/// Whether a text is an address of the sixth version.
pub(super) fn is_ipv6(value: &str) -> bool {
    matches!(sloppy(value), Some(IpAddr::V6(address)) if address.to_ipv4_mapped().is_none())
}

/// Whether one network lies within another and is smaller.
pub(super) fn is_within(inner: &str, outer: &str) -> Option<bool> {
    let ((inner, inner_length), (outer, outer_length)) = (network(inner)?, network(outer)?);
    let same = inner.is_ipv4() == outer.is_ipv4();
    Some(same && outer_length < inner_length && masked(inner, outer_length) == masked(outer, outer_length))
}

/// An address whose parts may have leading zeros, as old servers took them.
fn sloppy(value: &str) -> Option<IpAddr> {
    if let Ok(address) = value.parse() {
        return Some(address);
    }
    let parts: Vec<String> = value
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0".to_owned(),
            rest => rest.to_owned(),
        })
        .collect();
    if parts.len() != 4 { None } else { parts.join(".").parse().ok() }
}

fn network(value: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = value.split_once('/')?;
    let address = sloppy(address)?;
    let digits = !length.is_empty() && length.chars().all(|c| c.is_ascii_digit());
    let length: u32 = length.parse().ok().filter(|_| digits)?;
    (length <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, length))
}

fn masked(address: IpAddr, length: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(rule: fn(&mut Errors, &str, &At<'_>), value: &str) -> Vec<String> {
        let mut out = Errors::new();
        rule(&mut out, value, &At::new("ip"));
        out.into_iter().map(|error| error.detail).collect()
    }

    #[test]
    fn addresses_and_networks() {
        assert!(why(ip, "10.0.0.1").is_empty() && why(ip, "::1").is_empty());
        assert_eq!(why(ip, "010.0.0.1"), ["must not have leading 0s"]);
        assert!(why(ip, "x")[0].starts_with("must be a valid IP address"));
        assert!(why(cidr, "10.0.0.0/8").is_empty() && why(cidr, "0.0.0.0/0").is_empty());
        assert_eq!(why(cidr, "10.0.0.1/8"), ["must not have bits set beyond the prefix length"]);
        assert_eq!(why(endpoint, "127.0.0.1").len(), 1);
        assert_eq!(is_within("10.1.0.0/16", "10.0.0.0/8"), Some(true));
        assert_eq!(is_within("10.0.0.0/8", "10.0.0.0/8"), Some(false));
    }
}
