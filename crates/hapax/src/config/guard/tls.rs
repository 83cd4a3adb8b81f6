//! `tls` of a guard: its own certificate, and whose certificates it asks callers for.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::raw::RawTls;
use crate::config::scan::{Scan, Text};

/// TLS as a server; nothing if there was an error, which is reported.
pub(super) fn server(scan: &Scan<'_>, raw: &RawTls) -> Option<Arc<ServerConfig>> {
    for field in ["cert", "key"] {
        if !raw.meant.contains(&field) {
            let wrong = format!("`tls` has no `{field}`");
            let remedy = "write tls = { cert = \"file:cert.pem\", key = \"file:key.pem\" }";
            scan.error("H0109", &raw.at, wrong, remedy);
        }
    }
    let chain = certificates(scan, "cert", raw.cert.as_ref()?);
    let key = private_key(scan, raw.key.as_ref()?);
    let roots = match &raw.client_ca {
        Some(text) => certificates(scan, "client_ca", text).map(|roots| Some((text, roots))),
        None => Some(None),
    };
    let (chain, key, roots) = (chain?, key?, roots?);
    let at = &raw.at;
    let unusable = |error: &dyn std::fmt::Display| {
        let wrong = format!("TLS cannot be set up: {error}");
        scan.error(
            "H0155",
            at,
            wrong,
            "use a certificate and the key that belongs to it",
        );
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))
        .ok()?;
    let builder = match roots {
        None => builder.with_no_client_auth(),
        Some((text, found)) => {
            let mut store = RootCertStore::empty();
            let (added, _) = store.add_parsable_certificates(found);
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider);
            match verifier.build() {
                Ok(verifier) if added > 0 => builder.with_client_cert_verifier(verifier),
                _ => {
                    no_certificate(scan, "client_ca", text);
                    return None;
                }
            }
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| unusable(&error))
        .ok()?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Some(Arc::new(config))
}

fn certificates(scan: &Scan<'_>, field: &str, text: &Text) -> Option<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.value.as_bytes()).collect();
    match found {
        Ok(found) if !found.is_empty() => Some(found),
        _ => {
            no_certificate(scan, field, text);
            None
        }
    }
}

fn no_certificate(scan: &Scan<'_>, field: &str, text: &Text) {
    let wrong = format!("`{field}` holds no certificate");
    scan.error(
        "H0155",
        &text.at,
        wrong,
        "write file:PATH of a file with PEM certificates",
    );
}

fn private_key(scan: &Scan<'_>, text: &Text) -> Option<PrivateKeyDer<'static>> {
    let key = PrivateKeyDer::from_pem_slice(text.value.as_bytes()).ok();
    if key.is_none() {
        let wrong = "`key` holds no private key";
        scan.error(
            "H0155",
            &text.at,
            wrong,
            "write file:PATH of a file with a PEM private key",
        );
    }
    key
}
