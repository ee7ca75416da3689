/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * BBR version 1 in integer arithmetic: the C port of crates/cc/src/bbr.rs. With Linux's constants it controls flows if
 * the kernel's own BBR cannot be called: for example before Linux 6.4, where BBR is a module that may not be loaded.
 * pbe.h uses this file with its own constants.
 *
 *  Startup ──pipe full──▶ Drain ──queue gone──▶ ProbeBW ◀──▶ ProbeRTT (RTprop not renewed for 10 s)
 *
 * Source: Linux net/ipv4/tcp_bbr.c
 *
 * Differs from the Rust controller: the caller draws the start phase of a cycle, because the kernel has a random number
 * generator and this file has none.
 */
#ifndef AIRPACE_BBR_H
#define AIRPACE_BBR_H

#include "bbr_state.h"

AP_FN ap_u64 ibbr_floor(const struct ibbr *b)
{
	return IBBR_MIN_PACKETS * b->mss;
}

AP_FN ap_u64 ibbr_least_rate(const struct ibbr *b)
{
	return ap_rate_of(b->mss, 10 * AP_SECOND);
}

AP_FN ap_u64 ibbr_btlbw(const struct ibbr *b)
{
	return b->btlbw.seen ? b->btlbw.value[0] : 0;
}

/* The bandwidth used for pacing: BtlBw, or the policer's rate. */
AP_FN ap_u64 ibbr_bandwidth(const struct ibbr *b)
{
	return b->lt_obeyed != AP_NONE ? b->lt_rate : ibbr_btlbw(b);
}

AP_FN int ibbr_is_probing(const struct ibbr *b)
{
	return b->state == IBBR_PROBE_BW && b->phase == 0;
}

AP_FN void ibbr_forget_policer(struct ibbr *b)
{
	b->lt_since = b->lt_rate = b->lt_obeyed = AP_NONE;
}

AP_FN void ibbr_forget_probe(struct ibbr *b)
{
	b->probe.gain = IBBR_PROBE;
	b->probe.cap = AP_NONE;
	b->probe.while_growing = 0;
}

AP_FN void ibbr_init(struct ibbr *b, ap_u64 mss)
{
	b->tuning.window = IBBR_WINDOW;
	b->tuning.sent = IBBR_SENT;
	b->tuning.finds_policers = 1;
	ibbr_forget_probe(b);
	b->mss = mss;
	b->cwnd = b->prior_cwnd = IBBR_INITIAL_PACKETS * mss;
	b->pacing = ap_scaled(ap_rate_of(b->cwnd, AP_MS), IBBR_HIGH, IBBR_UNIT);
	b->probe_until = b->rtprop = b->recovery_end = AP_NONE;
	ibbr_forget_policer(b);
}

AP_FN void ibbr_restart_cycle(struct ibbr *b, ap_u64 now)
{
	b->state = IBBR_PROBE_BW;
	b->phase = b->random % (IBBR_PHASES - 1);
	b->phase += b->phase > 0;
	b->random /= IBBR_PHASES - 1;
	b->phase_since = now;
	b->draws++;
}

/*
 * Takes over from another controller with the path values that the other controller measured. If the path is known to
 * be full, BBR drains the path first.
 */
AP_FN void ibbr_take_over(struct ibbr *b, ap_u64 now, ap_u64 btlbw, ap_u64 rtprop, ap_u64 cwnd, int is_full)
{
	if (btlbw)
		ap_window_all(&b->btlbw, b->rounds, btlbw);
	b->rtprop = rtprop;
	b->rtprop_at = now;
	b->is_full = is_full;
	b->state = is_full ? IBBR_DRAIN : IBBR_STARTUP;
	b->has_seen_rtt = rtprop != AP_NONE;
	b->cwnd = b->prior_cwnd = ap_max(cwnd, ibbr_floor(b));
	b->recovery_end = AP_NONE;
	b->conserving = b->recovery_began = 0;
	b->epoch = now;
	b->epoch_acked = 0;
}

/* The window gain in units of 1/IBBR_UNIT. */
AP_FN ap_u64 ibbr_window_gain(const struct ibbr *b)
{
	if (b->state == IBBR_PROBE_RTT)
		return IBBR_UNIT;
	return b->state == IBBR_PROBE_BW ? b->tuning.window : IBBR_HIGH;
}

/* Number of packets that the sender releases at once: the packets of one millisecond. */
AP_FN ap_u64 ibbr_quantum(const struct ibbr *b)
{
	ap_u64 least = b->pacing < 1200000 ? 1 : 2, most = ap_max(65536 / b->mss, least);

	return ap_min(ap_max(ap_bytes_in(b->pacing, AP_MS) / b->mss, least), most);
}

