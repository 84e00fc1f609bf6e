use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;

use super::*;
use crate::Object;

fn outcome<K: Object>(name: &str, condition: Condition, counts: bool) -> Outcome {
    let name = ObjectName::new("n", name);
    Outcome { type_name: Kind::of::<K>().name().into(), name, condition, counts, attributes: BTreeMap::new() }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn standing(status: &Status) -> Vec<(&str, &str, i64)> {
    let standing = status.conditions.iter();
    standing.map(|c| (c.type_.as_str(), c.status.as_str(), c.last_transition_time.0.as_second())).collect()
}

#[test]
fn the_worst_dependent_decides_in_whatever_order() {
    let failed = || outcome::<Deployment>("a", Condition::failed("Broken", "it broke"), true);
    let pending = || outcome::<Deployment>("b", Condition::pending("Rolling", "0 of 1"), true);
    let ready = || outcome::<Service>("c", Condition::ready(), true);
    let one = Status::compute(&Status::default(), Some(1), &[failed(), pending(), ready()], &[], at(5));
    let other = Status::compute(&Status::default(), Some(1), &[ready(), pending(), failed()], &[], at(5));
    assert_eq!(one, other);
    assert_eq!(standing(&one), [("Ready", "False", 5), ("Progressing", "True", 5), ("Degraded", "True", 5)]);
    assert_eq!(one.conditions[0].reason, "Broken");
    assert_eq!(one.conditions[0].message, "Deployment a: it broke");
}

#[test]
fn a_state_can_have_a_name_of_its_own() {
    let migrating =
        |name: &str| outcome::<Deployment>("a", Condition::pending("Schema", "3 of 5").named(name), true);
    let status = Status::compute(&Status::default(), Some(1), &[migrating("Migrating")], &[], at(5));
    let entry = &status.dependents[0];
    assert_eq!((entry.state.as_str(), entry.is_ready()), ("Migrating", false));
    assert_eq!(status.line(&Kind::of::<Deployment>(), "a"), "Migrating: 3 of 5");
    assert_eq!(standing(&status)[1], ("Progressing", "True", 5), "it counts as what it is a name for");
    // Another name is a transition, though both are pending.
    let later = Status::compute(&status, Some(1), &[migrating("Verifying")], &[], at(9));
    assert_eq!(later.dependents[0].last_transition_time, Some(Time(at(9))));
    let same = Status::compute(&later, Some(1), &[migrating("Verifying")], &[], at(20));
    assert_eq!(same.dependents[0].last_transition_time, Some(Time(at(9))));
}

#[test]
fn what_does_not_count_does_not_matter() {
    let ignored = outcome::<Deployment>("a", Condition::pending("Rolling", ""), false);
    assert!(Status::compute(&Status::default(), Some(1), &[ignored], &[], at(5)).is_ready());
}

#[test]
fn failed_does_not_stick_and_times_move_only_on_change() {
    let broken = outcome::<Deployment>("a", Condition::failed("Broken", "x"), true);
    let first = Status::compute(&Status::default(), Some(1), &[broken], &[], at(5));
    let pending = |message: &str| outcome::<Deployment>("a", Condition::pending("Rolling", message), true);
    let second = Status::compute(&first, Some(1), &[pending("0 of 1")], &[], at(6));
    let third = Status::compute(&second, Some(1), &[pending("1 of 2")], &[], at(7));
    assert_eq!(
        standing(&third),
        [("Ready", "False", 5), ("Progressing", "True", 6), ("Degraded", "False", 6)]
    );
    assert_eq!(third.dependents[0].last_transition_time, Some(Time(at(6))));
    assert!(second.is_urgent_after(&first));
    assert!(!third.is_urgent_after(&second), "progress in detail can wait");
}

#[test]
fn entries_of_dependents_that_are_gone_go() {
    let first = Status::compute(
        &Status::default(),
        Some(1),
        &[
            outcome::<Service>("a", Condition::ready(), false),
            outcome::<Service>("b", Condition::ready(), false),
        ],
        &[],
        at(5),
    );
    let second =
        Status::compute(&first, Some(1), &[outcome::<Service>("a", Condition::ready(), false)], &[], at(6));
    assert_eq!(second.dependents.len(), 1);
}

#[test]
fn only_what_is_newly_wrong_is_news() {
    let problem = [Condition::failed("InvalidSpec", "spec.image: is empty")];
    let first = Status::compute(&Status::default(), Some(1), &[], &problem, at(5));
    let again = Status::compute(&first, Some(2), &[], &problem, at(6));
    assert_eq!(first.news_since(&Status::default()).unwrap().0, "InvalidSpec");
    assert_eq!(again.news_since(&first), None);
}
