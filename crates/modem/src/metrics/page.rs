//! The page for Prometheus.

use std::fmt::Write;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::{KpiLabel, LATENCY_BOUNDS_NS, Metrics};

/// Returns the page with the current values.
pub fn page(metrics: &Metrics) -> String {
    let mut page = Page::default();
    kpis(metrics, &mut page);
    let counters = [
        ("airpace_diag_bytes_total", "Bytes received from the port.", &metrics.bytes),
        ("airpace_diag_reads_total", "Reads of the port that gave bytes.", &metrics.reads),
        ("airpace_diag_packets_total", "Log packets.", &metrics.packets),
        ("airpace_diag_samples_total", "Samples of KPIs that were published.", &metrics.samples),
        (
            "airpace_diag_bad_frames_total",
            "Stretches of bytes that were no message: wrong checksums, cut frames.",
            &metrics.bad_frames,
        ),
        ("airpace_diag_gaps_total", "Times that the port was lost.", &metrics.gaps),
        ("airpace_diag_sessions_total", "Sessions that reached streaming.", &metrics.sessions),
        (
            "airpace_diag_drains_total",
            "Requests to the modem to send the content of its buffer.",
            &metrics.drains,
        ),
        ("airpace_diag_failed_drains_total", "Drains that the port did not accept.", &metrics.failed_drains),
    ];
    for (name, help, count) in counters {
        page.head(name, "counter", help);
        page.sample(name, &[], count.value());
    }
    let name = "airpace_diag_unread_packets_total";
    page.head(name, "counter", "Log packets that could not be read completely, by reason.");
    for (reason, count) in lock(&metrics.troubles).iter() {
        page.sample(name, &[("reason", reason)], count);
    }
    let gauges = [
        ("airpace_diag_streaming", "1 while the modem sends the subscribed packets.", &metrics.streaming),
        ("airpace_diag_clients", "Programs that are connected.", &metrics.clients),
    ];
    for (name, help, gauge) in gauges {
        page.head(name, "gauge", help);
        page.sample(name, &[], gauge.load(Ordering::Relaxed));
    }
    latency(metrics, &mut page);
    page.text
}

fn kpis(metrics: &Metrics, page: &mut Page) {
    let labels = lock(&metrics.kpis).clone();
    let (value, age, leases) = ("airpace_kpi", "airpace_kpi_age_seconds", "airpace_kpi_subscriptions");
    let mut shown: Vec<(&KpiLabel, Option<String>, f64, u64)> = vec![];
    for (slot, label) in labels.iter().enumerate() {
        let latest = metrics.latest(slot);
        if label.is_of_all {
            let last = latest.min_by_key(|(_, _, age_ns)| *age_ns);
            shown.extend(last.map(|(_, last, age_ns)| (label, None, last, age_ns)));
        } else {
            let of_carrier =
                |(carrier, last, age_ns): (usize, f64, u64)| (label, Some(carrier.to_string()), last, age_ns);
            shown.extend(latest.map(of_carrier));
        }
    }
    page.head(value, "gauge", "Last value of a KPI, in its unit.");
    for (label, carrier, last, _) in &shown {
        let radio = label.radio.to_string();
        let mut labels = vec![("name", &*label.name), ("unit", &*label.unit), ("radio", &*radio)];
        labels.extend(carrier.as_deref().map(|carrier| ("carrier", carrier)));
        page.sample(value, &labels, last);
    }
    page.head(age, "gauge", "Since the last value of a KPI arrived.");
    for (label, carrier, _, age_ns) in &shown {
        let radio = label.radio.to_string();
        let mut labels = vec![("name", &*label.name), ("radio", &*radio)];
        labels.extend(carrier.as_deref().map(|carrier| ("carrier", carrier)));
        page.sample(age, &labels, *age_ns as f64 / 1e9);
    }
    page.head(leases, "gauge", "Subscriptions to a KPI.");
    for label in &labels {
        let radio = label.radio.to_string();
        page.sample(leases, &[("name", &label.name), ("radio", &radio)], label.leases);
    }
}

fn latency(metrics: &Metrics, page: &mut Page) {
    let name = "airpace_diag_latency_seconds";
    page.head(name, "histogram", "Time from the arrival of bytes to the publication of all their values.");
    let (bucket, mut count) = (format!("{name}_bucket"), 0);
    for (at, counted) in metrics.latency.buckets.iter().enumerate() {
        count += counted.value();
        let bound =
            LATENCY_BOUNDS_NS.get(at).map_or("+Inf".to_owned(), |bound| (*bound as f64 / 1e9).to_string());
        page.sample(&bucket, &[("le", &bound)], count);
    }
    page.sample(&format!("{name}_sum"), &[], metrics.latency.sum_ns.value() as f64 / 1e9);
    page.sample(&format!("{name}_count"), &[], count);
}

