/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * BISCAY's sender in integer arithmetic: the C port of crates/cc/src/biscay/sender.rs, which documents the reason of each
 * rule. The kernel's program and the host's tests compile this file.
 *
 * Source: BISCAY §A.5.1; BISCAY §3.2.4
 *
 * Differs from the Rust controller:
 * - Rounds are counted by delivered bytes instead of packet numbers, which TCP does not have.
 * - The number of bytes sent within 100 ms is counted in slots of 1 ms.
 * - In FALLBACK, this file only observes the ACKs: the kernel's BBR controls the flow.
 * - The options of §A.5.3 (ECN marks, losses, delay gradient, queue) are absent. In the Rust controller, these options
 *   are off by default.
 */
#ifndef AIRPACE_BISCAY_H
#define AIRPACE_BISCAY_H

#include "biscay_state.h"

AP_FN ap_u64 biscay_floor(const struct biscay *b)
{
	return BISCAY_MIN_PACKETS * b->mss;
}

AP_FN void biscay_init(struct biscay *b, const struct ap_tuning *t, ap_u64 mss)
{
#ifdef __bpf__
	(void)t;
#else
	b->tuning = *t;
#endif
	b->mss = mss;
	b->cwnd = b->own_cwnd = ap_min(10 * mss, ap_max(2 * mss, 15000));
	b->cellular = b->share_of[0] = AP_NONE;
	b->share_num = b->share_den = 1;
	b->period_of = AP_NONE;
	b->smoothed = AP_NONE;
	b->extra = BISCAY_ONE;
	b->round_least = b->last_round_least = AP_NONE;
	b->drain_ends_with = b->drain_least = b->last_shown = AP_NONE;
	b->carried = AP_NONE;
	b->since = AP_NONE;
}

/* Removes bytes sent more than 100 ms before `slot` from the sum of sent bytes. */
AP_CALL int biscay_forget_sent(struct biscay *b, ap_u64 slot)
{
	ap_u64 oldest = ap_less(slot, BISCAY_SPAN_SLOTS - 1), at;
	int i;

	if (!b)
		return 0;
	at = ap_less(b->slot, BISCAY_SPAN_SLOTS - 1);
	if (slot >= b->slot + BISCAY_SPAN_SLOTS) {
		for (i = 0; i < BISCAY_SLOTS; i++)
			b->slots[i] = 0;
		b->sent_bytes = 0;
	} else {
		for (i = 0; i < BISCAY_SPAN_SLOTS; i++) {
			if (at >= oldest)
				break;
			b->sent_bytes = ap_less(b->sent_bytes, b->slots[at & (BISCAY_SLOTS - 1)]);
			b->slots[at & (BISCAY_SLOTS - 1)] = 0;
			at++;
		}
	}
	b->slot = slot;
	return 0;
}

/*
 * Records sent packets. `is_first`: no other packet is outstanding. `app_limited`: the application has no more data to
 * send.
 */
AP_FN void biscay_on_sent(struct biscay *b, ap_u64 now, ap_u64 bytes, int is_first, int app_limited)
{
	ap_u64 slot = now / AP_MS;

	if (is_first && b->was_idle) {
		b->epoch = now;
		b->epoch_acked = 0;
	}
	b->was_idle = app_limited;
	if (b->state != BISCAY_STARTUP)
		return;
	if (slot > b->slot)
		biscay_forget_sent(b, slot);
	b->slots[b->slot & (BISCAY_SLOTS - 1)] += bytes;
	b->sent_bytes += bytes;
	b->most_sent = ap_max(b->most_sent, b->sent_bytes);
}

/*
 * Recomputes the flow's share. Called when the bandwidth in use or the flow's fraction of this bandwidth may have
 * changed.
 */
AP_FN void biscay_divide(struct biscay *b)
{
	if (AP_USUAL(b->cellular == b->share_of[0] && b->share_num == b->share_of[1] && b->share_den == b->share_of[2]))
		return;
	b->share_of[0] = b->cellular;
	b->share_of[1] = b->share_num;
	b->share_of[2] = b->share_den;
	b->share = 0;
	if (b->cellular != AP_NONE)
		b->share = ap_min(ap_scaled(b->cellular, b->share_num, b->share_den), AP_MAX_RATE);
}

