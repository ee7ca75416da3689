//! The state machine: the changes of the model per ACK, and the transitions between states.
//!
//! Source: draft-ietf-ccwg-bbr-06 §5.2.3, §5.3

use airpace_core::{Bytes, Rate, Time};

use super::bounds::BETA;
use super::cycle::AckPhase;
use super::min_rtt::Step;
use super::sample::Sample;
use super::signals::is_too_lossy;
use super::{Bbr3, State};
use crate::controller::Ack;

impl Bbr3 {
    /// Source: draft-ietf-ccwg-bbr-06 §5.2.3 (`UpdateModelAndState`)
    pub(super) fn update_model_and_state(&mut self, ack: &Ack<'_>, sample: &Sample, was_recovering: bool) {
        self.signals.on_ack(sample);
        self.update_congestion_signals(ack, sample);
        let was_full = self.full_pipe.ever();
        let (cwnd, round) = (self.window.cwnd(), self.rounds.count());
        self.aggregation.on_ack(ack.now, ack.acked, self.bw, cwnd, round, was_full);
        if self.rounds.started() {
            self.full_pipe.on_round(sample);
        }
        self.check_startup_done(sample, was_recovering);
        self.check_drain_done(ack);
        if self.full_pipe.ever() {
            self.update_cycle(ack, sample);
        }
        self.min_rtt.on_ack(ack.now, ack.rtt.latest);
        self.check_probe_rtt(ack);
        self.signals.advance(sample);
        self.bound_bw();
    }

    /// Source: draft-ietf-ccwg-bbr-06 §5.5.5, §5.5.10.3 (`UpdateCongestionSignals`)
    fn update_congestion_signals(&mut self, ack: &Ack<'_>, sample: &Sample) {
        if self.rounds.on_ack(sample) {
            self.cycle.on_round();
            if let Some(marks) = &mut self.marks {
                marks.on_round(sample.total, self.mss);
            }
        }
        let limited = ack.cwnd_limited || ack.prior_inflight + self.mss > self.window.cwnd();
        self.cwnd_limited.on_ack(limited, self.rounds.started());
        self.max_bw.on_sample(sample);
        if !self.signals.round_ends() {
            return;
        }
        if !self.state.is_accelerating() {
            self.adapt_shortterm_bounds();
        }
        self.signals.forget_congestion();
    }

    /// Updates the bounds once per round outside of a probe. Marks and losses start from the same bounds, and the lower
    /// result is used.
    ///
    /// Source: draft-ietf-ccwg-bbr-06 §5.5.10.3; google/bbr v3 (`bbr_adapt_lower_bounds`)
    fn adapt_shortterm_bounds(&mut self) {
        let cwnd = self.window.cwnd();
        let mut marked = self.bounds;
        if let (Some(marks), true) = (&self.marks, self.signals.marks_in_round()) {
            marked.on_marked_round(marks.kept(), cwnd);
        }
        if self.signals.loss_in_round() {
            self.bounds.on_lossy_round(&self.signals, self.max_bw.get(), cwnd);
        }
        let both = [self.bounds.inflight_shortterm, marked.inflight_shortterm];
        self.bounds.inflight_shortterm = both.into_iter().flatten().min();
    }

    /// Source: draft-ietf-ccwg-bbr-06 §5.3.1
    fn check_startup_done(&mut self, sample: &Sample, was_recovering: bool) {
        if self.state != State::Startup {
            return;
        }
        let lossy = self.signals.round_ends() && self.startup.on_round(sample, was_recovering);
        let marked = self.marks.is_some_and(|marks| marks.ends_startup());
        if (lossy || marked) && !self.full_pipe.ever() {
            self.undo.state = Some(State::Startup);
            self.full_pipe.assume(true);
            let bdp = self.bdp(self.max_bw.get(), 1.0);
            self.bounds.inflight_longterm = Some(bdp.max(self.signals.inflight_latest()));
        }
        if self.full_pipe.ever() {
            self.state = State::Drain { since_round: self.rounds.count() };
        }
    }

    /// Source: draft-ietf-ccwg-bbr-06 §5.3.2
    fn check_drain_done(&mut self, ack: &Ack<'_>) {
        let State::Drain { since_round } = self.state else { return };
        let patience = self.profile.drain_rounds;
        let too_long = patience.is_some_and(|most| self.rounds.count() > since_round + most);
        if too_long || ack.inflight <= self.inflight(self.bw, 1.0) {
            self.start_down(ack.now);
        }
    }

