use k8s_openapi::api::core::v1::Service;
use serde_json::json;

use super::*;
use crate::cache::Shares;
use crate::{Handle, ObjectName, Plan, State};

const OPERATOR: &str = "tester";

fn owner() -> Owner {
    Owner {
        operator: OPERATOR.into(),
        name: ObjectName::new("n", "p"),
        reference: OwnerReference {
            api_version: "x/v1".into(),
            kind: "Thing".into(),
            name: "p".into(),
            uid: "u1".into(),
            controller: Some(true),
            block_owner_deletion: None,
        },
    }
}

fn dependent(say: impl FnOnce(Handle<Service>) -> Handle<Service>) -> Dependent {
    let mut plan = Plan::new(owner());
    let service: Service =
        serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": {"type": "ClusterIP"}})).unwrap();
    let _ = say(plan.add(service));
    plan.finish().dependents.pop().unwrap()
}

/// The Service as it is after we have applied it, with some changes.
fn observed(change: impl FnOnce(&mut Value)) -> Stored {
    let mut tree = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "s", "namespace": "n", "uid": "s1", "resourceVersion": "7",
            "labels": {"app.kubernetes.io/managed-by": OPERATOR},
            "ownerReferences": [owner().reference],
            "managedFields": [{
                "manager": OPERATOR, "operation": "Apply", "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {
                        "f:labels": {"f:app.kubernetes.io/managed-by": {}},
                        "f:ownerReferences": {"k:{\"uid\":\"u1\"}": {}},
                    },
                    "f:spec": {"f:type": {}},
                },
            }],
        },
        "spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1"},
    });
    change(&mut tree);
    Stored::made(&tree, &Shares::new([OPERATOR.to_owned()].into()))
}

fn decided(change: impl FnOnce(&mut Value)) -> Action {
    decide(&dependent(|d| d), Some(&observed(change)), &owner(), false, false)
}

#[test]
fn what_is_as_it_should_be_is_left_alone() {
    assert_eq!(decided(|_| ()), Action::Nothing);
}

#[test]
fn what_differs_is_applied() {
    assert_eq!(decided(|s| s["spec"]["type"] = "NodePort".into()), Action::Apply("spec.type".into()));
    let unmanaged = decided(|s| s["metadata"]["managedFields"] = json!([]));
    assert_eq!(unmanaged, Action::Apply("metadata.managedFields".into()));
}