AP_FN ap_u64 biscay_flow_share(const struct biscay *b)
{
	return b->cellular == AP_NONE ? AP_NONE : b->share;
}

/* This flow's part of the burst rate (r->burst); zero unless the option startup is 2 (bursts). */
AP_FN ap_u64 biscay_burst(const struct biscay *b, const struct biscay_radio *r)
{
	if (biscay_options(b)->startup != 2)
		return 0;
	return ap_min(ap_scaled(ap_min(r->burst, AP_MAX_RATE), r->share_num, r->share_den), AP_MAX_RATE);
}

AP_FN ap_u64 biscay_least(const struct biscay *b)
{
	return b->least.seen ? b->least.value[0] : 0;
}

AP_FN ap_u64 biscay_queue_threshold(ap_u64 least)
{
	return ap_min(ap_max(least / 8, 4 * AP_MS), 16 * AP_MS);
}

AP_FN ap_u64 biscay_standing(const struct biscay *b)
{
	if (b->round_samples >= BISCAY_RTT_SAMPLES || b->last_round_least == AP_NONE)
		return b->round_least;
	return b->last_round_least;
}

AP_FN int biscay_has_queue(const struct biscay *b)
{
	ap_u64 standing = biscay_standing(b), least = biscay_least(b);

	return b->least.seen && standing != AP_NONE && standing > least + biscay_queue_threshold(least);
}

/* Maximum number of bytes in flight during a drain: half the path's BDP, at least 4 packets. */
AP_FN ap_u64 biscay_drained(const struct biscay *b)
{
	ap_u64 rate = ap_min(b->share, b->delivery_rate);

	return ap_max((ap_bytes_in(rate, biscay_least(b)) + 1) / 2, biscay_floor(b));
}

AP_FN ap_u64 biscay_extra_acked(const struct biscay *b)
{
	ap_u64 most = ap_bytes_in(ap_window_best(&b->btlbw) == AP_NONE ? 0 : b->btlbw.value[0], 100 * AP_MS);

	return ap_min(ap_max(b->buckets[0], b->buckets[1]), most);
}

/* cwnd = split(bw) * (RTT + slack) + bytes acknowledged in one ACK bunch + packets */
AP_FN ap_u64 biscay_window(const struct biscay *b)
{
	ap_u64 share = b->share;
	ap_u64 extra;

	if (AP_RARE(b->is_draining))
		return biscay_drained(b);
	extra = ap_bytes_in(share, biscay_options(b)->slack) + (biscay_options(b)->bunching ? biscay_extra_acked(b) : 0) + biscay_options(b)->packets * b->mss;
	extra = (ap_min(extra, AP_MAX_BYTES) * b->extra + BISCAY_ONE / 2) / BISCAY_ONE;
	return ap_max(ap_bytes_in(share, biscay_least(b)) + extra, biscay_floor(b));
}

/* Counts rounds. Returns whether the ACK starts a new round. */
AP_FN int biscay_count_rounds(struct biscay *b, const struct biscay_ack *a)
{
	int begins = a->prior_delivered >= b->next_round;

	if (AP_RARE(begins)) {
		b->next_round = a->delivered;
		b->rounds++;
		if (b->round_least != AP_NONE)
			b->last_round_least = b->round_least;
		b->round_least = AP_NONE;
		b->round_samples = 0;
	}
	if (a->rtt != AP_NONE) {
		b->round_samples++;
		b->round_least = ap_min(b->round_least, a->rtt);
	}
	return begins;
}

AP_FN void biscay_go_on_draining(struct biscay *b, const struct biscay_ack *a, ap_u64 drained)
{
	ap_u64 shown;

	if (b->drain_ends_with != AP_NONE) {
		if (a->rtt != AP_NONE)
			b->drain_least = ap_min(b->drain_least, a->rtt);
	} else if (a->inflight <= drained) {
		b->drain_ends_with = a->delivered;
	}
	if (a->now < b->drain_until &&
	    (b->drain_ends_with == AP_NONE || a->prior_delivered < b->drain_ends_with))
		return;
	shown = b->last_shown;
	b->last_shown = b->drain_least;
	if (shown != AP_NONE && b->drain_least != AP_NONE)
		ap_window_all(&b->least, a->now, ap_min(b->drain_least, shown));
	b->is_draining = 0;
	b->drained_at = a->now;
}

