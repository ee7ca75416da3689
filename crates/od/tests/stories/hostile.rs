//! Tests with a malicious daemon: for any descriptor and answer, a program gets an error, and neither crashes nor reads
//! beyond the mapping.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use od::control::SOCKET_NAME;
use od::layout::{self, MAGIC, VERSION};
use od::{Error, Od};
use proptest::prelude::*;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

use crate::daemon::Daemon;

/// A memory file that contains `bytes`, sealed with `seals`.
fn memory(bytes: &[u8], seals: SealFlags) -> OwnedFd {
    let file = rustix::fs::memfd_create("false-board", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
    let mut file = std::fs::File::from(file.expect("memory"));
    file.write_all(bytes).expect("written");
    rustix::fs::fcntl_add_seals(&file, seals).expect("sealed");
    file.into()
}

/// The header of a valid region for two KPIs, followed by their empty rows.
fn sound() -> Vec<u8> {
    let bytes = layout::board_bytes(2);
    let mut board = MAGIC.to_ne_bytes().to_vec();
    for word in [VERSION, 256, 384, 2] {
        board.extend(word.to_ne_bytes());
    }
    board.extend((bytes as u64).to_ne_bytes());
    board.resize(bytes, 0);
    board
}

/// Opens the region of a daemon that sends the descriptor `board` and then the answers `rest`. Returns the program's
/// result and the daemon's socket.
fn open(board: Option<BorrowedFd<'_>>, rest: &str) -> (Result<Od, Error>, UnixStream) {
    let dir = tempfile::TempDir::new().expect("a folder");
    let listener = UnixListener::bind(dir.path().join(SOCKET_NAME)).expect("bound");
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| {
            let (mut program, _) = listener.accept().expect("it connects");
            let mut request = [0; 6];
            program.read_exact(&mut request).expect("it asks");
            assert_eq!(&request, b"board\n");
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if let Some(board) = &board {
                assert!(control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(board))));
            }
            let answer = format!("ok\n{rest}");
            rustix::net::sendmsg(
                &program,
                &[IoSlice::new(answer.as_bytes())],
                &mut control,
                SendFlags::NOSIGNAL,
            )
            .expect("sent");
            program
        });
        let opened = Od::open(Some(dir.path()));
        (opened, answering.join().expect("it has answered"))
    })
}

fn refusal(board: OwnedFd) -> String {
    open(Some(board.as_fd()), "").0.expect_err("no board").to_string()
}

