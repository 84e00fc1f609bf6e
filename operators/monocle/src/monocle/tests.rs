use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use kube::CustomResourceExt as _;
use serde_json::json;
use windlass::test::{Cluster, Planned};
use windlass::{MANAGED_BY, State};

use super::*;

fn monocle(spec: serde_json::Value) -> Monocle {
    let tree = json!({
        "apiVersion": "monocle.monocle.change-metrics.io/v1alpha1", "kind": "Monocle",
        "metadata": {"name": "m", "namespace": "n", "uid": "u"}, "spec": spec,
    });
    serde_json::from_value(tree).unwrap()
}

fn secret(key: &str) -> Secret {
    serde_json::from_value(json!({
        "metadata": {"name": "m-api", "namespace": "n"}, "data": {"CRAWLERS_API_KEY": key},
    }))
    .unwrap()
}

fn config(text: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "metadata": {"name": "m-api", "namespace": "n"}, "data": {"config.yaml": text},
    }))
    .unwrap()
}

/// A cluster in which the first pass has been.
fn settled() -> Cluster {
    Cluster::new().with(&secret("YQ==")).with(&config("workspaces: []"))
}

fn identities(text: &str, run: i64) -> serde_json::Value {
    json!({"contentHash": content_hash(text), "run": run, "failed": false})
}

fn after(status: serde_json::Value) -> Monocle {
    let mut monocle = monocle(json!({}));
    monocle.status = Some(serde_json::from_value(json!({"identities": status})).unwrap());
    monocle
}

/// The Job that a plan asked for, once it was made and has come to an end, or not yet.
fn made(planned: &Planned, ended: Option<&str>) -> Job {
    let names = planned.names();
    let mut job =
        names.iter().find_map(|name| planned.object::<Job>(name.strip_prefix("Job ")?)).expect("a new job");
    job.labels_mut().insert(MANAGED_BY.into(), crate::OPERATOR.into());
    let conditions = ended.map(|type_| {
        vec![JobCondition { type_: type_.into(), status: "True".into(), ..JobCondition::default() }]
    });
    job.status = Some(JobStatus { conditions, ..JobStatus::default() });
    job
}

fn jobs(planned: &Planned) -> usize {
    planned.names().iter().filter(|name| name.starts_with("Job ")).count()
}

#[test]
fn the_first_plan_makes_what_needs_nothing_and_waits_for_the_secret() {
    let planned = Cluster::new().plan(&monocle(json!({})));
    assert_eq!(
        planned.names(),
        ["Secret m-api", "ConfigMap m-api", "Service m-elastic", "StatefulSet m-elastic", "Service m-api"]
    );
    assert_eq!(planned.halt().unwrap().to_string(), "Secret m-api is not there");
    let secret: Secret = planned.object("m-api").unwrap();
    let lengths: Vec<_> = secret.data.unwrap().into_iter().map(|(key, value)| (key, value.0.len())).collect();
    assert_eq!(lengths, [("CRAWLERS_API_KEY".to_owned(), 24), ("MONOCLE_JWK_GEN_KEY".to_owned(), 64)]);
}

#[test]
fn the_whole_plan() {
    let planned = settled().plan(&monocle(json!({"ingress": {"host": "m.example.org"}})));
    assert!(planned.halt().is_none());
    assert_eq!(
        planned.names()[4..],
        ["Service m-api", "Ingress m-api", "Deployment m-api", "Deployment m-crawler"]
    );
}

#[test]
fn only_the_values_of_the_secret_make_a_rollout() {
    let template = |cluster: &Cluster, name: &str| -> PodTemplateSpec {
        cluster.plan(&monocle(json!({}))).object::<Deployment>(name).unwrap().spec.unwrap().template
    };
    let mut labelled = secret("YQ==");
    labelled.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    labelled.metadata.resource_version = Some("99".into());
    for name in ["m-api", "m-crawler"] {
        let before = template(&settled(), name);
        assert_eq!(before, template(&settled().with(&labelled), name));
        assert_ne!(before, template(&settled().with(&secret("Yg==")), name));
        assert_eq!(before, template(&settled().with(&config("workspaces: [{}]")), name));
    }
}

#[test]
fn the_first_config_needs_no_job_and_each_later_one_gets_one() {
    let first = settled();
    assert_eq!(jobs(&first.plan(&monocle(json!({})))), 0);
    let status = first.status(&monocle(json!({})), &Status::default());
    assert_eq!(status["identities"], identities("workspaces: []", 0));

    let edited = settled().with(&config("workspaces: [{}]"));
    let planned = edited.plan(&after(identities("workspaces: []", 0)));
    assert_eq!(jobs(&planned), 1);

    // It runs: kept, and not asked for again.
    let running = edited.clone().with(&made(&planned, None));
    let again = running.plan(&after(identities("workspaces: []", 0)));
    assert_eq!(again.names().last(), planned.names().last());
    assert_eq!(again.objects().len() + 1, again.names().len(), "kept as it is");

    // It has ended: recorded, kept until its TTL, and not run again after that.
    let ended = edited.clone().with(&made(&planned, Some("Complete")));
    let status = ended.status(&after(identities("workspaces: []", 0)), &Status::default());
    assert_eq!(status["identities"], identities("workspaces: [{}]", 1));
    assert_eq!(jobs(&ended.plan(&after(identities("workspaces: [{}]", 1)))), 1);
    assert_eq!(jobs(&edited.plan(&after(identities("workspaces: [{}]", 1)))), 0);
}