AP_FN void biscay_update_least(struct biscay *b, const struct biscay_ack *a, ap_u64 drained)
{
	ap_u64 period, seen;

	period = biscay_options(b)->rtt_window / 2;
	if (a->rtt != AP_NONE)
		ap_window_update(&b->least, a->now, a->rtt, biscay_options(b)->rtt_window, 0);
	if (AP_RARE(b->is_draining)) {
		biscay_go_on_draining(b, a, drained);
		return;
	}
	seen = ap_max(b->least.seen ? b->least.at[0] : a->now, b->drained_at);
	if (AP_RARE(b->state != BISCAY_BISCAY || !period))
		return;
	if (AP_RARE(seen != b->period_of)) {
		b->period_of = seen;
		b->period_end = (seen / period + 1) * period;
	}
	if (AP_RARE(a->now >= b->period_end)) {
		b->is_draining = 1;
		b->drain_until = a->now + BISCAY_MAX_DRAIN;
		b->drain_ends_with = AP_NONE;
		b->drain_least = AP_NONE;
	}
}

/* Observes slow start: measures the delivery rate of the path while every packet meets a queue. */
AP_FN void biscay_watch_start(struct biscay *b, const struct biscay_ack *a)
{
	ap_u64 least = biscay_least(b);

	if (a->rtt == AP_NONE)
		return;
	if (a->rtt <= least + biscay_queue_threshold(least)) {
		b->busy = 0;
	} else if (!b->busy) {
		b->busy = 1;
		b->busy_since = a->now;
		b->busy_delivered = 0;
	} else {
		b->busy_delivered += a->acked;
		if (ap_less(a->now, b->busy_since) >= BISCAY_BUSY)
			b->carried = ap_rate_of(b->busy_delivered, a->now - b->busy_since);
	}
}

/* BBR's model of the path: the maximum delivery rate of ten rounds, and ACK aggregation. */
AP_FN void biscay_observe(struct biscay *b, const struct biscay_ack *a, int round_began, ap_u64 carried)
{
	ap_u64 known, rate, expected, extra;

	known = b->btlbw.seen ? b->btlbw.value[0] : 0;
	if (a->rate != AP_NONE && (!a->app_limited || a->rate >= known))
		ap_window_update(&b->btlbw, b->rounds, a->rate, BISCAY_BTLBW_ROUNDS, 1);
	rate = ap_max(b->btlbw.seen ? b->btlbw.value[0] : 0, carried);
	if (AP_RARE(round_began) && ++b->bucket_rounds >= 5) {
		b->bucket_rounds = 0;
		b->bucket = !b->bucket;
		b->buckets[b->bucket & 1] = 0;
	}
	expected = ap_bytes_in(rate, ap_less(a->now, b->epoch));
	if (b->epoch_acked <= expected || b->epoch_acked + a->acked >= (1ULL << 20) * 1500) {
		b->epoch = a->now;
		b->epoch_acked = 0;
		expected = 0;
	}
	b->epoch_acked += a->acked;
	/*
	 * Limit of the extra bytes: in FALLBACK, BBR's window; in the other states, the bytes in flight, because BBR's own
	 * window is not in use.
	 */
	extra = ap_min(ap_less(b->epoch_acked, expected), b->state == BISCAY_FALLBACK ? a->cwnd : a->prior_inflight);
	b->buckets[b->bucket & 1] = ap_max(b->buckets[b->bucket & 1], extra);
}

/*
 * Updates the bandwidth in use. This bandwidth decreases only while there is a queue: without a queue, low grants mean
 * low demand.
 */
AP_FN void biscay_update_cellular(struct biscay *b, ap_u64 now, const struct biscay_radio *r)
{
	ap_u64 sampled;

	sampled = r->bandwidth;
	if (AP_RARE(sampled == AP_NONE)) {
		b->cellular = AP_NONE;
	} else {
		sampled = ap_min(sampled, AP_MAX_RATE);
		b->share_num = r->share_num;
		b->share_den = r->share_den;
		if (b->cellular != AP_NONE && biscay_options(b)->hold && !(b->queue && sampled > 0 && now >= b->unsettled_until))
			sampled = ap_max(b->cellular, sampled);
		b->cellular = sampled;
	}
	biscay_divide(b);
}

