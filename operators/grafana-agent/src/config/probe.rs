//! Probes: one scrape configuration each, of the prober.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::access::Access;
use super::relabel::{self, Rule};
use super::{Scene, scrape, timing};
use crate::document::{Document, Fields};
use crate::fault::Fault;
use crate::kinds::{Named as _, Probe, ProbeIngress, ProbeStatic, Tls};

pub(super) fn render(scene: &Scene<'_>, probe: &Probe) -> Result<Document, Fault> {
    let (spec, namespace) = (&probe.spec, probe.space());
    timing::check(&spec.interval, &spec.scrape_timeout, &scene.agent.spec.metrics.scrape_interval)?;
    let prober = spec.prober.clone().unwrap_or_default();
    let access = Access::strict(scene.assets, namespace);
    let token = access.value(&spec.bearer_token_secret)?;
    let basic_auth = access.basic_auth(&spec.basic_auth)?;
    let authorization = access.authorization(&spec.authorization)?;
    let oauth2 = access.oauth2(&spec.oauth2)?;
    scrape::one_of(&[
        ("basicAuth", basic_auth.is_some()),
        ("oauth2", oauth2.is_some()),
        ("authorization", authorization.is_some()),
        ("bearerTokenSecret", token.is_some()),
    ])?;
    // Given and empty, it is the prober's default.
    let module = spec.module.as_deref().unwrap_or_default();
    let path = prober.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/probe");

    let fields = Fields::new()
        .with("job_name", format!("probe/{}", probe.path()))
        .maybe("honor_timestamps", scrape::honor_timestamps(scene, Some(true)))
        .with("metrics_path", path)
        .text("scrape_interval", &spec.interval)
        .text("scrape_timeout", &spec.scrape_timeout)
        .text("scheme", &prober.scheme)
        .text("proxy_url", &prober.proxy_url)
        .with("params", Fields::new().with("module", vec![module]))
        .maybe("tls_config", access.tls(&spec.tls_config.clone().map(Tls::from))?)
        .maybe("bearer_token", token)
        .maybe("basic_auth", basic_auth)
        .maybe("authorization", authorization)
        .maybe("oauth2", oauth2);
    let targets = spec.targets.clone().unwrap_or_default();
    let (fields, rules) = match (&targets.static_config, &targets.ingress) {
        (Some(hosts), _) => from_hosts(probe, hosts, &prober.url, fields)?,
        (None, Some(ingress)) => from_ingresses(scene, probe, ingress, &prober.url, fields)?,
        (None, None) => return Err(no_targets("targets: neither staticConfig nor ingress is given")),
    };

    let mut all = vec![relabel::job_name().into()];
    if let Some(name) = spec.job_name.as_deref().filter(|name| !name.is_empty()) {
        all.push(Rule::constant("job", name).into());
    }
    all.extend(rules);
    scrape::enforce(scene, namespace, &mut all);
    // By now every address is the prober's: the target tells them apart.
    if scrape::shards(scene) > 1 {
        all.extend(scrape::shard(scene, "__param_target"));
    }
    let metric_rules = scrape::metric_rules(scene, namespace, false, &spec.metric_relabelings)?;
    let fields = fields.with("relabel_configs", all).filled("metric_relabel_configs", metric_rules);
    Ok(scrape::limit(scene, &spec.limits, fields).into())
}

type Parts = (Fields, Vec<Document>);

fn from_hosts(probe: &Probe, hosts: &ProbeStatic, prober: &str, fields: Fields) -> Result<Parts, Fault> {
    if hosts.targets.is_empty() {
        return Err(no_targets("targets.staticConfig.static: names no host"));
    }
    let mut labels = hosts.labels.clone();
    labels.insert("namespace".into(), probe.space().into());
    let config = Fields::new().with("targets", hosts.targets.clone()).with("labels", &labels);
    let mut rules: Vec<Document> = vec![Rule::of(&["__address__"]).target("__param_target").into()];
    rules.extend(to_prober(prober));
    rules.extend(relabel::rules("targets.staticConfig.relabelingConfigs", &hosts.relabeling_configs)?);
    Ok((fields.with("static_configs", vec![config]), rules))
}

fn from_ingresses(
    scene: &Scene<'_>,
    probe: &Probe,
    ingress: &ProbeIngress,
    prober: &str,
    fields: Fields,
) -> Result<Parts, Fault> {
    let ignore = scene.agent.spec.metrics.ignore_namespace_selectors;
    let namespaces = scrape::namespaces(&ingress.namespace_selector, probe.space(), ignore);
    let discovery = scrape::discovery(scene, "ingress", namespaces, false);
    let everything = LabelSelector::default();
    let mut rules = relabel::selector("ingress", ingress.selector.as_ref().unwrap_or(&everything))?;
    let source = ["__meta_kubernetes_ingress_scheme", "__address__", "__meta_kubernetes_ingress_path"];
    let target = Rule::of(&source).separator(";").regex("(.+);(.+);(.+)").target("__param_target");
    rules.push(target.replacement("$1://$2$3").action("replace").into());
    rules.push(Rule::of(&["__meta_kubernetes_namespace"]).target("namespace").into());
    rules.push(Rule::of(&["__meta_kubernetes_ingress_name"]).target("ingress").into());
    rules.extend(to_prober(prober));
    rules.extend(relabel::rules("targets.ingress.relabelingConfigs", &ingress.relabeling_configs)?);
    Ok((fields.with("kubernetes_sd_configs", vec![discovery]), rules))
}

/// The target becomes the instance, the prober the address.
fn to_prober(prober: &str) -> [Document; 2] {
    let instance = Rule::of(&["__param_target"]).target("instance");
    [instance.into(), Rule::constant("__address__", prober).into()]
}

fn no_targets(message: &str) -> Fault {
    Fault::new("NoTargets", message)
}
