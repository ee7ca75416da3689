//! Tests of the programs in other kernels: each kernel boots in QEMU without hardware virtualization, loads every scheme
//! and transfers data with it.
//!
//! ```text
//! apt-get install qemu-system-x86 && apt-get download linux-image-6.1.0-NN-cloud-amd64 && dpkg-deb -x linux-image*.deb DIR
//! AIRPACE_KERNEL_IMAGE=DIR/boot/vmlinuz-6.1.0-NN-cloud-amd64 cargo test -p airpace-bpf --features load --test other_kernels
//! ```
//!
//! The kernel's first process is this test binary, in an initramfs with the binary's libraries and `ip`. The first
//! process runs only the test `inside`. The tests outside search the emulated machine's output for the result.
#![cfg(feature = "load")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use airpace_bpf::feed::{GrantRecord, now};
use airpace_bpf::kernel::{Kernel, KernelScheme, LoadError, PBE, Pinned, readiness, unload};
use airpace_bpf::room::device_number;
use airpace_bpf::twin::KernelTuning;
use airpace_bpf::twin::morc::MorcTuning;
use airpace_bpf::twin::pbe::PbeTuning;
use airpace_bpf::twin::pbe_receiver::Cell;
use airpace_cc::SchemeSpec;
use airpace_cc::biscay::Tuning;
use airpace_cc::scheme::Options;
use airpace_cc::{morc, pbe};
use airpace_core::Rate;
use airpace_testing::{has_program, skipped};
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType, connect, socket};

/// Environment variable with the path of the kernel to boot.
const IMAGE: &str = "AIRPACE_KERNEL_IMAGE";

/// Environment variable that the kernel's command line sets for its first process.
const INSIDE: &str = "AIRPACE_INSIDE";

/// Mount point of the control groups in the emulated machine.
const GROUPS: &str = "/tmp/groups";

/// The emulated machine's last message.
const DONE: &str = "airpace: every scheme has moved data";
const LOCKED: &str = "airpace: the kernel is locked down, and says so";

#[test]
fn every_scheme_moves_data_in_the_kernel_that_is_named() {
    boots_and_says("moves", "", DONE);
}

/// A locked-down kernel protects its memory even from root, and lets no program read it.
#[test]
fn a_kernel_that_is_locked_down_takes_no_scheme_and_is_named_as_the_reason() {
    boots_and_says("locked", "lockdown=confidentiality", LOCKED);
}

/// Boots the kernel with `words` on its command line, and expects the message `expected` from its first process.
fn boots_and_says(what: &str, words: &str, expected: &str) {
    let Some(image) = std::env::var_os(IMAGE).map(PathBuf::from) else {
        return skipped(&format!(
            "{IMAGE} names no kernel; the head of tests/other_kernels.rs says how to get one"
        ));
    };
    if !has_program("qemu-system-x86_64", "qemu-system-x86") {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("other-kernels").join(what);
    fs::create_dir_all(&folder).unwrap();
    let archive = folder.join("first.cpio");
    fs::write(&archive, first_process(&folder)).unwrap();
    // On a busy machine, the emulated clock ticks too late for the kernel's timer check.
    let line = format!(
        "console=ttyS0 no_timer_check quiet panic=-1 {words} rdinit=/first {INSIDE}=1 -- --exact inside --nocapture --ignored --test-threads=1"
    );
    let output = Command::new("qemu-system-x86_64")
        .args(["-accel", "tcg", "-cpu", "max", "-m", "1024", "-smp", "1", "-display", "none", "-no-reboot"])
        .args(["-net", "none", "-monitor", "none", "-serial", "stdio", "-append", &line])
        .arg("-kernel")
        .arg(&image)
        .arg("-initrd")
        .arg(&archive)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(said.contains(expected), "{}: {}", image.display(), String::from_utf8_lossy(&output.stderr));
}

/// An initramfs with this program, `ip`, and their libraries.
fn first_process(folder: &Path) -> Vec<u8> {
    let program = folder.join("first");
    let this = std::env::current_exe().unwrap();
    // Without debug information, the file has a tenth of its size.
    let is_stripped = Command::new("strip").arg(&this).arg("-o").arg(&program).status();
    if !is_stripped.is_ok_and(|status| status.success()) {
        fs::copy(&this, &program).unwrap();
    }
    let ip = ["/bin/ip", "/sbin/ip", "/usr/sbin/ip"].map(PathBuf::from).into_iter().find(|ip| ip.exists());
    let ip = ip.expect("the tests of the emulator need it too");
    let mut files: BTreeSet<PathBuf> =
        [&this, &ip].into_iter().flat_map(|program| libraries(program)).collect();
    files.insert(ip.clone());
    let mut archive = Archive::default();
    for folder in ["proc", "sys", "dev", "tmp"] {
        archive.folder(Path::new(folder));
    }
    for file in files {
        archive.file(file.strip_prefix("/").unwrap(), &fs::read(&file).unwrap());
    }
    archive.file(Path::new("first"), &fs::read(&program).unwrap());
    archive.file(Path::new("ip"), ip.to_str().unwrap().as_bytes());
    archive.end()
}

/// The libraries of a program, and the loader, by their absolute paths.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.map(PathBuf::from).collect()
}