AP_FN void biscay_size_extra(struct biscay *b)
{
	if (b->lost_in_round * 50 > b->acked_in_round + b->lost_in_round)
		b->extra /= 2;
	else
		b->extra = ap_min(b->extra + BISCAY_ONE / 64, BISCAY_ONE);
}

AP_FN void biscay_slow_start(struct biscay *b, const struct biscay_ack *a,
			     const struct biscay_radio *r)
{
	ap_u64 acked = ap_min(a->acked, AP_MAX_BYTES), known, fast;

	if (a->app_limited)
		return;
	known = (ap_bytes_in(biscay_burst(b, r), biscay_least(b)) + 1) / 2;
	fast = ap_min(b->own_cwnd + 3 * acked, known);
	b->own_cwnd = ap_min(ap_max(b->own_cwnd + acked, fast), AP_MAX_BYTES);
}

AP_FN int biscay_start_is_over(const struct biscay *b)
{
	return b->queue || b->lost_in_startup || b->path_is_full || b->carried != AP_NONE;
}

AP_FN int biscay_is_reliable(const struct biscay *b, ap_u64 share)
{
	if (share == AP_NONE || share == 0)
		return 0;
	return biscay_options(b)->startup == 0 || share > 2 * ap_rate_of(b->most_sent, BISCAY_SPAN) || biscay_start_is_over(b);
}

AP_FN void biscay_enter(struct biscay *b, ap_u64 now)
{
	ap_u64 reached;

	b->state = BISCAY_BISCAY;
	b->since = AP_NONE;
	if (!biscay_options(b)->hold)
		return;
	reached = ap_max(b->carried == AP_NONE ? 0 : b->carried, b->end_to_end);
	reached = ap_min(ap_scaled(reached, b->share_den, ap_max(b->share_num, 1)), AP_MAX_RATE);
	b->cellular = b->cellular == AP_NONE ? reached : ap_max(b->cellular, reached);
	biscay_divide(b);
	b->unsettled_until = ap_max(b->unsettled_until, now + biscay_options(b)->lag);
}

AP_FN void biscay_enter_fallback(struct biscay *b, ap_u64 now)
{
	if (b->state != BISCAY_STARTUP || b->path_is_full) {
		b->buckets[0] = b->buckets[1] = 0;
		b->bucket = b->bucket_rounds = 0;
		b->epoch = now;
		b->epoch_acked = 0;
	}
	b->state = BISCAY_FALLBACK;
	b->since = AP_NONE;
}

AP_FN int biscay_has_held(struct biscay *b, ap_u64 now, int holds)
{
	if (!holds) {
		b->since = AP_NONE;
		return 0;
	}
	if (b->since == AP_NONE)
		b->since = now;
	return ap_less(now, b->since) >= biscay_options(b)->lag;
}

AP_FN void biscay_step(struct biscay *b, const struct biscay_ack *a, const struct biscay_radio *r)
{
	ap_u64 share, wired;

	share = biscay_flow_share(b);
	if (AP_RARE(b->state == BISCAY_STARTUP)) {
		biscay_slow_start(b, a, r);
		if (biscay_is_reliable(b, share))
			biscay_enter(b, a->now);
		else if (b->lost_in_startup || (biscay_options(b)->startup != 0 && biscay_start_is_over(b)))
			biscay_enter_fallback(b, a->now);
	} else if (AP_RARE(b->state == BISCAY_BISCAY && share == AP_NONE)) {
		biscay_enter_fallback(b, a->now);
	} else if (AP_USUAL(b->state == BISCAY_BISCAY)) {
		b->own_cwnd = biscay_window(b);
		wired = AP_RARE(b->queue) && share > ap_scaled(b->end_to_end, 100 + biscay_options(b)->margin, 100);
		if (a->app_limited)
			b->since = AP_NONE;
		else if (!b->is_draining && biscay_has_held(b, a->now, wired))
			biscay_enter_fallback(b, a->now);
	} else if (share != AP_NONE) {
		wired = share > ap_scaled(b->end_to_end, 100 + biscay_options(b)->tolerance, 100);
		if (biscay_has_held(b, a->now, !wired)) {
			b->state = BISCAY_BISCAY;
			b->since = AP_NONE;
			b->own_cwnd = biscay_window(b);
		}
	}
}

