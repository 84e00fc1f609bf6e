//! A short run of each fuzz target: seeded, bounded, and from texts that make sense by changes that do not.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "fuzz/targets.rs"]
mod targets;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const TURNS: usize = 1500;

fn run(target: fn(&[u8]), seeds: &[&str]) {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for seed in seeds {
        target(seed.as_bytes());
    }
    for _ in 0..TURNS {
        let mut bytes = seeds[random.random_range(0..seeds.len())].as_bytes().to_vec();
        for _ in 0..random.random_range(1..5) {
            change(&mut bytes, seeds, &mut random);
        }
        target(&bytes);
    }
}

fn change(bytes: &mut Vec<u8>, seeds: &[&str], random: &mut ChaCha8Rng) {
    let at = random.random_range(0..=bytes.len());
    let length = random.random_range(0..=(bytes.len() - at).min(12));
    match random.random_range(0..5) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..at + length)),
        2 => bytes.insert(at, random.random()),
        3 => {
            let copy = bytes[at..at + length].to_vec();
            bytes.splice(at..at, copy);
        }
        _ => {
            let other = seeds[random.random_range(0..seeds.len())].as_bytes();
            let from = random.random_range(0..other.len());
            let to = random.random_range(from..=other.len());
            bytes.splice(at..at, other[from..to].iter().copied());
        }
    }
    // Deep nesting is a case of its own, see below.
    bytes.truncate(4096);
}

#[test]
fn patches() {
    run(
        targets::patches,
        &[
            r#"[{"op":"add","path":"/metadata/finalizers/-","value":"x/z"},{"op":"test","path":"/spec/replicas","value":1}]"#,
            r#"[{"op":"move","from":"/spec/template","path":"/spec/x"},{"op":"remove","path":"/metadata/labels/a~1b"}]"#,
            r#"{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"name":"a","$patch":"delete"}]}}}}"#,
            r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["x/y"]},"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}"#,
        ],
    );
}

#[test]
fn apply() {
    run(
        targets::apply,
        &[
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","labels":{"a":"c"}},"spec":{"replicas":2}}"#,
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"template":{"spec":{"containers":[{"name":"a","env":[{"name":"X"}]},{"name":"b","ports":[{"containerPort":80},{"containerPort":81,"protocol":"UDP"}]}]}}}}"#,
        ],
    );
}

#[test]
fn selectors() {
    run(
        targets::selectors,
        &[
            "a=b,c!=d",
            "a in (x,y),!b,c notin (z),d",
            "x>1,y<2",
            "metadata.name=a\\,b",
            "1.5Gi",
            "100m",
            "1e3",
            "-0.5",
        ],
    );
}

#[test]
fn definitions() {
    run(
        targets::definitions,
        &[
            r#"{"type":"object","properties":{"spec":{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^a+$","maxLength":5,"default":"x"},"b":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}}}}}"#,
            r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{"type":"object","x-kubernetes-validations":[{"rule":"self.a == oldSelf.a","message":"no"}],"properties":{"a":{"x-kubernetes-int-or-string":true}}}},"oneOf":[{"required":["spec"]},{"not":{}}]}"#,
        ],
    );
}

#[test]
fn expressions() {
    run(
        targets::expressions,
        &[
            "self.a.all(x, x.startsWith('a') && size(x) < 5) ? [1, 2].map(y, y * 2) : {'a': 1u}",
            "has(self.b) && self.b.matches('^[a-z]+$') || duration('1h') > duration('5m')",
            "quantity('1Gi').isGreaterThan(quantity('1Mi')) && ip('1.2.3.4').family() == 4",
        ],
    );
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for open in ["[", "{\"a\":", "(", "!", "-", "a[", "{'a':"] {
        let bytes = open.repeat(20_000).into_bytes();
        for target in
            [targets::patches, targets::apply, targets::selectors, targets::definitions, targets::expressions]
        {
            target(&bytes);
        }
    }
}
