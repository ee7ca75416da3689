//! Verification of server certificates.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;

use super::*;

/// Returns roots, and an identity for `name` that chains to them.
fn signed(name: &str, is_expired: bool) -> (Arc<RootCertStore>, Identity) {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let root = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    if is_expired {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    }
    let key = KeyPair::generate().unwrap();
    let leaf = params.signed_by(&key, &issuer).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(root.der().clone()).unwrap();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    (Arc::new(roots), Identity { chain: vec![leaf.der().clone()], key: key.into() })
}

/// Returns how a connection to a server with this certificate ends, at client and server.
fn refusal(roots: Arc<RootCertStore>, identity: Identity, server_name: &str) -> [Option<Closed>; 2] {
    let client =
        Config { trust: Trust::Roots(roots), server_name: server_name.to_owned(), ..Config::default() };
    let server = Config { identity: Some(identity), ..Config::default() };
    let mut pair = Pair::with(Path::clean(5), client, server);
    pair.run_for(Duration::from_secs(3));
    assert!(pair.sent.len() < 30, "{} datagrams to say no", pair.sent.len());
    [false, true].map(|side| pair.closed(side).cloned())
}

fn assert_refused(seen: [Option<Closed>; 2], sentence: &str) {
    let [Some(Closed::Failed(client)), server] = seen else { panic!("{seen:?}") };
    assert_eq!(client, sentence);
    let Some(Closed::Failed(server)) = server else { panic!("{server:?}") };
    assert!(server.starts_with("the other side ended the connection"), "{server}");
}

#[test]
fn a_certificate_that_leads_to_a_root_is_accepted() {
    let (roots, identity) = signed("files.example", false);
    assert_eq!(refusal(roots, identity, "files.example"), [None, None]);
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let (roots, identity) = signed("files.example", false);
    let sentence = "the server's certificate is for another name; ask for the name that is in it";
    assert_refused(refusal(roots, identity, "other.example"), sentence);
}

#[test]
fn an_expired_certificate_is_refused() {
    let (roots, identity) = signed("files.example", true);
    let sentence = "the server's certificate has expired; renew it there, or set this machine's clock";
    assert_refused(refusal(roots, identity, "files.example"), sentence);
}

#[test]
fn a_certificate_of_a_stranger_is_refused() {
    let (_, identity) = signed("files.example", false);
    let (others, _) = signed("files.example", false);
    let sentence = "nobody whom this machine trusts has signed the server's certificate; trust its root";
    assert_refused(refusal(others.clone(), identity, "files.example"), sentence);
    let alone = Identity::self_signed(&["files.example"]).unwrap();
    assert_refused(refusal(others, alone, "files.example"), sentence);
}