AP_FN void biscay_update_control(struct biscay *b, const struct biscay_radio *r)
{
	ap_u64 known, gain, pacing;

	if (AP_RARE(b->silenced))
		b->own_cwnd = biscay_floor(b);
	b->cwnd = ap_max(b->own_cwnd, b->mss);
	if (AP_RARE(b->smoothed == AP_NONE))
		return;
	gain = b->state == BISCAY_STARTUP ? biscay_options(b)->pacing_startup : biscay_options(b)->pacing;
	known = b->state == BISCAY_BISCAY ? b->share : biscay_burst(b, r);
	pacing = ap_max(ap_rate_of(b->own_cwnd, b->smoothed), known);
	b->pacing = ap_max(ap_over_100(pacing * ap_min(gain, 400) + 50), 1000);
}

/*
 * Processes an ACK of new packets. The caller must have reported the losses that the ACK reveals (biscay_on_loss)
 * before this call.
 */
AP_FN void biscay_on_ack(struct biscay *b, const struct biscay_ack *a,
			 const struct biscay_radio *r)
{
	ap_u64 drained, carried;
	int was_draining, round_began;

	if (AP_RARE(b->silenced)) {
		b->silenced = 0;
		b->unsettled_until = ap_max(b->unsettled_until, a->now + biscay_options(b)->lag);
	}
	if (a->rate != AP_NONE && !b->is_draining)
		b->delivery_rate = a->rate;
	b->smoothed = a->smoothed;
	round_began = biscay_count_rounds(b, a);
	was_draining = !!b->is_draining;
	drained = was_draining ? biscay_drained(b) : 0;
	biscay_update_least(b, a, drained);
	if (AP_RARE(b->state == BISCAY_STARTUP) && b->least.seen)
		biscay_watch_start(b, a);
	if (AP_RARE(was_draining) && !b->is_draining)
		b->unsettled_until = ap_max(b->unsettled_until, a->now + biscay_options(b)->lag);
	carried = b->state == BISCAY_STARTUP ? biscay_burst(b, r) : 0;
	carried = ap_max(carried, b->share);
	biscay_observe(b, a, round_began, b->state == BISCAY_FALLBACK ? 0 : carried);
	b->queue = biscay_has_queue(b);
	if (a->app_limited)
		b->unsettled_until = ap_max(b->unsettled_until, a->now + biscay_options(b)->lag);
	biscay_update_cellular(b, a->now, r);
	b->acked_in_round += a->acked;
	if (AP_RARE(round_began) && biscay_standing(b) != AP_NONE) {
		if (b->state == BISCAY_BISCAY)
			biscay_size_extra(b);
		b->acked_in_round = b->lost_in_round = 0;
	}
	b->end_to_end = b->btlbw.seen ? b->btlbw.value[0] : 0;
	if (AP_RARE(round_began) && !a->app_limited && b->state == BISCAY_STARTUP && !b->path_is_full) {
		if (b->end_to_end >= ap_scaled(b->baseline, 5, 4)) {
			b->baseline = b->end_to_end;
			b->flat_rounds = 0;
		} else if (++b->flat_rounds >= 3) {
			b->path_is_full = 1;
		}
	}
	biscay_step(b, a, r);
	biscay_update_control(b, r);
}

/* Processes losses. `is_silence`: all outstanding packets were declared lost. */
AP_FN void biscay_on_loss(struct biscay *b, ap_u64 lost, int is_silence,
			  const struct biscay_radio *r)
{
	b->lost_in_round += lost;
	if (b->state == BISCAY_STARTUP)
		b->lost_in_startup = 1;
	if (is_silence) {
		b->silenced = 1;
		biscay_update_control(b, r);
	}
}

/*
 * Called before a send, between two ACKs: a new bandwidth takes effect at once, as does the absence of a bandwidth.
 *
 * Differs: the Rust controller waits for the next ACK. At 10 Mbit/s, the next ACK is more than a millisecond away.
 */
AP_FN void biscay_before_send(struct biscay *b, ap_u64 now,
			      const struct biscay_radio *r)
{
	if (b->state != BISCAY_BISCAY)
		return;
	if (r->bandwidth == AP_NONE) {
		b->cellular = AP_NONE;
		biscay_divide(b);
		biscay_enter_fallback(b, now);
		return;
	}
	biscay_update_cellular(b, now, r);
	b->own_cwnd = biscay_window(b);
	biscay_update_control(b, r);
}

#endif
