//! An operator: a name and its primaries.

use std::sync::{Arc, OnceLock};

use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, CustomResourceExt};

use crate::admission::Conversion;
use crate::controller::{Controller, ControllerOf};
use crate::external::AnyExternal;
use crate::standing::Standing;
use crate::{External, Halt, Kind, Object, Plan, Primary, World};

/// Makes code that asks the cluster.
type Connector = Arc<dyn Fn(Client) -> Arc<dyn AnyExternal> + Send + Sync>;

/// An operator, to be given to a [`Runtime`](crate::Runtime).
#[derive(Clone)]
pub struct Operator {
    name: String,
    controllers: Vec<Arc<dyn Controller>>,
    /// What makes each definition, and whether it is of the version that is stored.
    definitions: Vec<(fn() -> CustomResourceDefinition, bool)>,
    /// Made when they are asked for: a schema takes milliseconds, and an operator that runs needs none.
    crds: OnceLock<Vec<CustomResourceDefinition>>,
    externals: Vec<Arc<dyn AnyExternal>>,
    connectors: Vec<Connector>,
    conversions: Vec<Conversion>,
    standing: Vec<Standing>,
    needs: Vec<PolicyRule>,
}

impl Operator {
    /// An operator of this name, which is its field manager, its label on what it makes, and its name in Events.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            controllers: Vec::new(),
            definitions: Vec::new(),
            crds: OnceLock::new(),
            externals: Vec::new(),
            connectors: Vec::new(),
            conversions: Vec::new(),
            standing: Vec::new(),
            needs: Vec::new(),
        }
    }

    /// Has it manage a kind.
    #[must_use]
    pub fn manages<P: Primary + CustomResourceExt>(mut self) -> Self {
        self.controllers.push(Arc::new(ControllerOf::<P>::new(&self.name)));
        self.define(P::crd, true);
        self
    }

    /// Has a kind that it manages served in this version too, which [`converts`](Self::converts) turns into the version
    /// that it manages and back. Objects are stored in the version that it manages.
    #[must_use]
    pub fn serves<V: Object + CustomResourceExt>(mut self) -> Self {
        self.define(V::crd, false);
        self
    }

    fn define(&mut self, definition: fn() -> CustomResourceDefinition, stored: bool) {
        self.definitions.push((definition, stored));
        self.crds = OnceLock::new();
    }

    /// Has it keep something that belongs to no custom resource, for as long as it runs: `plan` adds objects of the
    /// kinds `owns` and reads those, and `reads`. They name their namespaces, are owned by nobody, and stay when the
    /// operator goes. `name` is for people.
    #[must_use]
    pub fn keeps(
        mut self,
        name: &str,
        owns: Vec<Kind>,
        reads: Vec<Kind>,
        plan: impl Fn(&World, &mut Plan) -> Result<(), Halt> + Send + Sync + 'static,
    ) -> Self {
        self.standing.push(Standing::new(&self.name, name, owns, reads, plan));
        self
    }

    /// Gives it the code that sees to one type of external things.
    #[must_use]
    pub fn external(mut self, external: impl External) -> Self {
        self.externals.push(Arc::new(external));
        self
    }

    /// The same for code that asks the cluster itself, and gets the runtime's client for it. What it asks for,
    /// [`needs`](Self::needs) says.
    #[must_use]
    pub fn external_with<X: External>(mut self, make: impl Fn(Client) -> X + Send + Sync + 'static) -> Self {
        self.connectors.push(Arc::new(move |client| Arc::new(make(client))));
        self
    }

    /// Gives it the conversion from one version of a kind to another; each direction is one.
    #[must_use]
    pub fn converts<F: Object, T: Object>(
        mut self,
        convert: impl Fn(F) -> T + Send + Sync + 'static,
    ) -> Self {
        self.conversions.push(Conversion::new(convert));
        self
    }

    /// Says what it must be allowed besides what follows from its primaries: what [external](Self::external) code asks
    /// the cluster for, and what the roles that it makes allow, since nobody may give away what they do not have.
    #[must_use]
    pub fn needs(mut self, rules: impl IntoIterator<Item = PolicyRule>) -> Self {
        self.needs.extend(rules);
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The definitions of the kinds that it manages.
    #[must_use]
    pub fn crds(&self) -> &[CustomResourceDefinition] {
        self.crds.get_or_init(|| {
            let mut crds = Vec::new();
            self.definitions.iter().for_each(|(definition, stored)| define(&mut crds, definition(), *stored));
            crds
        })
    }

    /// The kinds that it makes.
    #[must_use]
    pub fn owns(&self) -> Vec<Kind> {
        let mut kinds: Vec<_> = self.controllers.iter().flat_map(|c| c.owns().iter().cloned()).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// The kinds that it manages and of which every object gets a status; those that are
    /// [quiet](crate::Primary::quiet) have one only while something is wrong.
    #[must_use]
    pub fn reports(&self) -> Vec<Kind> {
        let loud = self.controllers.iter().filter(|controller| !controller.quiet());
        loud.map(|controller| controller.kind().clone()).collect()
    }

    pub(crate) fn needed(&self) -> &[PolicyRule] {
        &self.needs
    }

    pub(crate) fn conversions(&self) -> &[Conversion] {
        &self.conversions
    }

    pub(crate) fn externals(&self) -> &[Arc<dyn AnyExternal>] {
        &self.externals
    }

    /// All code that sees to external things, with this client where it needs one.
    pub(crate) fn connected(&self, client: &Client) -> Vec<Arc<dyn AnyExternal>> {
        let made = self.connectors.iter().map(|make| make(client.clone()));
        self.externals.iter().cloned().chain(made).collect()
    }

    /// The plans that belong to no custom resource.
    pub(crate) fn standing(&self) -> &[Standing] {
        &self.standing
    }

    pub(crate) fn controllers(&self) -> &[Arc<dyn Controller>] {
        &self.controllers
    }
}

/// Adds a definition, or a version to one.
fn define(crds: &mut Vec<CustomResourceDefinition>, mut crd: CustomResourceDefinition, stored: bool) {
    let known = crds.iter_mut().find(|known| known.metadata.name == crd.metadata.name);
    let Some(known) = known else {
        crds.push(crd);
        return;
    };
    if stored {
        std::mem::swap(known, &mut crd);
    }
    crd.spec.versions.retain(|new| known.spec.versions.iter().all(|old| old.name != new.name));
    crd.spec.versions.iter_mut().for_each(|version| version.storage = false);
    known.spec.versions.append(&mut crd.spec.versions);
}