#[test]
fn what_is_no_board_is_refused_with_the_reason() {
    let sealed = |bytes: &[u8]| refusal(memory(bytes, SealFlags::SHRINK));
    let changed = |at: usize, word: u32| {
        let mut board = sound();
        board[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        sealed(&board)
    };
    let file = std::fs::File::open("/proc/self/status").expect("readable");
    let told = [
        ("a file", refusal(file.into())),
        ("memory that could shrink", refusal(memory(&sound(), SealFlags::GROW))),
        ("nothing", sealed(b"")),
        ("less than a header", sealed(&sound()[..255])),
        ("a row less than it says", sealed(&sound()[..layout::board_bytes(1)])),
        ("something else", changed(0, 77)),
        ("the next version", changed(8, VERSION + 1)),
        ("another header", changed(12, 512)),
        ("other rows", changed(16, 64)),
        ("many more rows than bytes", changed(20, u32::MAX)),
        ("another size", changed(24, 7)),
        ("no descriptor", open(None, "").0.expect_err("no board").to_string()),
    ];
    let told: Vec<_> = told.iter().map(|(what, why)| format!("{what}: {why}")).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    a file: the daemon's shared memory cannot be used: it is no memory that can be sealed
    memory that could shrink: the daemon's shared memory cannot be used: its memory is not sealed against shrinking
    nothing: the daemon's shared memory cannot be used: it has 0 bytes, less than its header
    less than a header: the daemon's shared memory cannot be used: it has 255 bytes, less than its header
    a row less than it says: the daemon's shared memory cannot be used: 640 bytes do not hold 2 KPIs
    something else: the daemon's shared memory cannot be used: it does not begin as a board does
    the next version: the daemon's shared memory has layout 3, this library reads 2; install both from one version
    another header: the daemon's shared memory cannot be used: its header and rows are of 512 and 384 bytes
    other rows: the daemon's shared memory cannot be used: its header and rows are of 256 and 64 bytes
    many more rows than bytes: the daemon's shared memory cannot be used: 1024 bytes do not hold 4294967295 KPIs
    another size: the daemon's shared memory cannot be used: 1024 bytes do not hold 2 KPIs
    no descriptor: the daemon's shared memory cannot be used: no descriptor came with the answer
    ");
    assert!(open(Some(memory(&sound(), SealFlags::SHRINK).as_fd()), "").0.is_ok(), "a sound one is accepted");
}

#[test]
fn a_place_beyond_the_board_is_not_believed() {
    for answer in ["ok 2", "ok", "okay", "ok 9999999999"] {
        let (od, _daemon) = open(Some(memory(&sound(), SealFlags::SHRINK).as_fd()), &format!("{answer}\n"));
        let od = od.expect("a sound board");
        let error = od.subscribe("lte.rsrp").expect_err("no such place").to_string();
        assert!(error.contains(&format!("{answer:?}")), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_content_of_a_board_upsets_a_reader(
        noise in proptest::collection::vec((0usize..1_024, any::<u8>()), 0..200),
    ) {
        let mut board = sound();
        // Change only bytes after the size fields; the tests above cover these fields.
        for (at, byte) in noise {
            if at >= 32 {
                board[at] = byte;
            }
        }
        let (od, daemon) = open(Some(memory(&board, SealFlags::SHRINK).as_fd()), "ok 1\n");
        let od = od.expect("its sizes are sound");
        let kpi = od.subscribe("lte.rsrp").expect("there is such a place");
        let _ = (od.is_alive(), od.gaps());
        if let Some(reading) = kpi.latest() {
            prop_assert!(reading.sequence > 0);
            let _ = reading.age();
        }
        drop(daemon);
    }
}

#[test]
fn a_program_cannot_write_to_the_board_nor_change_its_size() {
    let daemon = Daemon::start(8);
    let board = descriptor(daemon.dir());
    let writable = |access| {
        let path = format!("/proc/self/fd/{}", board.as_raw_fd());
        std::fs::OpenOptions::new().read(true).write(access).open(path)
    };
    let reopened = writable(true);
    let trials = [
        ("the descriptor", Ok(board.try_clone().expect("a copy"))),
        ("opened anew", reopened.map(OwnedFd::from)),
    ];
    for (how, file) in trials {
        let Ok(file) = file else { continue };
        assert!(rustix::io::pwrite(&file, b"hostile", 0).is_err(), "{how} cannot be written by");
        for size in [0, 1 << 20] {
            assert!(rustix::fs::ftruncate(&file, size).is_err(), "{how} cannot be made {size} bytes long");
        }
        assert_eq!(
            rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE).expect_err("sealed for good"),
            Errno::PERM
        );
    }
    let seals = rustix::fs::fcntl_get_seals(&board).expect("sealed memory");
    assert!(seals.contains(SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL | SealFlags::FUTURE_WRITE));
}

/// The region's descriptor, as received from the daemon.
fn descriptor(dir: &Path) -> OwnedFd {
    let mut program = UnixStream::connect(dir.join(SOCKET_NAME)).expect("the daemon listens");
    program.write_all(b"board\n").expect("sent");
    let mut bytes = [0; 16];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut bytes)];
    rustix::net::recvmsg(&program, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC).expect("answered");
    let found = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    found.expect("a descriptor comes with the answer")
}

#[test]
fn a_list_without_end_is_not_read() {
    for count in [4_097_u32, u32::MAX] {
        let board = memory(&sound(), SealFlags::SHRINK);
        let (od, _daemon) = open(Some(board.as_fd()), &format!("ok {count}\nlte.rsrp\tdBm\tpower\n"));
        let error = od.expect("a sound board").kpis().expect_err("nobody has so many");
        assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_programs_say_the_daemon_goes_on(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        crate::protocol::daemon(&bytes);
    }

    #[test]
    fn whatever_a_daemon_says_programs_get_an_answer_or_an_error(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'\t'), 32u8..127], 0..600),
    ) {
        crate::protocol::client(&bytes);
    }
}
