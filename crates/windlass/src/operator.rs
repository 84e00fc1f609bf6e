//! An operator: a name and its primaries.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::admission::Conversion;
use crate::controller::{Controller, ControllerOf};
use crate::external::AnyExternal;
use crate::{External, Kind, Object, Primary};

/// An operator, to be given to a [`Runtime`](crate::Runtime).
pub struct Operator {
    name: String,
    controllers: Vec<Arc<dyn Controller>>,
    crds: Vec<CustomResourceDefinition>,
    externals: Vec<Arc<dyn AnyExternal>>,
    conversions: Vec<Conversion>,
}

impl Operator {
    /// An operator of this name, which is its field manager, its label on what it makes, and its name in Events.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            controllers: Vec::new(),
            crds: Vec::new(),
            externals: Vec::new(),
            conversions: Vec::new(),
        }
    }

    /// Has it manage a kind.
    #[must_use]
    pub fn manages<P: Primary + CustomResourceExt>(mut self) -> Self {
        self.controllers.push(Arc::new(ControllerOf::<P>::new(&self.name)));
        self.crds.push(P::crd());
        self
    }

    /// Gives it the code that sees to one type of external things.
    #[must_use]
    pub fn external(mut self, external: impl External) -> Self {
        self.externals.push(Arc::new(external));
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

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The definitions of the kinds that it manages.
    #[must_use]
    pub fn crds(&self) -> &[CustomResourceDefinition] {
        &self.crds
    }

    /// The kinds that it makes.
    #[must_use]
    pub fn owns(&self) -> Vec<Kind> {
        let mut kinds: Vec<_> = self.controllers.iter().flat_map(|c| c.owns().iter().cloned()).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    pub(crate) fn conversions(&self) -> &[Conversion] {
        &self.conversions
    }

    pub(crate) fn externals(&self) -> &[Arc<dyn AnyExternal>] {
        &self.externals
    }

    pub(crate) fn controllers(&self) -> &[Arc<dyn Controller>] {
        &self.controllers
    }
}
