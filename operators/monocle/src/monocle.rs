//! The Monocle resource and what should exist for one.
//!
//! Elasticsearch, then the API once that is ready, then the crawler once the API is. The order, what is watched,
//! applied, pruned and reported follow from [`plan`](Primary::plan); nothing else here talks to a cluster.

mod api_deployment;
mod api_service;
mod config;
mod crawler_deployment;
mod elastic_claim;
mod elastic_service;
mod elastic_stateful_set;
mod identities;
mod ingress;
mod pod;
mod rollout;
mod secret;
mod spec;
mod validity;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt as _;
use windlass::{Halt, Invalid, Kind, Plan, Primary, Status, World, content_hash};

pub use self::identities::Identities;
pub use self::spec::{
    Component, ElasticSpec, IngressSpec, Monocle, MonocleSpec, MonocleStatus, Reference, Retention,
};
pub(crate) use self::spec::{ELASTIC_IMAGE, MONOCLE_IMAGE};

/// Where people reach Monocle if the spec does not say.
const DEFAULT_PUBLIC_URL: &str = "http://localhost:8090";

impl Primary for Monocle {
    fn owns() -> Vec<Kind> {
        vec![
            Kind::of::<Secret>(),
            Kind::of::<ConfigMap>(),
            Kind::of::<Service>(),
            Kind::of::<StatefulSet>(),
            Kind::of::<Deployment>(),
            Kind::of::<Job>(),
            Kind::of::<Ingress>(),
        ]
    }

    fn adjusts() -> Vec<Kind> {
        vec![Kind::of::<PersistentVolumeClaim>()]
    }

    fn reads() -> Vec<Kind> {
        vec![Kind::of::<Pod>()]
    }

    fn defaults(&mut self) {
        // Not a default of the schema: that would be set even where the older name is used.
        if self.spec.monocle_public_url.is_none() {
            self.spec.public_url.get_or_insert_with(|| DEFAULT_PUBLIC_URL.into());
        }
    }

    fn warnings(&self) -> Vec<String> {
        let older = self.spec.monocle_public_url.iter();
        older.map(|_| "spec.monoclePublicURL: is the older name of spec.publicURL; use that".into()).collect()
    }

    fn validity(&self) -> Vec<Invalid> {
        validity::check(self)
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        // The user's own from the start, or made once and the user's from then on.
        if self.spec.secret_ref.is_none() {
            plan.add(secret::build(self, world)).once();
        }
        if self.spec.config_ref.is_none() {
            plan.add(config::build(self)).once();
        }

        let mut elastic = None;
        if self.spec.elastic.url.is_none() {
            plan.add(elastic_service::build(self));
            // A volume claim template cannot change: the set keeps the size it was made with, and its claim grows.
            let size = world.view(&self.child("elastic"), elastic_stateful_set::size_of)?;
            for claim in plan.add_each(elastic_claim::build(self, size.as_deref())) {
                claim.existing().ready();
            }
            elastic = Some(plan.add(elastic_stateful_set::build(self, size)).ready());
        }
        plan.add(api_service::build(self));
        plan.add_each(ingress::build(self));

        // Of the Secret only the values matter: a new one rolls out API and crawler, a new label does not.
        let values = |secret: &Secret| content_hash(&secret.data);
        let tokens = world.need_view(&self.secret_name(), values)?;
        let api = plan.add(api_deployment::build(self, &tokens)).after(&elastic).ready();
        plan.add(crawler_deployment::build(self, &tokens)).after(&api).ready();

        rollout::look(self, world, plan)?;
        let identities = identities::look(self, world)?;
        plan.keep_each(&identities.running_or_finished);
        plan.add_each(identities.to_run);
        if let Some(problem) = identities.problem {
            plan.fail(problem.reason, problem.message);
        }
        Ok(())
    }

    fn own_status(&self, world: &World, report: &Status, status: &mut MonocleStatus) -> Result<(), Halt> {
        status.url = Some(self.public_url().into());
        status.api = Some(report.line(&Kind::of::<Deployment>(), &self.child("api")));
        status.crawler = Some(report.line(&Kind::of::<Deployment>(), &self.child("crawler")));
        status.elastic = Some(match &self.spec.elastic.url {
            Some(_) => "External".into(),
            None => report.line(&Kind::of::<StatefulSet>(), &self.child("elastic")),
        });
        status.identities = identities::look(self, world)?.record;
        Ok(())
    }
}

impl Monocle {
    /// The name of a child.
    fn child(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.name_any())
    }

    fn secret_name(&self) -> String {
        self.spec.secret_ref.as_ref().map_or_else(|| self.child("api"), |theirs| theirs.name.clone())
    }

    fn config_name(&self) -> String {
        self.spec.config_ref.as_ref().map_or_else(|| self.child("api"), |theirs| theirs.name.clone())
    }

    fn public_url(&self) -> &str {
        // The default may have been written into the object before the older name was.
        let given = self.spec.public_url.as_deref().filter(|url| *url != DEFAULT_PUBLIC_URL);
        given.or(self.spec.monocle_public_url.as_deref()).unwrap_or(DEFAULT_PUBLIC_URL)
    }

    fn elastic_url(&self) -> String {
        self.spec.elastic.url.clone().unwrap_or_else(|| format!("http://{}:9200", self.child("elastic")))
    }
}

#[cfg(test)]
mod tests;
