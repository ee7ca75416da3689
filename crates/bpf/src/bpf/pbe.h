/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * PBE-CC's sender in integer arithmetic: the C port of crates/cc/src/pbe/sender.rs, which documents the reason of each
 * rule.
 *
 *  Start ──3 RTTs──▶ Wireless ──bottleneck bit──▶ Drain ──1 RTprop──▶ Internet
 *    ▲                │    ▲                                             │
 *    └─new carrier────┘    └─────────────────bottleneck bit gone─────────┘
 *  any ──no fresh telemetry for some RTTs──▶ Fallback ──telemetry──▶ Start
 *  Start, Wireless ──less delivered than reported──▶ Check ──the report was false──▶ Held
 *
 * Source: PBE-CC §4; PBE-CC §5
 *
 * Differs from the Rust controller: `delay_drain` is absent. This option is off by default.
 */
#ifndef AIRPACE_PBE_H
#define AIRPACE_PBE_H

#include "bbr.h"
#include "pbe_buffer.h"
#include "pbe_guard.h"

AP_FN ap_u64 pbe_floor(const struct pbe *p)
{
	return PBE_MIN_PACKETS * p->mss;
}

AP_FN int pbe_is_steered_by_bbr(const struct pbe *p)
{
	return p->phase == PBE_INTERNET || p->phase == PBE_FALLBACK || p->phase == PBE_HELD;
}

/* BBR's window and pacing rate. */
AP_FN ap_u64 pbe_bbr_cwnd(const struct pbe *p)
{
	return ap_max(p->bbr.cwnd, p->bbr.mss);
}

AP_FN ap_u64 pbe_bbr_pacing(const struct pbe *p)
{
	return ap_max(p->bbr.pacing, ibbr_least_rate(&p->bbr));
}

/* The bytes that `rate` carries in RTprop + `slack`, times `num / den`; AP_NONE before RTprop is known. */
AP_FN ap_u64 pbe_bdp(const struct pbe *p, ap_u64 rate, ap_u64 slack, ap_u64 num, ap_u64 den)
{
	if (p->bbr.rtprop == AP_NONE)
		return AP_NONE;
	return ap_scaled(ap_min(ap_bytes_in(rate, p->bbr.rtprop + slack), AP_MAX_BYTES), num, den);
}

AP_FN ap_u64 pbe_or_zero(ap_u64 rate)
{
	return rate == AP_NONE ? 0 : rate;
}

AP_FN ap_u64 pbe_start_goal(const struct pbe *p)
{
	return ap_max(pbe_or_zero(p->fed.fair_share), p->ramp_from);
}

AP_FN void pbe_start(struct pbe *p, ap_u64 from, ap_u64 began, ap_u64 smoothed)
{
	p->phase = PBE_START;
	p->ramp_from = from;
	p->ramp_began = began;
	p->ramp_span = ap_min(smoothed, AP_MAX_SPAN) * PBE_RAMP_ROUND_TRIPS;
}

/* The rate of the linear start at `now`. */
AP_FN ap_u64 pbe_ramp(const struct pbe *p, ap_u64 now)
{
	ap_u64 goal = pbe_start_goal(p), span, part;

	if (p->ramp_began == AP_NONE)
		return ap_max(p->ramp_from, PBE_FIRST_RATE);
	/* The span is kept below 2^35, in ns or in units of 128 ns, so that a fraction with 28 bits fits into 64 bits. */
	span = ap_max(p->ramp_span, AP_US);
	part = ap_min(ap_less(now, p->ramp_began), span);
	if (span >= 1ULL << 35) {
		span >>= 7;
		part >>= 7;
	}
	part = (part << 28) / span;
	return ap_max(p->ramp_from + (((goal - p->ramp_from) * part + (1 << 27)) >> 28), ap_min(PBE_FIRST_RATE, goal));
}

