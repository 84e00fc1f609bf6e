//! Sets of completion indexes, as an indexed job's status and its success policy write them: `0,2-4,7`.

use std::fmt;

use k8s_openapi::api::batch::v1::{Job, JobSpec, SuccessPolicy};
use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, Pod};

/// The annotation, and label, that says which index a pod is for.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// The longest prefix of a generated name.
const LONGEST_PREFIX: usize = 58;

/// Indexes as ranges, in order, none touching the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<(i32, i32)>);

impl Indexes {
    /// Reads what a status or a rule holds. What is beyond the last index does not count, what cannot be read neither.
    pub(super) fn parse(text: &str, completions: i32) -> Self {
        let mut indexes = Self::default();
        for range in text.split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>())
                && first < completions
            {
                indexes.add(first, last.min(completions - 1));
            }
        }
        indexes
    }

    /// Adds a range.
    pub(super) fn add(&mut self, first: i32, last: i32) {
        let from = self.0.partition_point(|range| range.1 < first.saturating_sub(1));
        let to = self.0.partition_point(|range| range.0 <= last.saturating_add(1));
        let (mut first, mut last) = (first, last);
        if from < to {
            first = first.min(self.0[from].0);
            last = last.max(self.0[to - 1].1);
        }
        self.0.splice(from..to, [(first, last)]);
    }

    /// These and those.
    pub(super) fn with(&self, others: &Self) -> Self {
        let mut all = self.clone();
        for (first, last) in &others.0 {
            all.add(*first, *last);
        }
        all
    }

    pub(super) fn has(&self, index: i32) -> bool {
        let at = self.0.partition_point(|range| range.1 < index);
        self.0.get(at).is_some_and(|range| range.0 <= index)
    }

    pub(super) fn len(&self) -> i32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// The first indexes that are not among these.
    pub(super) fn missing(&self, completions: i32, count: usize) -> Vec<i32> {
        (0..completions).filter(|index| !self.has(*index)).take(count).collect()
    }

    fn shared_with(&self, others: &Self) -> i32 {
        let overlap = |a: &(i32, i32), b: &(i32, i32)| (a.1.min(b.1) - a.0.max(b.0) + 1).max(0);
        self.0.iter().map(|a| others.0.iter().map(|b| overlap(a, b)).sum::<i32>()).sum()
    }
}

impl FromIterator<i32> for Indexes {
    fn from_iter<I: IntoIterator<Item = i32>>(indexes: I) -> Self {
        let mut all = Self::default();
        for index in indexes {
            all.add(index, index);
        }
        all
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match last - first {
                0 => write!(formatter, "{comma}{first}")?,
                1 => write!(formatter, "{comma}{first},{last}")?,
                _ => write!(formatter, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

pub(super) fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}

/// The index a pod is for, where it says one.
pub(super) fn index_of(pod: &Pod) -> Option<i32> {
    let text = pod.metadata.annotations.as_ref()?.get(INDEX)?;
    text.parse().ok().filter(|index| *index >= 0)
}

/// Whether a pod counts: in an indexed job it needs an index that is there.
pub(super) fn is_valid(spec: &JobSpec, pod: &Pod) -> bool {
    !is_indexed(spec) || index_of(pod).is_some_and(|index| index < spec.completions.unwrap_or_default())
}

/// Makes a pod the one for an index.
pub(super) fn mark(pod: &mut Pod, job: &Job, index: i32) {
    let name = job.metadata.name.as_deref().unwrap_or_default();
    let metadata = &mut pod.metadata;
    metadata.annotations.get_or_insert_default().insert(INDEX.to_owned(), index.to_string());
    metadata.labels.get_or_insert_default().insert(INDEX.to_owned(), index.to_string());
    let suffix = format!("-{index}-");
    let kept = name.len().min(LONGEST_PREFIX - suffix.len());
    metadata.generate_name = Some(format!("{}{suffix}", &name[..kept]));
    let Some(spec) = pod.spec.as_mut() else {
        return;
    };
    spec.hostname = Some(format!("{name}-{index}"));
    for container in spec.init_containers.iter_mut().flatten().chain(&mut spec.containers) {
        let variables = container.env.get_or_insert_default();
        if variables.iter().any(|variable| variable.name == VARIABLE) {
            continue;
        }
        let field = ObjectFieldSelector {
            field_path: format!("metadata.labels['{INDEX}']"),
            ..ObjectFieldSelector::default()
        };
        variables.push(EnvVar {
            name: VARIABLE.to_owned(),
            value: None,
            value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
        });
    }
}

/// The first rule of a success policy that holds.
pub(super) fn fulfilled(policy: &SuccessPolicy, completions: i32, succeeded: &Indexes) -> Option<usize> {
    policy
        .rules
        .iter()
        .position(|rule| {
            let Some(wanted) = &rule.succeeded_indexes else {
                return rule.succeeded_count.is_some_and(|count| succeeded.len() >= count);
            };
            let wanted = Indexes::parse(wanted, completions);
            let done = wanted.shared_with(succeeded);
            wanted.len() > 0
                && (done == wanted.len() || rule.succeeded_count.is_some_and(|count| done >= count))
        })
        .filter(|_| succeeded.len() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_as_ranges() {
        let written = |indexes: &[i32]| indexes.iter().copied().collect::<Indexes>().to_string();
        assert_eq!(written(&[]), "");
        assert_eq!(written(&[3, 1, 2]), "1-3");
        assert_eq!(written(&[0, 1, 5, 7, 8, 9]), "0,1,5,7-9");
        let read = Indexes::parse("0,2-4,6,99", 7);
        assert_eq!((read.to_string().as_str(), read.len()), ("0,2-4,6", 5));
        assert_eq!(Indexes::parse("1-9", 4).to_string(), "1-3");
        assert_eq!(Indexes::parse("x,1", 4).to_string(), "1");
        assert!(read.has(3) && !read.has(1) && !read.has(5));
        assert_eq!(read.missing(7, 5), [1, 5]);
        assert_eq!(read.with(&Indexes::parse("1,5", 7)).to_string(), "0-6");
    }

    #[test]
    fn a_success_policy_wants_indexes_or_a_number_of_them() {
        let policy =
            |rules: serde_json::Value| serde_json::from_value(serde_json::json!({"rules": rules})).unwrap();
        let done = Indexes::parse("0,3-4", 6);
        let first = |rules| fulfilled(&policy(rules), 6, &done);
        assert_eq!(
            first(serde_json::json!([{"succeededIndexes": "1,2"}, {"succeededIndexes": "3,4"}])),
            Some(1)
        );
        assert_eq!(first(serde_json::json!([{"succeededIndexes": "1-4", "succeededCount": 2}])), Some(0));
        assert_eq!(first(serde_json::json!([{"succeededIndexes": "1-4", "succeededCount": 3}])), None);
        assert_eq!(first(serde_json::json!([{"succeededCount": 3}])), Some(0));
        assert_eq!(
            fulfilled(&policy(serde_json::json!([{"succeededCount": 0}])), 6, &Indexes::default()),
            None
        );
    }
}
