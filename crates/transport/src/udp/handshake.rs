//! The handshake of the UDP prototype: stateless cookies, proofs of the shared key, and the values both endpoints
//! derive from it.
//!
//! ```text
//!  client                                              server
//!    Hello { nonce, no cookie, proof }         ──▶       the proof is valid; no state is kept
//!    ◀──          Cookie { of address, window and nonce }
//!    Hello { nonce, cookie, proof }            ──▶       cookie and proof are valid; a connection is created
//!    ◀──          Accept { nonce, proof }
//!    sealed packets                            ◀─▶       the first authentic one proves that the client is alive
//! ```
//!
//! Chosen: PBE-CC's prototype does not encrypt and accepts any source address. A sender that follows reported
//! capacities must authenticate their source.
//!
//! Both endpoints hold a pre-shared key. Unlike TLS, the handshake exchanges no fresh secrets and has no forward
//! secrecy: an attacker who obtains the key later can decrypt recorded packets. QUIC offers forward secrecy.

use std::net::{IpAddr, SocketAddr};

use airpace_core::Time;
use ring::hmac;

use super::packet::{Accept, COOKIE, Cookie, Gone, Hello, NONCE, PROOF, SHORT_PROOF, VERSION};
use super::seal::Secret;
use crate::key::{Key, is_equal, is_tag, tag};

/// Interval at which the window of cookies changes (ns). A cookie is valid until the end of the next window.
///
/// Chosen: several round trips of a congested path, and too short for an attacker to collect cookies.
const COOKIE_WINDOW_NS: u64 = 10_000_000_000;

/// Generates the random numbers and the cookies of an endpoint, all from one secret that never leaves the endpoint.
pub struct EndpointSecret {
    secret: hmac::Key,
    drawn: u64,
}

impl EndpointSecret {
    /// Creates the generator. `secret` must be random.
    pub fn new(secret: &[u8; 32]) -> EndpointSecret {
        EndpointSecret { secret: hmac::Key::new(hmac::HMAC_SHA256, secret), drawn: 0 }
    }

    /// Returns unpredictable bytes; at most 32.
    pub fn draw<const N: usize>(&mut self) -> [u8; N] {
        self.drawn += 1;
        let drawn = tag(&self.secret, &[b"draw", &self.drawn.to_be_bytes()]);
        std::array::from_fn(|place| drawn[place])
    }

    /// Returns an unpredictable number.
    pub fn draw_word(&mut self) -> u64 {
        u64::from_be_bytes(self.draw())
    }

    /// Returns the cookie for a client at address `from`.
    pub fn cookie(&self, now: Time, from: SocketAddr, hello: &Hello<'_>) -> [u8; COOKIE] {
        self.cookie_of(now.as_nanos() / COOKIE_WINDOW_NS, from, hello)
    }

    /// Whether the Hello's cookie was issued for address `from`, in this window or the previous one.
    pub fn is_cookie(&self, now: Time, from: SocketAddr, hello: &Hello<'_>) -> bool {
        let window = now.as_nanos() / COOKIE_WINDOW_NS;
        [Some(window), window.checked_sub(1)].into_iter().flatten().any(|window| {
            is_tag(
                &self.secret,
                &EndpointSecret::parts(window, from, hello).each_ref().map(Vec::as_slice),
                hello.cookie,
            )
        })
    }

    /// Returns the server's name for the connection that this Hello requests. Every copy of a Hello yields the same
    /// name, so that the server needs no list of handshakes.
    pub fn name(&self, hello: &Hello<'_>) -> u64 {
        let tag = tag(&self.secret, &[b"name", &hello.client.to_be_bytes(), hello.nonce]);
        u64::from_be_bytes(std::array::from_fn(|place| tag[place]))
    }

    fn cookie_of(&self, window: u64, from: SocketAddr, hello: &Hello<'_>) -> [u8; COOKIE] {
        tag(&self.secret, &EndpointSecret::parts(window, from, hello).each_ref().map(Vec::as_slice))
    }