#[test]
fn a_config_that_comes_while_a_job_runs_waits_for_it() {
    let (a, b, c) = ("workspaces: []", "workspaces: [{}]", "workspaces: [{}, {}]");
    let first = settled().with(&config(b)).plan(&after(identities(a, 0)));
    let running = settled().with(&config(c)).with(&made(&first, None));
    assert_eq!(running.plan(&after(identities(a, 0))).names().last(), first.names().last());

    let ended = settled().with(&config(c)).with(&made(&first, Some("Complete")));
    let planned = ended.plan(&after(identities(a, 0)));
    assert_eq!(jobs(&planned), 2, "the ended one is kept, the next one is new");
}

#[test]
fn going_back_to_an_earlier_config_runs_its_job_anew() {
    let (a, b) = ("workspaces: []", "workspaces: [{}]");
    let job_b = made(&settled().with(&config(b)).plan(&after(identities(a, 0))), Some("Complete"));
    let with_b = settled().with(&job_b);
    let job_a = made(&with_b.plan(&after(identities(b, 1))), Some("Complete"));
    // Both have run, and the config is the first one's again: its old Job is left out, to be pruned, …
    let cluster = settled().with(&config(b)).with(&job_b).with(&job_a);
    let planned = cluster.plan(&after(identities(a, 2)));
    assert_eq!(jobs(&planned), 1);
    assert!(planned.names().contains(&format!("Job {}", job_a.name_any())));
    // … and then it runs.
    let cluster = settled().with(&config(b)).with(&job_a);
    let planned = cluster.plan(&after(identities(a, 2)));
    assert_eq!(
        planned.object::<Job>(&job_b.name_any()).unwrap().annotations()["monocle.change-metrics.io/run"],
        "3"
    );
}

#[test]
fn a_failed_job_is_reported_and_not_repeated() {
    let (a, b) = ("workspaces: []", "workspaces: [{}]");
    let job = made(&settled().with(&config(b)).plan(&after(identities(a, 0))), Some("Failed"));
    let cluster = settled().with(&config(b));
    let planned = cluster.clone().with(&job).plan(&after(identities(a, 0)));
    assert_eq!(planned.problems()[0].reason, "IdentitiesFailed");
    let status = cluster.clone().with(&job).status(&after(identities(a, 0)), &Status::default());
    let planned = cluster.plan(&after(status["identities"].clone()));
    assert_eq!((jobs(&planned), planned.problems().len()), (0, 1));
}

#[test]
fn a_config_that_does_not_parse_is_reported_with_its_line_and_runs_nothing() {
    let cluster = settled().with(&config("workspaces:\n  - name: [demo\n    crawlers: []\n"));
    let planned = cluster.plan(&after(identities("workspaces: []", 0)));
    assert_eq!(jobs(&planned), 0);
    let [problem] = planned.problems() else { panic!("{:?}", planned.problems()) };
    assert_eq!((problem.state, problem.reason.as_str()), (State::Failed, "InvalidConfig"));
    assert!(problem.message.starts_with("ConfigMap m-api: config.yaml: line 3"), "{}", problem.message);
    assert!(!problem.message.contains('\n'));
    assert!(planned.object::<Deployment>("m-crawler").is_some(), "the rest goes on");
}

#[test]
fn a_missing_config_of_the_users_holds_back_only_the_job() {
    let planned = Cluster::new().with(&secret("YQ==")).plan(&monocle(json!({"configRef": {"name": "mine"}})));
    assert_eq!(planned.halt().unwrap().to_string(), "ConfigMap mine is not there");
    assert!(planned.object::<Deployment>("m-crawler").is_some());
    assert!(planned.object::<ConfigMap>("m-api").is_none());
}

#[test]
fn an_external_elastic_means_none_of_its_own() {
    let planned = settled().plan(&monocle(json!({"elastic": {"url": "http://es:9200"}})));
    assert!(!planned.names().iter().any(|name| name.contains("elastic")));
    let api: Deployment = planned.object("m-api").unwrap();
    let env = api.spec.unwrap().template.spec.unwrap().containers[0].env.clone().unwrap();
    assert!(env.iter().any(|var| var.value.as_deref() == Some("http://es:9200")));
}