/* cwnd = C * (RTprop + slack) + bytes acknowledged in one ACK bunch + packets */
AP_FN ap_u64 pbe_wireless_window(const struct pbe *p)
{
	ap_u64 window = AP_NONE, slack = p->tuning.slack;

	if (slack == AP_NONE)
		slack = p->fed.radio_delay;
	if (slack == AP_NONE)
		slack = p->tuning.unmeasured;
	if (p->fed.is_told)
		window = pbe_bdp(p, p->phase == PBE_START ? pbe_start_goal(p) : p->rate, slack + p->buffer.target, 1, 1);
	if (window == AP_NONE)
		window = PBE_INITIAL_PACKETS * p->mss;
	else
		window += (p->tuning.bunching ? ibbr_extra(&p->bbr) : 0) + p->tuning.packets * p->mss;
	return ap_min(ap_max(window, pbe_floor(p)), AP_MAX_BYTES);
}

AP_FN void pbe_drain_control(struct pbe *p)
{
	ap_u64 cwnd = pbe_bbr_cwnd(p), recent = ibbr_btlbw(&p->bbr), bdp;

	if (p->tuning.btlbw_reset && p->delivery_rate) {
		recent = ap_min(recent, p->delivery_rate);
		bdp = pbe_bdp(p, recent, p->tuning.unmeasured, p->tuning.window, IBBR_UNIT);
		if (bdp != AP_NONE)
			cwnd = ap_min(cwnd, ap_max(bdp, pbe_floor(p)));
	}
	p->cwnd = cwnd;
	p->pacing = ap_scaled(recent, 1, 2);
}

AP_FN void pbe_check_control(struct pbe *p)
{
	ap_u64 bdp = pbe_bdp(p, p->guard.found, 0, 3, 4);

	p->cwnd = ap_max(pbe_or_zero(bdp), pbe_floor(p));
	p->pacing = ap_scaled(p->guard.found, 9, 10);
}

AP_FN void pbe_control(struct pbe *p)
{
	if (pbe_is_steered_by_bbr(p))
		return;
	if (p->phase == PBE_DRAIN) {
		pbe_drain_control(p);
	} else if (p->phase == PBE_CHECK) {
		pbe_check_control(p);
	} else if (p->silenced) {
		p->cwnd = pbe_floor(p);
		p->pacing = PBE_FIRST_RATE;
	} else {
		p->cwnd = pbe_wireless_window(p);
		p->pacing = p->rate;
	}
	/* The rate is at least one packet per 100 ms, so that the receiver continues to send feedback. */
	p->pacing = ap_max(p->pacing, p->mss * 8 * 10);
}

/* Updates the decision between two ACKs. */
AP_CALL int pbe_update_control(struct pbe *p)
{
	if (p)
		pbe_control(p);
	return 0;
}

AP_FN void pbe_update_rate(struct pbe *p, ap_u64 now)
{
	if (!p->fed.is_told)
		return;
	if (p->phase == PBE_START)
		p->rate = pbe_ramp(p, now);
	else if (p->phase == PBE_WIRELESS)
		p->rate = pbe_buffer_fill(&p->buffer, pbe_or_zero(p->fed.capacity));
}

AP_FN void pbe_init(struct pbe *p, const struct ap_pbe_tuning *t, ap_u64 mss)
{
	p->tuning = *t;
	p->mss = mss;
	ibbr_init(&p->bbr, mss);
	p->bbr.tuning.window = t->window;
	p->bbr.tuning.sent = t->sent;
	p->bbr.tuning.slack = t->unmeasured;
	p->bbr.tuning.is_sliding = 1;
	p->bbr.tuning.finds_policers = 0;
	pbe_guard_init(&p->guard);
	pbe_buffer_init(&p->buffer, t->buffer);
	p->fed.capacity = p->fed.fair_share = p->fed.radio_delay = AP_NONE;
	p->heard = p->ramp_began = AP_NONE;
	p->rate = p->ramp_from = PBE_FIRST_RATE;
	pbe_update_control(p);
}

AP_FN void pbe_remember(struct pbe *p, const struct pbe_fed *told)
{
	p->fed = *told;
	if (told->capacity != AP_NONE)
		p->fed.capacity = ap_min(told->capacity, AP_MAX_RATE);
	if (told->fair_share != AP_NONE)
		p->fed.fair_share = ap_min(told->fair_share, AP_MAX_RATE);
	if (told->radio_delay != AP_NONE)
		p->fed.radio_delay = ap_min(told->radio_delay, AP_SECOND);
}

/* Returns control of the flow from BBR to the receiver's feedback. */
AP_FN void pbe_resume(struct pbe *p, const struct ibbr_ack *a)
{
	pbe_start(p, ap_min(pbe_bbr_pacing(p), ibbr_bandwidth(&p->bbr)), a->now, a->smoothed);
}

