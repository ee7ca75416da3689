//! Sends files to another machine.

use std::cell::RefCell;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airpace_cc::SchemeSpec;
use airpace_transfer::client::{Client, Job, Settings};
use airpace_transfer::source::Files;
use airpace_transfer::wire::{Role, Wire, call, host_and_port, turn};
use airpace_transfer::{code, keys};
use airpace_transport::both::Transport;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::attend::attend;
use crate::raise;

/// Sends files to `airpace recv`: see `airpace.send`. The key is text, or is read from a file. Returns the result as JSON.
#[pyfunction]
#[pyo3(signature = (files, host, *, key, key_file, scheme, transport, patience_s, realtime, progress))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a function of Python")]
pub fn send(
    py: Python<'_>,
    files: Vec<PathBuf>,
    host: &str,
    key: Option<String>,
    key_file: Option<PathBuf>,
    scheme: &str,
    transport: &str,
    patience_s: f64,
    realtime: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let key = match (key, key_file) {
        (Some(text), _) => code::parse(&text).map_err(raise::refused)?,
        (None, Some(path)) => keys::read(&path).map_err(raise::refused)?,
        (None, None) => return Err(raise::value("key=None: give the key that `airpace recv` printed")),
    };
    let transport = match transport {
        "quic" => Transport::Quic,
        "udp" => Transport::Udp,
        other => return Err(raise::value(format!("transport `{other}`: give `quic` or `udp`"))),
    };
    let scheme = SchemeSpec::parse(scheme).map_err(raise::value)?;
    let Some((name, port)) = host_and_port(host) else {
        return Err(raise::value(format!("host `{host}`: give HOST or HOST:PORT")));
    };
    let found = py.detach(|| (name.as_str(), port).to_socket_addrs().ok().and_then(|mut all| all.next()));
    let Some(peer) = found else {
        return Err(raise::failed(format!("`{name}` is no host that can be found; give its address")));
    };
    let patience = Duration::try_from_secs_f64(patience_s).map_err(raise::value)?;
    let stop = Arc::new(AtomicBool::new(false));
    // Share of the bytes, and numbers of stored and of all files.
    let share = Arc::new(Mutex::new((0.0, 0_u64, files.len() as u64)));
    let show = || match &progress {
        Some(progress) => progress.call1(*share.lock().expect("no thread panics with it")).map(drop),
        None => Ok(()),
    };
    let (flag, shared) = (Arc::clone(&stop), Arc::clone(&share));
    let work = move || -> Result<Option<String>, String> {
        let mut sources = Files::new();
        for path in files {
            sources.add(path).map_err(|fault| raise::explained(&fault))?;
        }
        let job = Job::Push(Rc::new(RefCell::new(sources)));
        let socket = call(peer).map_err(|error| raise::explained(&error))?;
        let settings = Settings { key: key.clone(), peer, scheme, job, patience, stop: flag };
        let client = Client::new(settings, move |progress| {
            let tally = &progress.tally;
            let share = tally.done as f64 / tally.bytes.unwrap_or(0).max(1) as f64;
            *shared.lock().expect("no thread panics with it") = (share.min(1.0), tally.stored, tally.files);
        });
        let client = client.map_err(|fault| raise::explained(&fault))?;
        let wire = Wire { key, socket, role: Role::Calls(transport), radio: None, wants_realtime: realtime };
        let client = turn(wire, client).map_err(|error| raise::explained(&error))?;
        match client.outcome() {
            Some(Ok(())) => Ok(Some(client.progress().object().to_string())),
            Some(Err(fault)) => Err(raise::explained(fault)),
            None => Ok(None),
        }
    };
    let (ended, interrupted) = attend(py, &stop, &show, &|_| (), work)?;
    match (ended, interrupted) {
        (_, Some(why)) => Err(why),
        (Ok(None), None) => Err(PyKeyboardInterrupt::new_err("the transfer was stopped")),
        (Ok(Some(object)), None) => show().map(|()| object),
        (Err(sentence), None) => Err(raise::failed(sentence)),
    }
}