#[test]
fn a_lost_owner_is_repaired() {
    let lost = |s: &mut Value| s["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(decided(lost), Action::Apply("metadata.ownerReferences".into()));
    let once = dependent(Handle::once);
    assert_eq!(decide(&once, Some(&observed(lost)), &owner(), true, false), Action::RepairOwner);
}

#[test]
fn what_belongs_to_another_is_never_taken() {
    let other = |s: &mut Value| {
        s["metadata"]["ownerReferences"][0]["uid"] = "other".into();
        s["metadata"]["ownerReferences"][0]["name"] = "q".into();
    };
    let Action::Leave(condition) = decided(other) else { panic!() };
    assert_eq!(condition.state, State::Failed);
    assert_eq!(condition.message, "Service n/s belongs to Thing q; rename or delete it");
    let once = dependent(Handle::once);
    assert!(matches!(decide(&once, Some(&observed(other)), &owner(), false, false), Action::Leave(_)));

    let nobodys = |s: &mut Value| {
        s["metadata"]["ownerReferences"] = json!([]);
        s["metadata"]["labels"] = json!({});
    };
    let Action::Leave(condition) = decided(nobodys) else { panic!() };
    assert_eq!(condition.reason, "NotOurs");
    // But what is made once may be the user's own from the start.
    assert_eq!(decide(&once, Some(&observed(nobodys)), &owner(), false, false), Action::Nothing);
}

#[test]
fn the_child_of_a_former_primary_of_the_same_name_is_waited_for() {
    let former = decided(|s| s["metadata"]["ownerReferences"][0]["uid"] = "u0".into());
    let Action::Leave(condition) = former else { panic!() };
    assert_eq!(condition.state, State::Pending);
}

#[test]
fn what_is_made_once_is_neither_changed_nor_made_again() {
    let once = dependent(Handle::once);
    let edited = observed(|s| s["spec"]["type"] = "NodePort".into());
    assert_eq!(decide(&once, Some(&edited), &owner(), true, false), Action::Nothing);
    assert_eq!(decide(&once, None, &owner(), false, false), Action::Create);
    let Action::Leave(condition) = decide(&once, None, &owner(), true, false) else { panic!() };
    assert_eq!((condition.state, condition.reason.as_str()), (State::Failed, "Deleted"));
}

#[test]
fn nobodys_object_is_taken_when_asked_and_anothers_never() {
    let nobodys = |s: &mut Value| {
        s["metadata"]["ownerReferences"] = json!([]);
        s["metadata"]["labels"] = json!({});
    };
    let adopted = |d: &Dependent, change: &dyn Fn(&mut Value)| {
        decide(d, Some(&observed(change)), &owner(), false, true)
    };
    let owners = Action::Apply("metadata.ownerReferences".into());
    assert_eq!(adopted(&dependent(|d| d), &nobodys), owners);
    assert_eq!(adopted(&dependent(Handle::once), &nobodys), Action::RepairOwner);
    let others = |s: &mut Value| {
        s["metadata"]["ownerReferences"][0]["kind"] = "Other".into();
        s["metadata"]["ownerReferences"][0]["uid"] = "other".into();
    };
    assert!(matches!(adopted(&dependent(|d| d), &others), Action::Leave(_)));
}

#[test]
fn what_others_make_is_only_given_the_fields_it_lacks() {
    let shared = dependent(Handle::existing);
    assert_eq!(shared.desired.pointer("/metadata/ownerReferences"), None);
    let theirs = |s: &mut Value| {
        s["metadata"]["ownerReferences"] = json!([]);
        s["metadata"]["labels"] = json!({});
        s["metadata"]["managedFields"] = json!([]);
    };
    assert_eq!(decide(&shared, Some(&observed(theirs)), &owner(), false, false), Action::Nothing);
    let differs = |s: &mut Value| {
        theirs(s);
        s["spec"]["type"] = "NodePort".into();
    };
    let action = decide(&shared, Some(&observed(differs)), &owner(), false, false);
    assert_eq!(action, Action::Apply("spec.type".into()));
    assert!(matches!(decide(&shared, None, &owner(), false, false), Action::Leave(_)));
}

#[test]
fn an_unowned_dependent_says_for_whom_it_was_made() {
    let unowned = dependent(Handle::unowned);
    assert_eq!(unowned.desired["metadata"]["annotations"], json!({"windlass.dev/made-for": "Thing n/p"}));
    // One that was owned in an earlier release is let go.
    let owned = decide(&unowned, Some(&observed(|_| ())), &owner(), false, false);
    assert_eq!(owned, Action::Apply("metadata.ownerReferences".into()));
    let anothers = |s: &mut Value| {
        s["metadata"]["ownerReferences"] = json!([]);
        s["metadata"]["annotations"] = json!({"windlass.dev/made-for": "Thing n/q"});
    };
    let action = decide(&unowned, Some(&observed(anothers)), &owner(), false, false);
    assert!(matches!(action, Action::Leave(condition) if condition.message.contains("belongs to Thing n/q")));
}

#[test]
fn beyond_the_reach_of_garbage_collection_a_label_names_the_owner() {
    let mut plan = Plan::new(owner());
    let service: Service =
        serde_json::from_value(json!({"metadata": {"name": "s", "namespace": "far"}})).unwrap();
    plan.add(service);
    let far = plan.finish().dependents.pop().unwrap();
    assert!(far.needs_cleanup(&owner()));
    assert_eq!(far.desired.pointer("/metadata/ownerReferences"), None);
    assert_eq!(far.desired["metadata"]["labels"]["windlass.dev/owner"], "u1");
}