/// An archive of files in the format of an initramfs.
///
/// Source: Linux Documentation/driver-api/early-userspace/buffer-format.rst (newc)
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    number: u32,
    folders: BTreeSet<PathBuf>,
}

impl Archive {
    fn entry(&mut self, name: &str, mode: u32, data: &[u8]) {
        self.number += 1;
        let size = u32::try_from(data.len()).unwrap();
        let length = name.len() as u32 + 1;
        let numbers = [self.number, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, length, 0];
        self.bytes.extend(b"070701");
        numbers.iter().for_each(|number| self.bytes.extend(format!("{number:08x}").bytes()));
        self.bytes.extend(name.bytes().chain([0]));
        self.align();
        self.bytes.extend(data);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn folder(&mut self, path: &Path) {
        if !path.as_os_str().is_empty() && self.folders.insert(path.to_owned()) {
            path.parent().into_iter().for_each(|parent| self.folder(parent));
            self.entry(path.to_str().unwrap(), 0o040_755, &[]);
        }
    }

    fn file(&mut self, path: &Path, data: &[u8]) {
        path.parent().into_iter().for_each(|parent| self.folder(parent));
        self.entry(path.to_str().unwrap(), 0o100_755, data);
    }

    fn end(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

/// Runs in the emulated machine, as its first process.
#[test]
#[ignore = "it is the first process of another kernel"]
fn inside() {
    if std::env::var_os(INSIDE).is_none() || std::process::id() != 1 {
        return skipped("this is no machine of its own");
    }
    if let Ok(done) = std::panic::catch_unwind(in_the_machine) {
        println!("{done}");
    }
    std::io::stdout().flush().unwrap();
    // The machine would stop with a kernel panic if its first process exited, so this process switches the machine off.
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
}

/// Runs the checks in the emulated machine. Returns the message for the machine's output.
fn in_the_machine() -> &'static str {
    use rustix::mount::{MountFlags, mount};
    let systems = [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("bpf", "/sys/fs/bpf"),
        ("securityfs", "/sys/kernel/security"),
    ];
    for (kind, at) in systems {
        mount(kind, at, kind, MountFlags::empty(), None).unwrap();
    }
    let lockdown = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    println!("lockdown {}", lockdown.trim());
    if lockdown.contains("[confidentiality]") {
        is_refused();
        return LOCKED;
    }
    every_scheme();
    DONE
}

fn is_refused() {
    assert!(matches!(readiness(), Err(LoadError::Lockdown)), "{:?}", readiness());
    let biscay = KernelTuning::new(&Tuning::read(&Options::defaults(&airpace_cc::biscay::SCHEME)).unwrap());
    let morc = MorcTuning::new(&morc::profile(&Options::defaults(&morc::SCHEME)).unwrap());
    for part in [KernelScheme::Biscay(biscay.unwrap()), KernelScheme::Morc(morc.unwrap())] {
        let error = Kernel::load(&part).err().expect("it takes no programs");
        assert!(matches!(error, LoadError::Lockdown), "{}: {error}", part.name());
    }
}

fn every_scheme() {
    use rustix::mount::{MountFlags, mount};
    fs::create_dir_all(GROUPS).unwrap();
    mount("none", GROUPS, "cgroup2", MountFlags::empty(), None).unwrap();
    println!("kernel {}", fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim());
    let ip = fs::read_to_string("/ip").unwrap();
    assert!(Command::new(ip).args(["link", "set", "lo", "up"]).status().unwrap().success());
    pbe();
    let biscay =
        |text: &str| KernelTuning::new(&Tuning::read(SchemeSpec::parse(text).unwrap().options()).unwrap());
    let morc = MorcTuning::new(&morc::profile(&Options::defaults(&morc::SCHEME)).unwrap());
    let of_apps = biscay("biscay:split=app").unwrap();
    for part in [
        KernelScheme::Biscay(biscay("biscay").unwrap()),
        KernelScheme::Biscay(of_apps),
        KernelScheme::Morc(morc.unwrap()),
    ] {
        let name = part.name();
        let mut kernel = Kernel::load(&part).unwrap_or_else(|error| panic!("{name}: {error}"));
        let feed = kernel.feed().ok();
        if feed.is_some() {
            kernel
                .count_flows(fs::File::open(GROUPS).unwrap().as_fd())
                .unwrap_or_else(|error| panic!("{error}"));
        }
        kernel.pin().unwrap_or_else(|error| panic!("{name}: {error}"));
        // The scheme stays in the kernel after its loader ends.
        drop(kernel);
        let pinned = Pinned::open(name).unwrap().expect("it was pinned");
        if let Some(mut feed) = feed {
            // This machine has only a loopback device, and no packet leaves the machine.
            assert_eq!(pinned.active_flows().unwrap(), Some(0), "they are counted");
            let told =
                GrantRecord { bandwidth: Some(Rate::from_mbps(1_000.0)), burst: Rate::ZERO, share: None };
            moves(name, || feed.tell(&told));
        }
        moves(name, || {});
        is_shown(&pinned, name);
        let totals = pinned.totals().unwrap();
        println!("{name}: {totals:?}");
        assert!(totals.acks > 0 && totals.flows > 0);
        drop(pinned);
        assert!(unload(name).unwrap());
        assert!(Pinned::open(name).unwrap().is_none());
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        assert!(set_tcp_congestion(&socket, name).is_err(), "{name} is removed");
    }
    relay_comes_and_goes(biscay("biscay@window:split=app").unwrap());
}

/// A flow is listed with its addresses, as long as it uses the scheme.
fn is_shown(pinned: &Pinned, scheme: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    set_tcp_congestion(&socket, scheme).unwrap();
    connect(&socket, &listener.local_addr().unwrap()).unwrap();
    let sender = TcpStream::from(socket);
    let ends = (sender.local_addr().unwrap(), sender.peer_addr().unwrap());
    let is_there = || pinned.flows().unwrap().iter().any(|flow| (flow.local, flow.remote) == ends);
    assert!(is_there(), "{scheme}: {:?}", pinned.flows());
    set_tcp_congestion(&sender, "reno").unwrap();
    assert!(!is_there(), "{scheme}: it has another one now");
}

/// The machine has only a loopback device, and the relay does not limit the windows of loopback connections. So the
/// test only loads, calls and removes the programs.
fn relay_comes_and_goes(tuning: KernelTuning) {
    let part = KernelScheme::Relay(tuning);
    let name = part.name();
    let mut kernel = Kernel::load(&part).unwrap_or_else(|error| panic!("{name}: {error}"));
    let groups = fs::File::open(GROUPS).unwrap();
    kernel.count_flows(groups.as_fd()).unwrap_or_else(|error| panic!("{error}"));
    kernel.bound_downloads(groups.as_fd()).unwrap_or_else(|error| panic!("{error}"));
    let told = GrantRecord { bandwidth: Some(Rate::from_mbps(1.0)), burst: Rate::ZERO, share: None };
    let mut feed = kernel.feed().unwrap();
    kernel.pin().unwrap_or_else(|error| panic!("{name}: {error}"));
    drop(kernel);
    moves("reno", || feed.tell(&told));
    let pinned = Pinned::open(name).unwrap().expect("it was pinned");
    assert_eq!(pinned.active_apps().unwrap(), Some(0), "they are counted");
    assert_eq!(pinned.totals().unwrap().flows, 0);
    drop(pinned);
    assert!(unload(name).unwrap());
    assert!(Pinned::open(name).unwrap().is_none());
    assert!(!Path::new("/sys/fs/bpf/airpace").exists());
}

/// Both endpoints of PBE-CC: the receiver's feedback controls the sender.
fn pbe() {
    let tuning = PbeTuning::new(&pbe::Tuning::read(&Options::defaults(&pbe::SCHEME)).unwrap()).unwrap();
    let mut kernel = Kernel::load(&KernelScheme::Pbe(tuning)).unwrap_or_else(|error| panic!("pbe: {error}"));
    let group = fs::File::open(GROUPS).unwrap();
    kernel.exchange(group.as_fd()).unwrap_or_else(|error| panic!("{error}"));
    kernel.pin().unwrap_or_else(|error| panic!("pbe: {error}"));
    drop(kernel);
    let pinned = Pinned::open(PBE).unwrap().expect("it was pinned");
    let mut feed = pinned.cell().unwrap().expect("it needs one");
    feed.tell(&Cell::idle(Rate::from_mbps(1_000.0), now()));
    moves(PBE, || feed.tell(&Cell::idle(Rate::from_mbps(1_000.0), now())));
    let totals = pinned.totals().unwrap();
    println!("pbe: {totals:?}");
    assert!(totals.acks > 0 && totals.confirmed == totals.flows && totals.flows > 0, "{totals:?}");
    assert!(feed.rtprop().is_some(), "the receiver has heard its sender");
    // No process writes the feed any more.
    moves(PBE, || {});
    let totals = pinned.totals().unwrap();
    assert!(totals.fallbacks > 0, "{totals:?}");
    let room = pinned.room().unwrap().expect("it has an option");
    match room.attach(device_number("lo").unwrap()) {
        Ok(attached) => println!("pbe: room at a device, by itself: {}", attached.ends_by_itself()),
        Err(error) => println!("pbe: no room at devices, as what classifies packets is not there: {error}"),
    }
    drop(pinned);
    assert!(unload(PBE).unwrap());
}

/// Transfers four megabytes under `scheme`, and calls `meanwhile` during the transfer.
fn moves(scheme: &str, mut meanwhile: impl FnMut()) {
    const BYTES: usize = 4_000_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    set_tcp_congestion(&socket, scheme).unwrap();
    connect(&socket, &listener.local_addr().unwrap()).unwrap();
    let mut sender = TcpStream::from(socket);
    let (mut receiver, _) = listener.accept().unwrap();
    let began = Instant::now();
    let reads = std::thread::spawn(move || {
        let (mut bytes, mut received) = ([0; 65_536], 0);
        while let Ok(some @ 1..) = receiver.read(&mut bytes) {
            received += some;
        }
        received
    });
    for _ in 0..BYTES / 20_000 {
        meanwhile();
        sender.write_all(&[0; 20_000]).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(sender);
    assert_eq!(reads.join().unwrap(), BYTES);
    println!("{scheme}: 4 MB in {:.1} s", began.elapsed().as_secs_f64());
}
