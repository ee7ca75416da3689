//! Benchmarks of libOD: cost of publishing and of reading, and latency from the publication of a reading to its reader.
//!
//! The benchmark first prints a table of latencies from the call that publishes a reading until a reader receives it,
//! for single readings at intervals of one millisecond. The table has rows for readers that wait (asleep in the kernel)
//! and for a reader that polls continuously. After the table, the benchmark prints Criterion's results.
//!
//! `cargo bench -p airpace-od`

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use od::control::{Host, KpiInfo, Refusal, Server};
use od::{Board, Entry, Kpi, Od, Publisher, SlotId, clock};
use tempfile::TempDir;

const SLOT: SlotId = SlotId(0);
/// Number of readings per row of the table.
const READINGS: u64 = 3_000;

/// A daemon with one KPI, in its own thread.
struct Daemon {
    publisher: Publisher,
    dir: TempDir,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct OneKpi(Board);

impl Host for OneKpi {
    fn board(&mut self) -> &mut Board {
        &mut self.0
    }

    fn kpis(&mut self) -> Vec<KpiInfo> {
        vec![]
    }

    fn subscribe(&mut self, name: &str) -> Result<SlotId, Refusal> {
        self.0.add(name, "").map_err(|errno| Refusal::new(errno, "no place"))
    }

    fn unsubscribed(&mut self, _slot: SlotId) {}
}

impl Daemon {
    fn start() -> Daemon {
        let dir = TempDir::new().expect("a folder");
        let (board, publisher) = Board::create(8).expect("a board");
        let mut server = Server::bind(dir.path()).expect("a folder of our own");
        let is_over = Arc::new(AtomicBool::new(false));
        let until = is_over.clone();
        let thread = std::thread::spawn(move || {
            let mut host = OneKpi(board);
            while !until.load(Ordering::Relaxed) {
                host.0.beat();
                server.serve(&mut host, Duration::from_millis(1)).expect("its own socket works");
            }
        });
        Daemon { publisher, dir, is_over, thread: Some(thread) }
    }

    fn subscribe(&self) -> Kpi {
        let od = Od::open(Some(self.dir.path())).expect("the daemon answers");
        od.subscribe("lte.dl.bytes").expect("there is a place")
    }

    fn publish(&mut self, value: f64) -> u64 {
        self.publisher.publish(SLOT, &Entry { value, arrival_ns: clock::now_ns(), ..Entry::default() })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the daemon ends");
        }
    }
}

fn table(_criterion: &mut Criterion) {
    println!("{:<28}{:>10}{:>10}{:>10}   from publishing to the reader, µs", "reader", "p50", "p99", "max");
    for (name, readers, waits) in
        [("waits", 1, true), ("waits, one of eight", 8, true), ("looks all the time", 1, false)]
    {
        let mut latencies = latencies_ns(readers, waits);
        latencies.sort_unstable();
        let micros = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize] as f64 * 1e-3;
        println!("{name:<28}{:>10.1}{:>10.1}{:>10.1}", micros(0.5), micros(0.99), micros(1.0));
    }
}

/// Latency of each reading at each reader that received it, in ns.
fn latencies_ns(readers: usize, waits: bool) -> Vec<u64> {
    let mut daemon = Daemon::start();
    let readers: Vec<_> = (0..readers)
        .map(|_| {
            let kpi = daemon.subscribe();
            std::thread::spawn(move || {
                let (mut seen, mut latencies) = (0, vec![]);
                while seen < READINGS {
                    let reading = if waits {
                        kpi.wait(seen, Duration::from_secs(10)).expect("the daemon publishes")
                    } else {
                        match kpi.latest().filter(|reading| reading.sequence > seen) {
                            Some(reading) => reading,
                            None => continue,
                        }
                    };
                    latencies.push(clock::now_ns().saturating_sub(reading.published_ns));
                    seen = reading.sequence;
                }
                latencies
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(50));
    for number in 1..=READINGS {
        std::thread::sleep(Duration::from_millis(1));
        daemon.publish(number as f64);
        daemon.publisher.wake();
    }
    readers.into_iter().flat_map(|reader| reader.join().expect("a reader ends")).collect()
}

fn publish(criterion: &mut Criterion) {
    let mut daemon = Daemon::start();
    let kpi = daemon.subscribe();
    let entry = Entry { value: 1.0, ..Entry::default() };
    criterion.bench_function("publish", |b| b.iter(|| daemon.publisher.publish(SLOT, black_box(&entry))));
    criterion.bench_function("publish, wake nobody", |b| {
        b.iter(|| {
            daemon.publisher.publish(SLOT, black_box(&entry));
            daemon.publisher.wake();
        });
    });
    drop(kpi);
}

fn read(criterion: &mut Criterion) {
    let mut daemon = Daemon::start();
    let kpi = daemon.subscribe();
    daemon.publish(1.0);
    criterion.bench_function("latest", |b| b.iter(|| black_box(&kpi).latest()));
    criterion.bench_function("latest, its age, whether the daemon lives", |b| {
        b.iter(|| {
            let reading = black_box(&kpi).latest().expect("published");
            (reading.value, reading.age(), kpi.od().is_alive())
        });
    });

    let is_over = Arc::new(AtomicBool::new(false));
    let publishing = std::thread::spawn({
        let is_over = is_over.clone();
        move || {
            while !is_over.load(Ordering::Relaxed) {
                daemon.publish(1.0);
            }
        }
    });
    criterion.bench_function("latest, while somebody publishes all the time", |b| {
        b.iter(|| black_box(&kpi).latest());
    });
    is_over.store(true, Ordering::Relaxed);
    publishing.join().expect("it ends");
}

criterion_group!(benches, table, publish, read);
criterion_main!(benches);