    /// Source: draft-ietf-ccwg-bbr-06 §5.3.3.9 (`UpdateProbeBWCyclePhase`)
    fn update_cycle(&mut self, ack: &Ack<'_>, sample: &Sample) {
        if self.adapt_longterm_model(ack.now, sample) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise => {
                if self.cycle.is_time_to_probe(ack.now, self.target_inflight(), self.mss) {
                    self.start_refill();
                } else if state == State::Down && self.is_time_to_cruise(ack) {
                    self.start_cruise();
                }
            }
            State::Refill if self.rounds.started() => {
                self.cycle.is_probe_sample = true;
                self.start_up(sample.rate);
            }
            State::Up if self.is_time_to_go_down(ack, sample) => {
                self.cycle.prev_probe_too_high = false;
                self.start_down(ack.now);
            }
            _ => {}
        }
    }

    /// Tracks the ACKs of the probe. Returns whether the flow starts to refill at once.
    ///
    /// Source: draft-ietf-ccwg-bbr-06 §5.3.3.9 (`AdaptLongTermModel`)
    fn adapt_longterm_model(&mut self, now: Time, sample: &Sample) -> bool {
        match self.cycle.ack_phase {
            AckPhase::ProbeStarting if self.rounds.started() => {
                self.cycle.ack_phase = AckPhase::ProbeFeedback
            }
            AckPhase::ProbeStopping if self.rounds.started() => {
                self.cycle.is_probe_sample = false;
                self.cycle.ack_phase = AckPhase::Init;
                if self.state.is_probe_bw() {
                    if !sample.app_limited {
                        self.max_bw.advance();
                    }
                    if self.cycle.prev_probe_precautionary && !self.cycle.prev_probe_too_high {
                        self.start_refill();
                        return true;
                    }
                }
            }
            _ => {}
        }
        let lossy = is_too_lossy(sample.lost, sample.tx_in_flight);
        let marked = self.marks.is_some_and(|marks| marks.are_too_many(sample, self.mss));
        if lossy || marked {
            if self.cycle.is_probe_sample && (marked || self.profile.samples_end_probes) {
                self.inflight_too_high(now, sample.tx_in_flight, sample.app_limited);
            }
        } else if let Some(longterm) = self.bounds.inflight_longterm {
            let mut longterm = longterm.max(sample.tx_in_flight);
            if self.state == State::Up && self.is_limited_by_longterm(longterm) {
                longterm += Bytes(self.growth.on_acked(sample.newly_acked) * self.mss.0);
                if self.rounds.started() {
                    self.growth.raise(self.window.cwnd(), self.mss);
                }
            }
            self.bounds.inflight_longterm = Some(longterm);
        }
        false
    }

    /// A probe had too many losses or marks. `tx_in_flight` is the amount in flight that the path can carry.
    ///
    /// Source: draft-ietf-ccwg-bbr-06 §5.5.10.2 (`HandleInflightTooHigh`)
    pub(super) fn inflight_too_high(&mut self, now: Time, tx_in_flight: Bytes, app_limited: bool) {
        self.cycle.prev_probe_too_high = true;
        self.cycle.is_probe_sample = false;
        if !app_limited {
            let least = self.target_inflight().scaled(BETA);
            self.bounds.inflight_longterm = Some(tx_in_flight.max(least));
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now);
        }
    }

    /// Source: draft-ietf-ccwg-bbr-06 §5.3.3.9 (`IsTimeToCruise`)
    fn is_time_to_cruise(&self, ack: &Ack<'_>) -> bool {
        let headroom = self.bounds.with_headroom(self.mss, self.window.floor());
        headroom.is_none_or(|most| ack.inflight <= most)
            && ack.inflight <= self.inflight(self.max_bw.get(), 1.0)
    }

    /// Source: draft-ietf-ccwg-bbr-06 §5.3.3.7, §5.3.3.9 (`IsTimeToGoDown`)
    ///
    /// Differs: the bound is reached if one more packet would not fit below it. Bounds are bytes here, and packets in
    /// the draft.
    fn is_time_to_go_down(&mut self, ack: &Ack<'_>, sample: &Sample) -> bool {
        let Some(longterm) = self.bounds.inflight_longterm else { return self.full_pipe.now() };
        if self.precaution && self.cycle.prev_probe_too_high && ack.prior_inflight + self.mss > longterm {
            self.cycle.prev_probe_precautionary = true;
            return true;
        }
        if self.is_limited_by_longterm(longterm) {
            self.full_pipe.look_again(sample.rate);
            return false;
        }
        self.full_pipe.now()
    }

    fn is_limited_by_longterm(&self, longterm: Bytes) -> bool {
        self.cwnd_limited.get() && self.window.cwnd() >= longterm
    }

    fn start_down(&mut self, now: Time) {
        self.signals.reset();
        self.growth.stop();
        self.cycle.begin(now, &mut self.rng);
        self.rounds.restart(self.delivered);
        self.state = State::Down;
    }

    fn start_cruise(&mut self) {
        self.state = State::Cruise;
    }

    pub(super) fn start_refill(&mut self) {
        self.bounds.reset_shortterm();
        self.growth.prepare();
        self.cycle.prev_probe_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.rounds.restart(self.delivered);
        self.state = State::Refill;
    }

    fn start_up(&mut self, rate: Rate) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.rounds.restart(self.delivered);
        self.full_pipe.look_again(rate);
        self.state = State::Up;
        self.growth.raise(self.window.cwnd(), self.mss);
    }

    /// Source: draft-ietf-ccwg-bbr-06 §5.3.4.3
    fn check_probe_rtt(&mut self, ack: &Ack<'_>) {
        if self.state != State::ProbeRtt && self.min_rtt.is_due() && !self.restarting_from_idle {
            self.window.save(false);
            self.state = State::ProbeRtt;
            self.min_rtt.begin(ack.now);
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.rounds.restart(self.delivered);
        }
        if self.state == State::ProbeRtt {
            let drained = ack.inflight <= self.probe_rtt_cwnd();
            let pipe = self.delivered + ack.inflight;
            match self.min_rtt.step(ack.now, self.rounds.started(), drained, pipe) {
                Step::Wait => {}
                Step::Hold => self.rounds.restart(self.delivered),
                Step::Done => self.leave_probe_rtt(ack.now),
            }
        }
        self.restarting_from_idle = false;
    }

    /// Source: draft-ietf-ccwg-bbr-06 §5.3.4.4
    pub(super) fn leave_probe_rtt(&mut self, now: Time) {
        self.window.restore();
        self.bounds.reset_shortterm();
        if self.full_pipe.ever() {
            self.start_down(now);
            self.start_cruise();
        } else {
            self.state = State::Startup;
        }
    }

    fn bound_bw(&mut self) {
        let max_bw = self.max_bw.get();
        self.bw = self.bounds.bw_shortterm.map_or(max_bw, |bound| max_bw.min(bound));
    }
}
