//! Namespaces and names of objects, as configurations write them.

use kube::Resource;

/// An object that lives in a namespace.
pub trait Named {
    /// Its namespace.
    fn space(&self) -> &str;
    /// Its name.
    fn title(&self) -> &str;
    /// `<namespace>/<name>`.
    fn path(&self) -> String {
        format!("{}/{}", self.space(), self.title())
    }
}

impl<K: Resource> Named for K {
    fn space(&self) -> &str {
        self.meta().namespace.as_deref().unwrap_or_default()
    }

    fn title(&self) -> &str {
        self.meta().name.as_deref().unwrap_or_default()
    }
}