/// Locks a mutex. Also uses a poisoned lock, because the lock protects only plain data.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Builder of the page's lines.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.text.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{}{label}=\"{text}\"", if at == 0 { '{' } else { ',' });
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Parses a page by its grammar into samples by name and labels. Each sample must follow the TYPE line of its name.
    fn read(page: &str) -> BTreeMap<String, f64> {
        let (mut samples, mut kinds) = (BTreeMap::new(), BTreeMap::new());
        for line in page.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                let words: Vec<_> = comment.splitn(3, ' ').collect();
                if words[0] == "TYPE" {
                    assert!(kinds.insert(words[1], words[2]).is_none(), "{line}: only one TYPE by name");
                }
                continue;
            }
            let (key, value) = line.rsplit_once(' ').expect("a value behind a space");
            let name = key.split('{').next().unwrap();
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line}");
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let family = family.filter(|family| kinds.get(family) == Some(&"histogram")).unwrap_or(name);
            assert!(kinds.contains_key(family), "{line}: its TYPE comes first");
            assert!(
                samples.insert(key.to_owned(), value.parse().unwrap()).is_none(),
                "{line}: each sample once"
            );
        }
        samples
    }

    #[test]
    fn a_page_has_what_was_counted_and_the_last_value_of_every_carrier() {
        let metrics = Metrics::new(4);
        let label = |name: &str, radio| {
            let is_of_all = name == "lte.dl.bytes";
            KpiLabel { name: name.to_owned(), unit: "dBm".to_owned(), radio, is_of_all, leases: 2 }
        };
        metrics.kpis.lock().unwrap().extend([
            label("lte.rsrp", 1),
            label("lte.rsrp", 2),
            label("od\"d\\", 1),
            label("lte.dl.bytes", 1),
        ]);
        metrics.on_sample(3, 1, 4_000.0, now_before());
        metrics.on_sample(3, 0, 3_000.0, now_before() - 5_000_000);
        metrics.on_sample(0, 0, -101.5, now_before());
        metrics.on_sample(0, 1, -90.0, now_before());
        metrics.on_sample(1, 0, -80.25, now_before());
        metrics.on_sample(1, 200, 7.0, now_before());
        metrics.troubles.lock().unwrap().push(("0xB173 version 99: unknown".to_owned(), 3));
        metrics.packets.add(41);
        let samples = read(&page(&metrics));
        let kpi = |radio, carrier| {
            let key = format!(
                "airpace_kpi{{name=\"lte.rsrp\",unit=\"dBm\",radio=\"{radio}\",carrier=\"{carrier}\"}}"
            );
            samples.get(&key).copied()
        };
        assert_eq!([kpi(1, 0), kpi(1, 1), kpi(2, 0)], [Some(-101.5), Some(-90.0), Some(-80.25)]);
        assert_eq!(kpi(2, 8), None, "carriers beyond the last are nobody else's");
        assert_eq!(samples["airpace_diag_packets_total"], 41.0);
        let total: Vec<_> =
            samples.iter().filter(|(key, _)| key.starts_with("airpace_kpi{name=\"lte.dl.bytes\"")).collect();
        let key = "airpace_kpi{name=\"lte.dl.bytes\",unit=\"dBm\",radio=\"1\"}".to_owned();
        assert_eq!(total, [(&key, &4_000.0)], "one sum of all carriers, the last");
        assert_eq!(samples["airpace_diag_samples_total"], 6.0);
        assert_eq!(samples["airpace_diag_unread_packets_total{reason=\"0xB173 version 99: unknown\"}"], 3.0);
        assert_eq!(samples["airpace_kpi_subscriptions{name=\"od\\\"d\\\\\",radio=\"1\"}"], 2.0);
        let age = samples["airpace_kpi_age_seconds{name=\"lte.rsrp\",radio=\"1\",carrier=\"0\"}"];
        assert!((1.0..60.0).contains(&age), "{age}");
    }

    fn now_before() -> u64 {
        od::clock::now_ns() - 1_000_000_000
    }

    #[test]
    fn buckets_of_the_histogram_add_up() {
        let metrics = Metrics::new(1);
        for nanos in [900, 1_000, 1_001, 49_000, 2_000_000_000] {
            metrics.on_latency(nanos);
        }
        let samples = read(&page(&metrics));
        let bucket = |le: &str| samples[&format!("airpace_diag_latency_seconds_bucket{{le=\"{le}\"}}")];
        assert_eq!([bucket("0.000001"), bucket("0.000002"), bucket("0.00005")], [2.0, 3.0, 4.0]);
        assert_eq!(bucket("0.1"), 4.0);
        assert_eq!(bucket("+Inf"), samples["airpace_diag_latency_seconds_count"]);
        assert!((samples["airpace_diag_latency_seconds_sum"] - 2.000_051_901).abs() < 1e-9);
    }
}
