//! How a connection is protected on its way.
//!
//! - To this machine (loopback, or a socket in the file system) with no `sslmode`: plain.
//! - `sslmode=prefer`, the default elsewhere: encrypted if the server can. Nothing is verified, since whoever sits in between
//!   could as well claim that the server cannot.
//! - `sslmode=require`: encrypted and verified, against the given root certificates or else those of the machine.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{self, CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{StoreError, StoreErrorKind};

/// What PostgreSQL calls itself in the handshake; asked for by servers that start with TLS at once.
const PROTOCOL_NAME: &[u8] = b"postgresql";

/// Settles the mode in `config` and makes what performs the handshakes.
pub(super) fn connector(
    config: &mut Config,
    root_pem: Option<&[u8]>,
) -> Result<MakeRustlsConnect, StoreError> {
    let bad = |what: &str, error: String| {
        StoreError::new(StoreErrorKind::Incompatible, what).caused_by(error)
    };
    if config.get_ssl_mode() == SslMode::Prefer && config.get_hosts().iter().all(is_this_machine) {
        config.ssl_mode(SslMode::Disable);
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match config.get_ssl_mode() {
        SslMode::Require => {
            let roots = Arc::new(roots(root_pem)?);
            WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
                .build()
                .map_err(|error| {
                    bad(
                        "no usable root certificates for the database",
                        error.to_string(),
                    )
                })?
        }
        _ => Arc::new(Unverified(provider.clone())),
    };
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad("no usable TLS version", error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    tls.alpn_protocols = vec![PROTOCOL_NAME.to_vec()];
    Ok(MakeRustlsConnect::new(tls))
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            let literal = name.parse::<std::net::IpAddr>();
            name == "localhost" || literal.is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn roots(pem: Option<&[u8]>) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    let Some(pem) = pem else {
        let (_, unusable) =
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        tracing::debug!(
            usable = roots.len(),
            unusable,
            "root certificates of this machine"
        );
        return Ok(roots);
    };
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let added = certificate
            .map_err(|error| error.to_string())
            .and_then(|certificate| roots.add(certificate).map_err(|error| error.to_string()));
        added.map_err(|error| {
            StoreError::new(
                StoreErrorKind::Incompatible,
                "a root certificate for the database cannot be read",
            )
            .caused_by(error)
        })?;
    }
    Ok(roots)
}

/// Takes any certificate, but only from who holds its key.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_is_only_the_default_to_this_machine() {
        let table = [
            ("postgres://hapax@127.0.0.1/hapax", SslMode::Disable),
            ("postgres://hapax@localhost/hapax", SslMode::Disable),
            ("postgres://hapax@db.internal/hapax", SslMode::Prefer),
            (
                "postgres://hapax@127.0.0.1,db.internal/hapax",
                SslMode::Prefer,
            ),
            (
                "postgres://hapax@127.0.0.1/hapax?sslmode=require",
                SslMode::Require,
            ),
        ];
        for (url, expected) in table {
            let mut config: Config = url.parse().expect("a valid URL");
            // Verified mode needs roots; a machine without any is refused, and the mode is settled all the same.
            let _ = connector(&mut config, None);
            assert_eq!(config.get_ssl_mode(), expected, "{url}");
        }
    }

    #[test]
    fn root_certificates_that_cannot_be_read_are_refused() {
        let mut config: Config = "postgres://h@db/h?sslmode=require"
            .parse()
            .expect("a valid URL");
        for pem in [
            "",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            let refused = connector(&mut config, Some(pem.as_bytes()))
                .err()
                .expect("refused");
            assert_eq!(refused.kind(), StoreErrorKind::Incompatible);
        }
    }
}