/* Ends the drain. BtlBw becomes the recent delivery rate. */
AP_FN void pbe_enter_internet(struct pbe *p, ap_u64 now)
{
	if (p->tuning.btlbw_reset && p->delivery_rate)
		ibbr_enter_probe_bw(&p->bbr, now, p->delivery_rate);
	ibbr_restart_cycle(&p->bbr, now);
	p->phase = PBE_INTERNET;
}

AP_FN void pbe_fall_back(struct pbe *p, ap_u64 now)
{
	/*
	 * After a start without any feedback, BBR continues with its own start. After any later phase, BBR's model is
	 * valid.
	 */
	if (p->phase != PBE_START)
		ibbr_enter_probe_bw(&p->bbr, now, AP_NONE);
	ibbr_forget_probe(&p->bbr);
	p->phase = PBE_FALLBACK;
}

/* Processes fresh feedback. */
AP_FN void pbe_obey(struct pbe *p, const struct pbe_ack *a, const struct pbe_fed *told)
{
	ap_u64 now = a->bbr.now, reported;
	int activated;

	activated = p->fed.is_told && p->fed.activations != told->activations;
	pbe_remember(p, told);
	p->heard = now;
	if (p->phase == PBE_START && p->ramp_began == AP_NONE) {
		pbe_start(p, 0, a->oldest_sent, a->bbr.smoothed);
	} else if (p->phase == PBE_FALLBACK) {
		pbe_resume(p, &a->bbr);
	} else if (told->internet && (p->phase == PBE_START || p->phase == PBE_WIRELESS || p->phase == PBE_CHECK)) {
		ibbr_enter_probe_bw(&p->bbr, now, AP_NONE);
		p->drain_until = now + (p->bbr.rtprop == AP_NONE ? a->least : p->bbr.rtprop);
		p->phase = PBE_DRAIN;
	} else if (p->phase == PBE_START && ap_less(now, p->ramp_began) >= p->ramp_span) {
		p->phase = PBE_WIRELESS;
	} else if (p->phase == PBE_WIRELESS && activated) {
		pbe_start(p, p->tuning.from_zero ? 0 : p->rate, now, a->bbr.smoothed);
	} else if (p->phase == PBE_DRAIN && now >= p->drain_until) {
		pbe_enter_internet(p, now);
	} else if (p->phase == PBE_INTERNET && !told->internet) {
		p->phase = PBE_WIRELESS;
	} else if (p->phase == PBE_HELD) {
		/*
		 * If the receiver reports a bottleneck in the Internet, its reported capacity is not used, so it cannot
		 * be too high.
		 */
		reported = told->internet ? 0 : pbe_or_zero(p->fed.capacity);
		if (pbe_guard_held(&p->guard, now, reported, ibbr_btlbw(&p->bbr)))
			pbe_resume(p, &a->bbr);
	}
}

/*
 * Limits the last reported capacity to the delivery rate of the path, because the receiver gets no radio reports at
 * present.
 */
AP_FN void pbe_doubt_capacity(struct pbe *p)
{
	ap_u64 delivered = ibbr_btlbw(&p->bbr);

	if (p->phase == PBE_WIRELESS && p->fed.capacity != AP_NONE && delivered)
		p->fed.capacity = ap_min(p->fed.capacity, delivered);
}

/* Compares the receiver's reports with the delivery rate. */
AP_FN void pbe_watch(struct pbe *p, const struct pbe_ack *a, int round_start)
{
	ap_u64 reported = pbe_or_zero(p->fed.capacity);
	int verdict;

	if (p->phase != PBE_START && p->phase != PBE_WIRELESS && p->phase != PBE_CHECK) {
		pbe_guard_interrupt(&p->guard);
		return;
	}
	if (p->bbr.rtprop == AP_NONE)
		return;
	pbe_buffer_ack(&p->buffer, p->tuning.buffer, round_start, reported, a->bbr.rtt, p->bbr.rtprop);
	if (!p->tuning.guard)
		return;
	if (p->phase == PBE_START)
		reported = p->rate;
	verdict = pbe_guard_ack(&p->guard, &a->bbr, round_start, p->bbr.rtprop, reported);
	if (verdict == PBE_DO_CHECK) {
		p->phase = PBE_CHECK;
	} else if (verdict == PBE_RELEASE) {
		p->phase = PBE_WIRELESS;
	} else if (verdict == PBE_FLAG && p->phase == PBE_CHECK) {
		ibbr_enter_probe_bw(&p->bbr, a->bbr.now, p->guard.found);
		ibbr_forget_probe(&p->bbr);
		p->phase = PBE_HELD;
	}
}

