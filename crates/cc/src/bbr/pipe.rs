//! A sender with perfect bookkeeping, for tests of controllers: what an endpoint does, without its wire format.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Rate, Rider, Time};

use crate::controller::{Ack, Controller, Loss, LossCause, RateSample, Rtt, Sent, SentPacket};

pub const MSS: Bytes = Bytes(1500);

/// What the sender remembers of a packet.
#[derive(Clone, Copy)]
struct Outstanding {
    packet: SentPacket,
    delivered: Bytes,
    delivered_time: Time,
    first_sent: Time,
    app_limited: bool,
}

/// One sender: asks its controller what it may send, tells it what came back.
pub struct Sender<C: Controller> {
    pub controller: C,
    outstanding: VecDeque<Outstanding>,
    next_number: u64,
    next_send: Time,
    delivered: Bytes,
    delivered_time: Time,
    first_sent: Time,
    rtt: Option<Rtt>,
    pub inflight: Bytes,
    pub lost: Bytes,
    /// Samples are application limited until so much has been delivered.
    limited_until: Bytes,
    /// The application offers no more than this.
    pub app_rate: Option<Rate>,
}

impl<C: Controller> Sender<C> {
    pub fn new(controller: C) -> Sender<C> {
        Sender {
            controller,
            outstanding: VecDeque::new(),
            next_number: 0,
            next_send: Time::ZERO,
            delivered: Bytes::ZERO,
            delivered_time: Time::ZERO,
            first_sent: Time::ZERO,
            rtt: None,
            inflight: Bytes::ZERO,
            lost: Bytes::ZERO,
            limited_until: Bytes::ZERO,
            app_rate: None,
        }
    }

    /// Sends one packet if window and pacing allow it now.
    pub fn send(&mut self, now: Time) -> Option<(SentPacket, Rider)> {
        if self.controller.next_timer().is_some_and(|timer| timer <= now) {
            self.controller.on_timer(now);
        }
        let control = self.controller.control();
        assert!(control.cwnd >= MSS, "a window below one packet stops a flow for ever");
        assert!(control.pacing_rate != Some(Rate::ZERO), "so does a rate of zero");
        if now < self.next_send || self.inflight + MSS > control.cwnd {
            return None;
        }
        if self.outstanding.is_empty() {
            self.first_sent = now;
            self.delivered_time = now;
        }
        let rate = match (control.pacing_rate, self.app_rate) {
            (Some(pace), Some(app)) => Some(pace.min(app)),
            (pace, app) => pace.or(app),
        };
        self.inflight += MSS;
        let packet =
            SentPacket { number: self.next_number, bytes: MSS, sent: now, inflight_at_send: self.inflight };
        if self.app_rate.is_some_and(|app| rate == Some(app)) {
            self.limited_until = self.delivered + self.inflight;
        }
        let app_limited = self.limited_until > self.delivered;
        self.next_number += 1;
        if let Some(rate) = rate {
            self.next_send = self.next_send.max(now - Duration::from_millis(1)) + rate.time_for(MSS);
        }
        self.outstanding.push_back(Outstanding {
            packet,
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent: self.first_sent,
            app_limited,
        });
        let rider = self.controller.header();
        self.controller.on_sent(&Sent {
            now,
            number: packet.number,
            bytes: MSS,
            inflight: self.inflight,
            app_limited,
        });
        Some((packet, rider))
    }

    /// Takes in the acknowledgement of one packet; older ones still outstanding are lost (the path keeps order).
    pub fn ack(&mut self, now: Time, number: u64, feedback: &[u8]) {
        let prior_inflight = self.inflight;
        let mut lost = Vec::new();
        let acked = loop {
            let Some(first) = self.outstanding.pop_front() else { return };
            self.inflight -= MSS;
            if first.packet.number >= number {
                break first;
            }
            lost.push(first.packet);
        };
        if !lost.is_empty() {
            let bytes: Bytes = lost.iter().map(|packet| packet.bytes).sum();
            self.lost += bytes;
            self.controller.on_loss(&Loss {
                now,
                packets: &lost,
                lost: bytes,
                prior_inflight,
                inflight: self.inflight,
                next_number: self.next_number,
                cause: LossCause::Threshold,
            });
        }
        self.delivered += MSS;
        self.delivered_time = now;
        self.first_sent = acked.packet.sent;
        let rtt = self.update_rtt(now - acked.packet.sent);
        let interval = (acked.packet.sent - acked.first_sent).max(now - acked.delivered_time);
        let newly = self.delivered - acked.delivered;
        let rate = (interval >= rtt.min).then(|| Rate::from_bytes_per(newly, interval));
        self.controller.on_ack(&Ack {
            now,
            packets: &[acked.packet],
            acked: MSS,
            prior_inflight,
            inflight: self.inflight,
            next_number: self.next_number,
            rtt,
            rate: RateSample {
                rate,
                delivered: self.delivered,
                prior_delivered: acked.delivered,
                interval,
                app_limited: acked.app_limited,
                tx_in_flight: acked.packet.inflight_at_send,
                lost: Bytes::ZERO,
            },
            cwnd_limited: false,
            feedback,
        });
    }

    /// Bytes acknowledged so far.
    pub fn delivered(&self) -> Bytes {
        self.delivered
    }

    fn update_rtt(&mut self, latest: Duration) -> Rtt {
        let rtt = match self.rtt {
            None => Rtt { latest: Some(latest), smoothed: latest, variation: latest / 2, min: latest },
            Some(rtt) => Rtt {
                latest: Some(latest),
                smoothed: (rtt.smoothed * 7 + latest) / 8,
                variation: (rtt.variation * 3 + latest.abs_diff(rtt.smoothed)) / 4,
                min: rtt.min.min(latest),
            },
        };
        self.rtt = Some(rtt);
        rtt
    }
}
