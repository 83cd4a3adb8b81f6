//! What a request asks for, as its caller wrote it.

use http::Uri;
use http::request::Parts;

/// The target of a request. Inside of a nested router of axum the head has only what is left of the path, in which two routers look alike: there
/// the original is in the extensions.
pub(crate) fn uri(head: &Parts) -> &Uri {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(uri)) = head.extensions.get() {
        return uri;
    }
    &head.uri
}
