//! What a pod takes altogether of each resource, from what its containers say.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_machinery::quantity::Quantity;

/// Amounts by the name of the resource.
pub(in super::super) type Amounts = BTreeMap<String, Quantity>;

/// The requests or limits (`list`) of a pod without its overhead. What the pod says of itself comes before what its
/// containers add up to.
pub(super) fn of_pod(pod: &Value, list: &str) -> Amounts {
    let spec = &pod["spec"];
    let mut total = of_containers(spec, list);
    total.extend(listed(&spec["resources"][list]).into_iter().filter(|(name, _)| is_of_pods(name)));
    total
}

/// Whether a pod can ask for a resource as a whole.
pub(in super::super) fn is_of_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// What the containers of a pod need together.
///
/// Init containers run one after the other, so the largest counts; those that keep running count as containers from
/// their turn on.
pub(in super::super) fn of_containers(spec: &Value, list: &str) -> Amounts {
    let mut total = Amounts::new();
    for container in containers(spec, "containers") {
        add(&mut total, &listed(&container["resources"][list]));
    }
    let (mut lasting, mut peak) = (Amounts::new(), Amounts::new());
    for container in containers(spec, "initContainers") {
        let mut own = listed(&container["resources"][list]);
        if container["restartPolicy"] == "Always" {
            add(&mut total, &own);
            add(&mut lasting, &own);
            own = lasting.clone();
        } else {
            add(&mut own, &lasting);
        }
        most(&mut peak, own);
    }
    most(&mut total, peak);
    total
}

/// The amounts of a list of resources.
pub(super) fn listed(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    entries.filter_map(|(name, amount)| Some((name.clone(), parsed(amount)?))).collect()
}

/// Adds amounts to others.
pub(super) fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = total.get(name).map_or_else(|| amount.clone(), |known| known.add(amount));
        total.insert(name.clone(), sum);
    }
}

/// A quantity, if it is one.
pub(super) fn parsed(amount: &Value) -> Option<Quantity> {
    Quantity::parse(amount.as_str()?).ok()
}

/// The containers of one of a pod's lists.
pub(super) fn containers<'p>(spec: &'p Value, list: &str) -> impl Iterator<Item = &'p Value> {
    spec[list].as_array().into_iter().flatten()
}

fn most(total: &mut Amounts, other: Amounts) {
    for (name, amount) in other {
        if total.get(&name).is_none_or(|known| amount > *known) {
            total.insert(name, amount);
        }
    }
}