/* Sets the limits of bandwidth probes from the receiver's report. */
AP_FN void pbe_update_probe(struct pbe *p)
{
	int is_fast = p->fed.clear && p->tuning.probe_gain > IBBR_PROBE;

	if (!p->fed.is_told)
		return;
	p->bbr.probe.gain = is_fast ? p->tuning.probe_gain : IBBR_PROBE;
	p->bbr.probe.cap = p->fed.fair_share;
	p->bbr.probe.while_growing = is_fast;
}

/*
 * Passes an ACK to BBR, which may be active or only observe. If BBR only observes, returns whether the ACK starts a
 * round.
 */
AP_FN int pbe_tell_bbr(struct pbe *p, const struct ibbr_ack *a)
{
	if (p->phase == PBE_INTERNET)
		pbe_update_probe(p);
	if (!pbe_is_steered_by_bbr(p))
		return ibbr_observe(&p->bbr, a, p->rate) & IBBR_ROUND;
	ibbr_on_ack(&p->bbr, a);
	return 0;
}

AP_FN int pbe_is_lost(const struct pbe *p, const struct ibbr_ack *a, const struct pbe_fed *told)
{
	ap_u64 longest = ap_min(a->smoothed, AP_MAX_SPAN) * PBE_FALLBACK_ROUND_TRIPS;

	if (p->phase == PBE_FALLBACK || p->phase == PBE_HELD)
		return 0;
	/* Between two carriers there is a short time without telemetry, which does not cause the fallback. */
	if (p->fed.is_told && told->is_told && !told->fresh && told->carriers > 0)
		return 1;
	return p->heard != AP_NONE && ap_less(a->now, p->heard) > longest;
}

/*
 * Processes an ACK of new packets, and the feedback on it. The caller must have reported the losses that the ACK
 * reveals before this call.
 */
AP_FN void pbe_on_ack(struct pbe *p, const struct pbe_ack *a, const struct pbe_fed *told)
{
	int round_start;

	p->silenced = 0;
	if (p->heard == AP_NONE)
		p->heard = a->bbr.now;
	if (a->bbr.rate != AP_NONE)
		p->delivery_rate = ap_min(a->bbr.rate, AP_MAX_RATE);
	round_start = pbe_tell_bbr(p, &a->bbr);
	if (told->is_told && told->fresh)
		pbe_obey(p, a, told);
	else if (pbe_is_lost(p, &a->bbr, told))
		pbe_fall_back(p, a->bbr.now);
	else if (told->is_told)
		pbe_doubt_capacity(p);
	pbe_update_rate(p, a->bbr.now);
	pbe_watch(p, a, round_start);
	pbe_control(p);
}

/* Processes feedback on a packet that acknowledges no data: the request of a download carries it. */
AP_FN void pbe_on_feedback(struct pbe *p, ap_u64 now, const struct pbe_fed *told)
{
	if (!told->is_told || !told->fresh || !p->tuning.request_start)
		return;
	pbe_remember(p, told);
	if (p->phase == PBE_START && p->ramp_began == AP_NONE)
		p->ramp_from = p->fed.fair_share == AP_NONE ? PBE_FIRST_RATE : p->fed.fair_share;
	pbe_update_rate(p, now);
	pbe_update_control(p);
}

/* Processes losses; see ibbr_on_loss. */
AP_FN void pbe_on_loss(struct pbe *p, ap_u64 lost, int is_silence, ap_u64 recovered)
{
	ibbr_on_loss(&p->bbr, lost, is_silence, recovered);
	p->silenced |= !!is_silence;
	pbe_update_control(p);
}

/* Called between two ACKs, because the rate of the linear start increases with time. */
AP_FN void pbe_before_send(struct pbe *p, ap_u64 now)
{
	pbe_update_rate(p, now);
	pbe_update_control(p);
}

#endif