/* Adds three bursts of the sender, rounds up to an even number of packets, and adds two packets while probing. */
AP_FN ap_u64 ibbr_with_quanta(const struct ibbr *b, ap_u64 bytes)
{
	ap_u64 packets = (bytes + b->mss - 1) / b->mss + 3 * ibbr_quantum(b);

	return (packets + (packets & 1) + (ibbr_is_probing(b) ? 2 : 0)) * b->mss;
}

AP_FN ap_u64 ibbr_inflight_at(const struct ibbr *b, ap_u64 rate)
{
	return ibbr_with_quanta(b, b->rtprop == AP_NONE ? 0 : ap_bytes_in(rate, b->rtprop));
}

AP_FN ap_u64 ibbr_extra(const struct ibbr *b)
{
	return ap_min(ap_max(b->buckets[0], b->buckets[1]), ap_bytes_in(ibbr_bandwidth(b), IBBR_EXTRA_CAP));
}

AP_FN ap_u64 ibbr_target(const struct ibbr *b)
{
	ap_u64 bdp = IBBR_INITIAL_PACKETS * b->mss;

	if (b->rtprop != AP_NONE) {
		bdp = b->rtprop;
		if (b->state == IBBR_PROBE_BW)
			bdp += ap_min(b->tuning.slack, IBBR_SLACK_RTPROPS * b->rtprop);
		bdp = ap_min(ap_bytes_in(ibbr_bandwidth(b), bdp), AP_MAX_BYTES);
		bdp = ap_scaled(bdp, ibbr_window_gain(b), IBBR_UNIT);
	}
	return ibbr_with_quanta(b, bdp + (b->is_full ? ibbr_extra(b) : 0));
}

AP_FN ap_u64 ibbr_paced(const struct ibbr *b, ap_u64 rate, ap_u64 num, ap_u64 den)
{
	return ap_max(ap_scaled(rate, num * b->tuning.sent, den * IBBR_UNIT), ibbr_least_rate(b));
}

/* The rate of a bandwidth probe. */
AP_FN ap_u64 ibbr_probe_rate(const struct ibbr *b)
{
	return ap_min(ap_scaled(ibbr_btlbw(b), b->probe.gain, IBBR_UNIT), b->probe.cap);
}

/* Takes over from another controller, directly in ProbeBW. `recent`, if not AP_NONE, replaces all samples of BtlBw. */
AP_CALL int ibbr_enter_probe_bw(struct ibbr *b, ap_u64 now, ap_u64 recent)
{
	if (!b)
		return 0;
	if (recent != AP_NONE)
		ap_window_all(&b->btlbw, b->rounds, recent);
	ibbr_forget_policer(b);
	b->buckets[0] = b->buckets[1] = b->bucket = b->bucket_rounds = 0;
	b->epoch = now;
	b->epoch_acked = 0;
	b->is_full = b->has_seen_rtt = 1;
	ibbr_restart_cycle(b, now);
	b->pacing = ibbr_paced(b, ibbr_bandwidth(b), 1, 1);
	b->cwnd = b->prior_cwnd = ap_min(ap_max(ibbr_target(b), ibbr_floor(b)), AP_MAX_BYTES);
	return 0;
}

AP_FN void ibbr_save(struct ibbr *b, int untroubled)
{
	b->prior_cwnd = untroubled && b->recovery_end == AP_NONE ? b->cwnd : ap_max(b->prior_cwnd, b->cwnd);
}

AP_FN void ibbr_leave_probe_rtt(struct ibbr *b, ap_u64 now)
{
	b->rtt_probed = b->held_until = now;
	if (!b->tuning.is_sliding)
		b->rtprop_at = now;
	b->cwnd = ap_max(b->cwnd, b->prior_cwnd);
	if (b->is_full)
		ibbr_restart_cycle(b, now);
	else
		b->state = IBBR_STARTUP;
}

/*
 * Flags of an ACK in the model: bit 0, the ACK starts a round; bit 1, the application or ProbeRTT limited the sender;
 * bit 2, RTprop had expired.
 */
enum { IBBR_ROUND = 1, IBBR_LIMITED = 2, IBBR_EXPIRED = 4 };

/*
 * Updates the model with an ACK. `least`: the expected delivery rate if it is higher than BBR's bandwidth; `cwnd`: the
 * maximum number of bytes acknowledged at once.
 */