    fn parts(window: u64, from: SocketAddr, hello: &Hello<'_>) -> [Vec<u8>; 5] {
        let address = match from.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let whose = [&address.octets()[..], &from.port().to_be_bytes()].concat();
        let client = hello.client.to_be_bytes().to_vec();
        [b"cookie".to_vec(), window.to_be_bytes().to_vec(), whose, client, hello.nonce.to_vec()]
    }
}

/// Computes the proof of a Hello with these fields.
pub fn hello_proof(key: &Key, client: u64, nonce: &[u8; NONCE], cookie: &[u8; COOKIE]) -> [u8; PROOF] {
    key.prove(&[b"airpace hello", &[VERSION], &client.to_be_bytes(), nonce, cookie])
}

/// Whether the sender of the Hello knows the key.
pub fn is_hello(key: &Key, hello: &Hello<'_>) -> bool {
    let parts: [&[u8]; 5] =
        [b"airpace hello", &[VERSION], &hello.client.to_be_bytes(), hello.nonce, hello.cookie];
    key.verify(&parts, hello.proof)
}

/// Computes the proof of a Cookie packet that answers this Hello.
pub fn cookie_proof(key: &Key, client: u64, nonce: &[u8; NONCE], cookie: &[u8; COOKIE]) -> [u8; PROOF] {
    key.prove(&[b"airpace cookie", &[VERSION], &client.to_be_bytes(), nonce, cookie])
}

/// Whether the Cookie packet answers a Hello with this nonce.
pub fn is_cookie(key: &Key, nonce: &[u8; NONCE], packet: &Cookie<'_>) -> bool {
    let parts: [&[u8]; 5] =
        [b"airpace cookie", &[VERSION], &packet.client.to_be_bytes(), nonce, packet.cookie];
    key.verify(&parts, packet.proof)
}

/// Computes the proof of a Gone. The proofs of a server (an endpoint that accepts connections) and of a client
/// differ. Otherwise a packet reflected to its sender would make the sender close its own connection.
pub fn gone_proof(key: &Key, of_server: bool, connection: u64, counter: u64) -> [u8; SHORT_PROOF] {
    let proof = key.prove(&[
        b"airpace gone",
        &[VERSION, u8::from(of_server)],
        &connection.to_be_bytes(),
        &counter.to_be_bytes(),
    ]);
    std::array::from_fn(|place| proof[place])
}

/// Whether the sender of the Gone knows the key.
pub fn is_gone(key: &Key, of_server: bool, gone: &Gone<'_>) -> bool {
    is_equal(&gone_proof(key, of_server, gone.connection, gone.counter), gone.proof)
}

/// The names and nonces that both endpoints exchanged in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    pub client: u64,
    pub server: u64,
    pub client_nonce: [u8; NONCE],
    pub server_nonce: [u8; NONCE],
}

impl Session {
    fn salt(&self) -> [u8; 48] {
        let mut salt = [0; 48];
        salt[..16].copy_from_slice(&self.client_nonce);
        salt[16..32].copy_from_slice(&self.server_nonce);
        salt[32..40].copy_from_slice(&self.client.to_be_bytes());
        salt[40..].copy_from_slice(&self.server.to_be_bytes());
        salt
    }

    /// Computes the proof of an Accept.
    pub fn accept_proof(&self, key: &Key) -> [u8; PROOF] {
        key.prove(&[b"airpace accept", &[VERSION], &self.salt()])
    }

    /// Returns the client's session after an Accept; `None` if the server does not know the key, or answers another
    /// Hello.
    pub fn accepted(key: &Key, client_nonce: &[u8; NONCE], accept: &Accept<'_>) -> Option<Session> {
        let session = Session {
            client: accept.client,
            server: accept.server,
            client_nonce: *client_nonce,
            server_nonce: *accept.nonce,
        };
        key.verify(&[b"airpace accept", &[VERSION], &session.salt()], accept.proof).then_some(session)
    }

    /// Returns the secret from which the packet keys of the client, or of the server, are derived.
    pub fn secret(&self, key: &Key, of_client: bool) -> Secret {
        let label: &[u8] = if of_client { b"airpace client" } else { b"airpace server" };
        Secret { key: key.clone(), salt: self.salt(), label }
    }

