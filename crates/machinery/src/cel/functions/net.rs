//! Addresses and ranges of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::super::Error;
use super::super::value::Value;
use super::Found;
use crate::go::quote;

pub(super) fn call<'a>(function: &str, args: &[Value<'a>]) -> Found<'a> {
    let result = match (function, args) {
        ("ip", [Value::String(text)]) => parse(text).map(Value::Ip),
        ("ip", [Value::Cidr(ip, _)]) => Ok(Value::Ip(*ip)),
        ("isIP", [Value::String(text)]) => Ok(parse(text).is_ok().into()),
        ("ip.isCanonical", [Value::String(text)]) => parse(text).map(|ip| (ip.to_string() == **text).into()),
        ("cidr", [Value::String(text)]) => {
            range(text).map(|(ip, bits)| Value::Cidr(ip, bits)).map_err(|why| {
                Error::new(format!("network address parse error during conversion from string: {why}"))
            })
        }
        ("isCIDR", [Value::String(text)]) => Ok(range(text).is_ok().into()),
        ("family", [Value::Ip(ip)]) => Ok(Value::Int(if ip.is_ipv4() { 4 } else { 6 })),
        ("isUnspecified", [Value::Ip(ip)]) => Ok(ip.is_unspecified().into()),
        ("isLoopback", [Value::Ip(ip)]) => Ok(ip.is_loopback().into()),
        ("isLinkLocalMulticast", [Value::Ip(ip)]) => Ok(match ip {
            IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
            IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
        }
        .into()),
        ("isLinkLocalUnicast", [Value::Ip(ip)]) => Ok(is_link_local(ip).into()),
        ("isGlobalUnicast", [Value::Ip(ip)]) => {
            let broadcast = *ip == IpAddr::V4(Ipv4Addr::BROADCAST);
            let special = ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_link_local(ip);
            Ok((!special && !broadcast).into())
        }
        ("prefixLength", [Value::Cidr(_, bits)]) => Ok(Value::Int(i64::from(*bits))),
        ("masked", [Value::Cidr(ip, bits)]) => Ok(Value::Cidr(masked(*ip, *bits), *bits)),
        ("containsIP", [Value::Cidr(ip, bits), other]) => match other {
            Value::Ip(other) => Ok(holds(*ip, *bits, *other).into()),
            Value::String(text) => parse(text).map(|other| holds(*ip, *bits, other).into()),
            _ => return None,
        },
        ("containsCIDR", [Value::Cidr(ip, bits), other]) => {
            let other = match other {
                Value::Cidr(other, length) => Ok((*other, *length)),
                Value::String(text) => range(text).map_err(|why| {
                    Error::new(format!("network address parse error during conversion from string: {why}"))
                }),
                _ => return None,
            };
            other.map(|(other, length)| (*bits <= length && holds(*ip, *bits, other)).into())
        }
        _ => return None,
    };
    Some(result)
}

fn is_link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn parse(text: &str) -> Result<IpAddr, Error> {
    if let Some((address, _)) = text.split_once('%')
        && address.parse::<Ipv6Addr>().is_ok()
    {
        return Err(Error::new(format!("IP address {} with zone value is not allowed", quote(text))));
    }
    let ip: IpAddr = text.parse().map_err(|_| {
        let shown = quote(text);
        Error::new(format!(
            "IP Address {shown} parse error during conversion from string: ParseAddr({shown}): {}",
            why(text)
        ))
    })?;
    match ip {
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some() => {
            Err(Error::new(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text))))
        }
        ip => Ok(ip),
    }
}

/// What Go says about an address that it cannot parse, for the common cases.
fn why(text: &str) -> String {
    match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => {
            let parts: Vec<&str> = text.split('.').collect();
            if let Some(bad) = parts.iter().find(|part| !part.bytes().all(|byte| byte.is_ascii_digit())) {
                let at = bad.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
                let rest = text.find(&bad[at..]).map_or(*bad, |at| &text[at..]);
                return format!("unexpected character (at {})", quote(rest));
            }
            if parts.iter().any(|part| part.parse::<u16>().is_ok_and(|part| part > 255)) {
                return "IPv4 field has value >255".to_owned();
            }
            if parts.iter().any(|part| part.len() > 1 && part.starts_with('0')) {
                return "IPv4 field has octet with leading zero".to_owned();
            }
            if parts.len() > 4 { "IPv4 address too long" } else { "IPv4 address too short" }.to_owned()
        }
        Some(b':') => "each colon-separated field must have at least one digit".to_owned(),
        Some(_) => "missing IPv6 address".to_owned(),
        None => "unable to parse IP".to_owned(),
    }
}

fn range(text: &str) -> Result<(IpAddr, u8), String> {
    let shown = quote(text);
    let wrong = |why: &str| {
        format!(
            "network address parse error during conversion from string: netip.ParsePrefix({shown}): {why}"
        )
    };
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| wrong("no '/'"))?;
    let ip: IpAddr = address
        .parse()
        .map_err(|_| wrong(&format!("ParseAddr({}): {}", quote(address), self::why(address))))?;
    let plain = !bits.is_empty()
        && bits.bytes().all(|byte| byte.is_ascii_digit())
        && (bits == "0" || !bits.starts_with('0'));
    let bad = || wrong(&format!("bad bits after slash: {}", quote(bits)));
    let bits: u32 = if plain {
        bits.parse().map_err(|_| bad())?
    } else {
        return Err(bad());
    };
    let most = if ip.is_ipv4() { 32 } else { 128 };
    if bits > most {
        return Err(wrong("prefix length out of range"));
    }
    if let IpAddr::V6(v6) = ip
        && v6.to_ipv4_mapped().is_some()
    {
        return Err(format!("IPv4-mapped IPv6 address {shown} is not allowed"));
    }
    Ok((ip, u8::try_from(bits).unwrap_or(128)))
}

fn masked(ip: IpAddr, bits: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(ip) & mask))
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(ip) & mask))
        }
    }
}

fn holds(ip: IpAddr, bits: u8, other: IpAddr) -> bool {
    ip.is_ipv4() == other.is_ipv4() && masked(ip, bits) == masked(other, bits)
}