AP_FN int ibbr_learn(struct ibbr *b, const struct ibbr_ack *a, ap_u64 least, ap_u64 cwnd)
{
	ap_u64 expected;
	int seen;

	seen = a->prior_delivered >= b->next_round ? IBBR_ROUND : 0;
	if (seen) {
		b->rounds++;
		b->next_round = a->delivered;
	}
	if (a->app_limited || (a->newest_sent >= b->held_since && a->newest_sent < b->held_until))
		seen |= IBBR_LIMITED;
	if (a->rate != AP_NONE && (!(seen & IBBR_LIMITED) || a->rate >= ibbr_btlbw(b)))
		ap_window_update(&b->btlbw, b->rounds, ap_min(a->rate, AP_MAX_RATE), IBBR_BTLBW_ROUNDS, 1);
	if (b->rtprop != AP_NONE && ap_less(a->now, b->rtprop_at) > IBBR_RTPROP_WINDOW)
		seen |= IBBR_EXPIRED;
	if (b->tuning.is_sliding) {
		if (a->rtt != AP_NONE) {
			ap_window_update(&b->least, a->now, a->rtt, IBBR_RTPROP_WINDOW, 0);
			b->rtprop = b->least.value[0];
			b->rtprop_at = b->least.at[0];
		}
	} else if (a->rtt != AP_NONE && (seen & IBBR_EXPIRED || a->rtt < b->rtprop)) {
		b->rtprop = a->rtt;
		b->rtprop_at = a->now;
	}
	if (seen & IBBR_ROUND) {
		if (!b->recovery_began)
			b->conserving = 0;
		if (++b->bucket_rounds >= IBBR_EXTRA_ROUNDS) {
			b->bucket_rounds = 0;
			b->bucket = !b->bucket;
			b->buckets[b->bucket & 1] = 0;
		}
	}
	expected = ap_bytes_in(ap_max(ibbr_bandwidth(b), least), ap_less(a->now, b->epoch));
	if (b->epoch_acked <= expected || b->epoch_acked + a->acked >= IBBR_EPOCH_LIMIT) {
		b->epoch = a->now;
		b->epoch_acked = expected = 0;
	}
	b->epoch_acked += a->acked;
	expected = ap_min(ap_less(b->epoch_acked, expected), cwnd);
	b->buckets[b->bucket & 1] = ap_max(b->buckets[b->bucket & 1], expected);
	return seen;
}

AP_FN void ibbr_sample_policer(struct ibbr *b, const struct ibbr_ack *a)
{
	b->lt_since = a->now;
	b->lt_delivered = a->delivered;
	b->lt_lost = b->lost;
	b->lt_rounds = 0;
}

/* Evaluates a completed interval of the policer detection, in which packets were lost. */
AP_FN void ibbr_judge_policer(struct ibbr *b, const struct ibbr_ack *a)
{
	ap_u64 delivered = ap_less(a->delivered, b->lt_delivered), span = ap_less(a->now, b->lt_since);
	ap_u64 rate, apart;

	if (!delivered || ap_less(b->lost, b->lt_lost) < ap_scaled(delivered, 50, 256) || span < AP_MS)
		return;
	rate = ap_rate_of(delivered, span);
	if (b->lt_rate != AP_NONE) {
		apart = ap_max(rate, b->lt_rate) - ap_min(rate, b->lt_rate);
		if (apart <= (b->lt_rate + 4) / 8 || apart <= IBBR_LT_SAME_RATE) {
			b->lt_rate = (rate + b->lt_rate + 1) / 2;
			b->lt_obeyed = 0;
			return;
		}
	}
	b->lt_rate = rate;
	ibbr_sample_policer(b, a);
}

AP_CALL int ibbr_find_policer(struct ibbr *b, const struct ibbr_ack *a, int seen)
{
	int lossy;

	if (!b || !a)
		return 0;
	lossy = b->lost > b->lost_at_last_ack;
	if (b->lt_obeyed != AP_NONE) {
		if (b->state == IBBR_PROBE_BW && seen & IBBR_ROUND && ++b->lt_obeyed >= IBBR_LT_USE_ROUNDS) {
			ibbr_forget_policer(b);
			ibbr_restart_cycle(b, a->now);
		}
	} else if (b->lt_since == AP_NONE) {
		if (lossy)
			ibbr_sample_policer(b, a);
	} else if (seen & IBBR_LIMITED) {
		ibbr_forget_policer(b);
	} else {
		b->lt_rounds += seen & IBBR_ROUND;
		if (b->lt_rounds > IBBR_LT_MAX_ROUNDS)
			ibbr_forget_policer(b);
		else if (b->lt_rounds >= IBBR_LT_ROUNDS && lossy)
			ibbr_judge_policer(b, a);
	}
	return 0;
}