    /// Returns the bytes of [`Connection::binding`](crate::endpoint::Connection::binding).
    pub fn binding(&self, key: &Key) -> [u8; 32] {
        key.derive(&self.salt(), b"airpace binding")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NONE: [u8; COOKIE] = [0; COOKIE];

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn a_cookie_is_good_for_its_address_its_hello_and_its_time() {
        let own = EndpointSecret::new(&[3; 32]);
        let (nonce, other_nonce, proof) = ([1; NONCE], [2; NONCE], [0; PROOF]);
        let hello = Hello { client: 7, nonce: &nonce, cookie: &NONE, proof: &proof };
        let now = Time::from_secs(1005);
        let cookie = own.cookie(now, at(1), &hello);
        let hello = Hello { cookie: &cookie, ..hello };
        assert!(own.is_cookie(now, at(1), &hello));
        assert!(own.is_cookie(now + Duration::from_secs(14), at(1), &hello), "the window after");
        assert!(!own.is_cookie(now + Duration::from_secs(15), at(1), &hello), "an old one");
        assert!(!own.is_cookie(now - Duration::from_secs(6), at(1), &hello), "one of the future");
        assert!(!own.is_cookie(now, at(2), &hello));
        assert!(!own.is_cookie(now, SocketAddr::from(([192, 0, 2, 2], 1)), &hello));
        assert!(!own.is_cookie(now, at(1), &Hello { client: 8, ..hello }));
        assert!(!own.is_cookie(now, at(1), &Hello { nonce: &other_nonce, ..hello }));
        assert!(!own.is_cookie(now, at(1), &Hello { cookie: &NONE, ..hello }));
        assert!(!EndpointSecret::new(&[4; 32]).is_cookie(now, at(1), &hello), "another endpoint's");
    }

    #[test]
    fn no_proof_is_good_for_another_role_nonce_or_key() {
        let (key, other) = (Key::new([1; 16]), Key::new([2; 16]));
        let (nonce, other_nonce) = ([1; NONCE], [2; NONCE]);
        let proof = hello_proof(&key, 7, &nonce, &NONE);
        let hello = Hello { client: 7, nonce: &nonce, cookie: &NONE, proof: &proof };
        assert!(is_hello(&key, &hello) && !is_hello(&other, &hello));
        assert!(!is_hello(&key, &Hello { client: 8, ..hello }));
        assert!(!is_hello(&key, &Hello { cookie: &[1; COOKIE], ..hello }));
        let reflected = Cookie { client: 7, cookie: &NONE, proof: &proof };
        assert!(!is_cookie(&key, &nonce, &reflected), "a Hello's proof is none of a Cookie");
        let session = Session { client: 7, server: 9, client_nonce: nonce, server_nonce: other_nonce };
        let proof = session.accept_proof(&key);
        let accept = Accept { client: 7, server: 9, nonce: &other_nonce, proof: &proof };
        assert_eq!(Session::accepted(&key, &nonce, &accept), Some(session));
        assert_eq!(Session::accepted(&other, &nonce, &accept), None);
        assert_eq!(Session::accepted(&key, &other_nonce, &accept), None, "an answer to another Hello");
        assert_eq!(Session::accepted(&key, &nonce, &Accept { server: 8, ..accept }), None);
        let elsewhere = Session { server_nonce: nonce, ..session };
        assert_ne!(session.binding(&key), elsewhere.binding(&key));
        assert_ne!(session.binding(&key), session.binding(&other));
    }

    #[test]
    fn what_is_drawn_differs_and_names_do_not() {
        let mut own = EndpointSecret::new(&[3; 32]);
        assert_ne!(own.draw::<16>(), own.draw::<16>());
        let (nonce, proof) = ([1; NONCE], [0; PROOF]);
        let hello = Hello { client: 7, nonce: &nonce, cookie: &NONE, proof: &proof };
        assert_eq!(own.name(&hello), own.name(&Hello { cookie: &[5; COOKIE], ..hello }));
        assert_ne!(own.name(&hello), own.name(&Hello { client: 8, ..hello }));
    }
}