#[test]
fn a_set_keeps_the_size_it_was_made_with_and_its_claim_grows() {
    let size =
        |planned: &Planned| elastic_stateful_set::size_of(planned.object("m-elastic").as_ref()).unwrap();
    let mut made: StatefulSet = settled().plan(&monocle(json!({}))).object("m-elastic").unwrap();
    made.metadata.namespace = Some("n".into());
    let planned = settled().with(&made).plan(&monocle(json!({"elastic": {"storageSize": "2Gi"}})));
    assert_eq!(size(&planned), "1Gi");
    let claim: PersistentVolumeClaim = planned.object("data-m-elastic-0").unwrap();
    assert_eq!(claim.metadata.owner_references, None);
    let requests = claim.spec.unwrap().resources.unwrap().requests.unwrap();
    assert_eq!(requests["storage"].0, "2Gi");
    let planned = settled().with(&made).plan(&monocle(json!({"elastic": {"storageSize": "1024Mi"}})));
    assert!(planned.object::<PersistentVolumeClaim>("data-m-elastic-0").is_none());
}

#[test]
fn the_older_name_of_the_public_url_still_works() {
    let url = |spec| {
        let mut monocle = monocle(spec);
        monocle.defaults();
        monocle.public_url().to_owned()
    };
    assert_eq!(url(json!({})), "http://localhost:8090");
    assert_eq!(url(json!({"monoclePublicURL": "https://old"})), "https://old");
    let after_the_default = json!({"monoclePublicURL": "https://old", "publicURL": "http://localhost:8090"});
    assert_eq!(url(after_the_default), "https://old", "what a webhook filled in was not chosen");
    assert_eq!(url(json!({"monoclePublicURL": "https://old", "publicURL": "https://new"})), "https://new");
}

#[test]
fn what_is_wrong_names_its_field() {
    let mut monocle = monocle(json!({"publicURL": "ftp://x"}));
    monocle.metadata.name = Some("m".repeat(validity::LONGEST_NAME + 1));
    let fields: Vec<_> = monocle.validity().into_iter().map(|invalid| invalid.field).collect();
    assert_eq!(fields, ["metadata.name", "spec.publicURL"]);
}

#[test]
fn pods_are_fit_for_a_restricted_namespace_and_selected_by_instance() {
    let planned = settled().with(&config("a: b")).plan(&after(identities("workspaces: []", 0)));
    let mut pods = 0;
    for object in planned.objects() {
        let Some(template) = object.pointer("/spec/template") else {
            continue;
        };
        pods += 1;
        let pod: PodSpec = serde_json::from_value(template["spec"].clone()).unwrap();
        let security = pod.security_context.unwrap();
        assert_eq!(security.run_as_non_root, Some(true));
        assert_eq!(security.seccomp_profile.unwrap().type_, "RuntimeDefault");
        let container = pod.containers[0].security_context.clone().unwrap();
        assert_eq!(container.allow_privilege_escalation, Some(false));
        assert_eq!(container.capabilities.unwrap().drop.unwrap(), ["ALL"]);
        if let Some(selector) = object.pointer("/spec/selector/matchLabels") {
            assert_eq!(selector["app.kubernetes.io/instance"], "m");
        }
        for label in ["name", "instance", "component", "part-of"] {
            assert!(object["metadata"]["labels"].get(format!("app.kubernetes.io/{label}")).is_some());
        }
    }
    assert_eq!(pods, 4);
}

#[test]
fn the_definition_has_defaults_columns_and_the_sample_fits_it() {
    let crd = serde_json::to_value(Monocle::crd()).unwrap();
    let version = &crd["spec"]["versions"][0];
    let columns: Vec<_> = version["additionalPrinterColumns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| &column["name"])
        .collect();
    assert_eq!(columns, ["Ready", "API", "Crawler", "Elastic", "URL", "Age"]);
    let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    assert_eq!(spec["image"]["default"], "quay.io/change-metrics/monocle:1.9.0");
    assert_eq!(
        spec["elastic"]["default"],
        json!({"image": "elasticsearch:7.17.5", "storageSize": "1Gi", "retention": "Retain"})
    );
    let sample: Monocle = serde_saphyr::from_str(crate::SAMPLE).unwrap();
    assert_eq!(sample.name_any(), "monocle-sample");
}

#[test]
fn quantities_that_are_none_are_named_by_their_field() {
    let monocle = monocle(json!({
        "api": {"resources": {"requests": {"cpu": "x", "memory": "1Gi"}}},
        "elastic": {"storageSize": "0Gi", "resources": {"limits": {"memory": "1 Gi"}}},
    }));
    let fields: Vec<_> = monocle.validity().into_iter().map(|invalid| invalid.field).collect();
    let expected = [
        "spec.elastic.storageSize",
        "spec.api.resources.requests.cpu",
        "spec.elastic.resources.limits.memory",
    ];
    assert_eq!(fields, expected);
}