AP_FN void ibbr_step_cycle(struct ibbr *b, const struct ibbr_ack *a, ap_u64 drained)
{
	int is_long = ap_less(a->now, b->phase_since) > b->rtprop, is_over = is_long;
	int lost = b->lost > b->lost_at_last_ack;
	ap_u64 probed;

	if (b->phase == 0) {
		/* If the window is smaller than the probe, the probe can never fill the path. */
		probed = ibbr_inflight_at(b, ibbr_probe_rate(b));
		probed = ap_min(probed, ap_less(b->cwnd, b->mss));
		is_over = is_long && (lost || a->prior_inflight >= probed);
	} else {
		if (b->phase == 1)
			is_over = is_long || a->prior_inflight <= drained;
		b->probed_from = ibbr_btlbw(b);
	}
	if (is_over && b->phase == 0 && b->probe.while_growing && !lost &&
	    ibbr_btlbw(b) >= ap_scaled(b->probed_from, 5, 4)) {
		b->phase_since = a->now;
		b->probed_from = ibbr_btlbw(b);
	} else if (is_over) {
		b->phase = (b->phase + 1) % IBBR_PHASES;
		b->phase_since = a->now;
	}
}

AP_FN void ibbr_step_probe_rtt(struct ibbr *b, const struct ibbr_ack *a, int seen)
{
	if (b->state != IBBR_PROBE_RTT)
		return;
	if (b->probe_until == AP_NONE) {
		if (a->inflight <= ibbr_floor(b)) {
			b->probe_until = a->now + IBBR_PROBE_RTT_SPAN;
			b->next_round = a->delivered;
		}
		return;
	}
	b->probe_round_done |= seen & IBBR_ROUND;
	if (b->probe_round_done && a->now > b->probe_until)
		ibbr_leave_probe_rtt(b, a->now);
}

AP_CALL int ibbr_step(struct ibbr *b, const struct ibbr_ack *a, int seen)
{
	ap_u64 drained;

	if (!b || !a)
		return 0;
	drained = ibbr_inflight_at(b, ibbr_btlbw(b));
	if (b->state == IBBR_PROBE_BW && b->rtprop != AP_NONE)
		ibbr_step_cycle(b, a, drained);
	if (b->state == IBBR_STARTUP && b->is_full)
		b->state = IBBR_DRAIN;
	if (b->state == IBBR_DRAIN && a->inflight <= drained)
		ibbr_restart_cycle(b, a->now);
	if (seen & IBBR_EXPIRED && ap_less(a->now, b->rtt_probed) > IBBR_RTPROP_WINDOW && !b->from_idle &&
	    b->state != IBBR_PROBE_RTT) {
		ibbr_save(b, 1);
		b->held_since = a->now;
		b->held_until = AP_NONE;
		b->state = IBBR_PROBE_RTT;
		b->probe_until = AP_NONE;
		b->probe_round_done = 0;
	}
	ibbr_step_probe_rtt(b, a, seen);
	return 0;
}

AP_CALL int ibbr_pace(struct ibbr *b, const struct ibbr_ack *a)
{
	ap_u64 bandwidth, rate;

	if (!b || !a)
		return 0;
	bandwidth = ibbr_bandwidth(b);
	if (!b->has_seen_rtt && b->rtprop != AP_NONE) {
		b->has_seen_rtt = 1;
		b->pacing = ap_scaled(ap_rate_of(b->cwnd, a->smoothed), IBBR_HIGH, IBBR_UNIT);
	}
	if (!bandwidth)
		return 0;
	if (b->state == IBBR_STARTUP)
		rate = ibbr_paced(b, bandwidth, IBBR_HIGH, IBBR_UNIT);
	else if (b->state == IBBR_DRAIN)
		rate = ibbr_paced(b, bandwidth, IBBR_UNIT, IBBR_HIGH);
	else if (b->state == IBBR_PROBE_RTT || b->lt_obeyed != AP_NONE || b->phase > 1)
		rate = ibbr_paced(b, bandwidth, 1, 1);
	else if (b->phase == 1)
		rate = ibbr_paced(b, bandwidth, 3, 4);
	else
		rate = ibbr_paced(b, ibbr_probe_rate(b), 1, 1);
	if (b->is_full || rate > b->pacing)
		b->pacing = rate;
	return 0;
}

