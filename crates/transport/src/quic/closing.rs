//! Conversion of noq's reasons of closed connections.

use std::time::Duration;

use noq_proto::{ConnectionError, TransportError};
use rustls::CertificateError;

use crate::endpoint::Closed;

/// Converts the reason of a closed connection; `idle` is the idle timeout.
pub(super) fn closed(reason: ConnectionError, idle: Duration) -> Closed {
    match reason {
        ConnectionError::ApplicationClosed(close) => Closed::ByPeer {
            code: u32::try_from(close.error_code.into_inner()).unwrap_or(u32::MAX),
            reason: String::from_utf8_lossy(&close.reason).into_owned(),
        },
        ConnectionError::TimedOut => Closed::Silence(idle),
        ConnectionError::LocallyClosed => Closed::Here,
        ConnectionError::TransportError(error) => Closed::Failed(failed(&error)),
        ConnectionError::ConnectionClosed(close) => {
            let reason = String::from_utf8_lossy(&close.reason);
            Closed::Failed(format!("the other side ended the connection ({}): {reason}", close.error_code))
        }
        ConnectionError::Reset => Closed::Failed(
            "the other side does not know this connection any more, perhaps as it was restarted; connect again"
                .to_owned(),
        ),
        ConnectionError::VersionMismatch => {
            Closed::Failed("the other side does not speak QUIC version 1; use another program there".to_owned())
        }
        ConnectionError::CidsExhausted => Closed::Failed(other_reason(&reason)),
    }
}

fn other_reason(reason: &ConnectionError) -> String {
    format!("QUIC ended the connection: {reason}")
}

/// Describes an error that this endpoint detected.
fn failed(error: &TransportError) -> String {
    let tls = error.crypto.as_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(certificate)) = tls else {
        return format!("the other side broke the protocol, or the network damaged it: {error}");
    };
    match certificate {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the server's certificate is for another name; ask for the name that is in it".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired; renew it there, or set this machine's clock".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet; set this machine's clock".to_owned()
        }
        // `BadSignature` occurs if an untrusted issuer uses the name of a trusted root.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "nobody whom this machine trusts has signed the server's certificate; trust its root".to_owned()
        }
        other => format!("the server's certificate is not accepted: {other}"),
    }
}