/* Computes the window. Returns whether a recovery episode started with the losses that this ACK revealed. */
AP_CALL int ibbr_size_window(struct ibbr *b, const struct ibbr_ack *a)
{
	ap_u64 target;
	int began;

	if (!b || !a)
		return 0;
	target = ibbr_target(b);
	began = !!b->recovery_began;
	b->recovery_began = 0;
	if (began) {
		b->cwnd = a->inflight + a->acked;
	} else if (b->recovery_end != AP_NONE && a->recovered >= b->recovery_end) {
		b->recovery_end = AP_NONE;
		b->conserving = 0;
		b->cwnd = ap_max(b->cwnd, b->prior_cwnd);
	}
	if (b->conserving) {
		b->cwnd = ap_max(b->cwnd, a->inflight + a->acked);
	} else {
		if (b->is_full)
			b->cwnd = ap_min(b->cwnd + a->acked, target);
		else if (b->cwnd < target || a->delivered < IBBR_INITIAL_PACKETS * b->mss)
			b->cwnd += a->acked;
		b->cwnd = ap_max(b->cwnd, ibbr_floor(b));
	}
	if (b->state == IBBR_PROBE_RTT)
		b->cwnd = ap_min(b->cwnd, ibbr_floor(b));
	b->cwnd = ap_min(ap_max(b->cwnd, b->mss), AP_MAX_BYTES);
	return began;
}

/*
 * Updates the model with an ACK while another controller sends at `rate`. The window of that controller limited the
 * bytes in flight.
 */
AP_FN int ibbr_observe(struct ibbr *b, const struct ibbr_ack *a, ap_u64 rate)
{
	return ibbr_learn(b, a, rate, a->prior_inflight);
}

/* Processes an ACK of new packets. The caller must have reported the losses that the ACK reveals before this call. */
AP_CALL int ibbr_on_ack(struct ibbr *b, const struct ibbr_ack *a)
{
	int seen;

	if (!b || !a)
		return 0;
	seen = ibbr_learn(b, a, 0, b->cwnd);
	if (b->tuning.finds_policers)
		ibbr_find_policer(b, a, seen);
	if (seen & IBBR_ROUND && !(seen & IBBR_LIMITED) && !b->is_full) {
		if (ibbr_btlbw(b) >= ap_scaled(b->baseline, 5, 4)) {
			b->baseline = ibbr_btlbw(b);
			b->flat_rounds = 0;
		} else if (++b->flat_rounds >= 3) {
			b->is_full = 1;
		}
	}
	ibbr_step(b, a, seen);
	ibbr_pace(b, a);
	/* Packet conservation lasts one complete round. */
	if (ibbr_size_window(b, a))
		b->next_round = a->delivered;
	b->lost_at_last_ack = b->lost;
	b->from_idle = 0;
	return 0;
}

/*
 * Processes losses. `is_silence`: all outstanding packets were declared lost. `recovered`: number of the transport's
 * completed recoveries.
 */
AP_FN void ibbr_on_loss(struct ibbr *b, ap_u64 lost, int is_silence, ap_u64 recovered)
{
	int begins = b->recovery_end == AP_NONE;

	b->lost += lost;
	ibbr_save(b, b->state != IBBR_PROBE_RTT);
	if (is_silence) {
		b->recovery_end = recovered + 1;
		b->cwnd = b->mss;
		b->conserving = 0;
		b->baseline = 0;
		return;
	}
	b->recovery_end = begins ? recovered + 1 : b->recovery_end;
	b->cwnd = ap_max(ap_less(b->cwnd, lost), b->mss);
	b->recovery_began |= begins;
	b->conserving |= begins;
}

/* Records sent packets. `is_first`: no other packet is outstanding. */
AP_FN void ibbr_on_sent(struct ibbr *b, ap_u64 now, int is_first, int app_limited)
{
	if (is_first && b->was_idle) {
		b->from_idle = 1;
		b->epoch = now;
		b->epoch_acked = 0;
		/*
		 * After an idle period the queue is empty. A gain below one, which was chosen to drain a queue, is not
		 * needed.
		 */
		if (b->state == IBBR_PROBE_BW)
			b->pacing = ibbr_paced(b, ibbr_bandwidth(b), 1, 1);
		else if (b->state == IBBR_PROBE_RTT && b->probe_until != AP_NONE && now > b->probe_until)
			ibbr_leave_probe_rtt(b, now);
	}
	b->was_idle = app_limited;
}

#endif
