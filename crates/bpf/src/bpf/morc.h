/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * MORC in integer arithmetic: the C port of crates/cc/src/morc/ahead.rs and of its base crates/cc/src/pcc.rs, which
 * document the reason of each rule. The kernel's program and the host's tests compile this file.
 *
 *              q > target             q > 2 targets, an overflow, or 2 s without an empty queue
 *  SlowStart ─────────────▶ Drain ◀──────────────────────────────── RateAdjusting
 *                             └───────────── empty ────────────────────▶
 *                             └─ not empty, twice ─▶ Competing ── empty ─▶
 *
 * The rate rule maximizes the utility a time H ahead: r = C * (1 + (target - q) / H).
 *
 * Source: MORC §3.1 Utility
 *
 * Differs from the Rust controller: rates are integers in bit/s, times integers in ns, fractions have 28 or 30 bits, and
 * the maximum rate is AP_MAX_RATE.
 */
#ifndef AIRPACE_MORC_H
#define AIRPACE_MORC_H

#include "morc_state.h"

/* `value` times the factor `times`, which has 16 fractional bits. */
AP_FN ap_u64 morc_times(ap_u64 value, ap_u32 times)
{
	return (ap_min(value, AP_MAX_SPAN) * times) >> 16;
}

AP_FN ap_u64 morc_rtt_min(const struct morc *m)
{
	return m->least == AP_NONE ? m->rtt_min : m->least;
}

AP_FN ap_u64 morc_loop(const struct morc *m)
{
	return morc_rtt_min(m) + m->target;
}

/* The rate at which a number of full packets is sent in `span`. */
AP_FN ap_u64 morc_rate_of(const struct morc *m, ap_u64 packets, ap_u64 span)
{
	return ap_rate_of(packets * m->mss, ap_max(span, MORC_MIN_RTT));
}

AP_FN ap_u64 morc_least_rate(const struct morc *m)
{
	return morc_rate_of(m, 2, m->is_known ? m->rtt_min : m->rtt);
}

AP_FN ap_u64 morc_bounded(const struct morc *m, ap_u64 rate)
{
	return ap_min(ap_max(rate, morc_least_rate(m)), AP_MAX_RATE);
}

AP_FN ap_u64 morc_span(const struct morc *m)
{
	return ap_max(ap_min(m->rtt, morc_loop(m) + m->target), AP_MS);
}

/*
 * Bytes that `rate` carries in `span`, in units of 1/MORC_PART of a byte. Above 67 Mbit/s, the result is rounded to
 * whole bytes, which is precise enough for such large numbers.
 */
AP_FN ap_u64 morc_parts_in(ap_u64 rate, ap_u64 span)
{
	if (rate > AP_MAX_RATE / MORC_PART)
		return ap_bytes_in(rate, span) * MORC_PART;
	return ap_bytes_in(rate * MORC_PART, span);
}

/* The rate that carries `parts` (units of 1/MORC_PART of a byte) in `span`. */
AP_FN ap_u64 morc_rate_of_parts(ap_u64 parts, ap_u64 span)
{
	if (parts > AP_MAX_BYTES)
		return ap_rate_of(parts / MORC_PART, span);
	return ap_rate_of(parts, ap_min(span, AP_MAX_SPAN) * MORC_PART);
}

/* The time in which the minimum number of packets of an interval is sent at `rate`. */
AP_FN ap_u64 morc_packets_span(const struct morc *m, ap_u64 rate)
{
	return MORC_MIN_PACKETS * m->mss * AP_BIT_NS_PER_BYTE / ap_max(rate, MORC_MIN_RATE);
}

AP_FN ap_u64 morc_target_of(const struct morc *m, ap_u64 rate)
{
	ap_u64 log = ap_log2(ap_max(rate, 10)), of_rate, most = ap_max(MORC_MAX_TARGET, m->tuning.target);

	if (log >= MORC_LOG2_REFERENCE)
		of_rate = ap_less(m->tuning.target, (m->tuning.octave * (log - MORC_LOG2_REFERENCE)) >> 24);
	else
		of_rate = m->tuning.target + ((m->tuning.octave * (MORC_LOG2_REFERENCE - log)) >> 24);
	of_rate = ap_min(ap_max(of_rate, ap_min(MORC_MIN_TARGET, m->tuning.target)), most);
	of_rate = of_rate * m->dry / 1000;
	return m->full == AP_NONE ? of_rate : ap_min(of_rate, ap_max(m->full / 2, MORC_MIN_FULL));
}

/* Raises the estimate of the buffer's size, because the queue has not overflowed for the time `since`. */
AP_FN void morc_held(struct morc *m, ap_u64 since, ap_u64 queue)
{
	if (m->full == AP_NONE)
		return;
	m->full += m->full * ap_min(since / AP_US, 1ULL << 24) / (10 * AP_SECOND / AP_US);
	m->full = ap_min(ap_max(m->full, queue), MORC_MAX_FULL);
}

AP_FN int morc_is_held(const struct morc *m)
{
	return m->phase == MORC_DRAINING && m->rate < morc_least_rate(m);
}

/* Processes the observation of an empty queue, which shows that no other flow fills the queue. */
AP_FN void morc_empty(struct morc *m)
{
	if (m->failed)
		m->rtts_length = MORC_RTT_MIN;
	m->failed = m->crest = 0;
	m->rival = AP_NONE;
}

/* Number of bytes to send for each byte that must arrive, times MORC_GAIN. The factor compensates random loss. */
AP_FN ap_u64 morc_sent_per_arrived(const struct morc *m)
{
	return MORC_GAIN * PCC_ONE / (PCC_ONE - ap_min(m->mean_loss, PCC_ONE * 11 / 100));
}

AP_FN void morc_resume(struct morc *m)
{
	m->phase = MORC_ADJUSTING;
	m->rate = (ap_min(m->base, AP_MAX_RATE) * morc_sent_per_arrived(m) + MORC_GAIN / 2) / MORC_GAIN;
	m->emptied = m->resumed = m->now;
}

AP_FN void morc_drain(struct morc *m, ap_u64 received)
{
	ap_u64 rtt_min = morc_rtt_min(m);

	m->base = ap_max(received, m->base / 2);
	m->rate = m->base / 2;
	m->until = m->now + ap_min(2 * m->queue + 2 * rtt_min, MORC_MAX_DRAIN + rtt_min);
	m->since = m->now;
	m->drain_from = m->drain_least = m->queue;
	m->phase = MORC_DRAINING;
	m->boost = 0;
	m->overflowed = 0;
}

/* Ends a drain that has reached its maximum duration. */
AP_FN void morc_end_drain(struct morc *m)
{
	int is_held = morc_is_held(m);
	ap_u64 packet = is_held ? m->mss * AP_BIT_NS_PER_BYTE / ap_max(m->received, MORC_MIN_RATE) : 0;

	if (m->drain_least < ap_max(m->target / 2, packet)) {
		morc_empty(m);
	} else if (m->received * 4 < m->rate * 3) {
		m->base = m->received;
	} else if (m->tuning.rival) {
		m->rtts_length = MORC_RTT_MIN_BESIDE_RIVAL;
		m->failed += is_held ? 1 : MORC_SURE;
		if (m->failed >= MORC_ENOUGH && m->rival == AP_NONE)
			m->rival = morc_parts_in(m->base, morc_rtt_min(m) + m->drain_from);
	}
	morc_resume(m);
}

AP_FN int morc_must_drain(const struct morc *m)
{
	ap_u64 since = ap_less(m->now, m->emptied), every, rtt_min;
	int is_long = m->tuning.drain_above && m->queue > morc_times(m->target, m->tuning.drain_above);
	int has_rival = m->rival != AP_NONE;

	if (m->emptied == AP_NONE || (!is_long && !m->overflowed && (!m->tuning.drain || since <= m->tuning.drain)))
		return 0;
	rtt_min = morc_rtt_min(m);
	every = ap_max(m->tuning.drain, MORC_DRAIN_ROUNDS * rtt_min) * (has_rival ? MORC_RIVAL_DRAINS : 1);
	if (m->tuning.drain && since > every)
		return 1;
	return !has_rival && since > 2 * rtt_min && (is_long || m->overflowed);
}

/* sqrt(2) to the power of `steps`, times MORC_GAIN. */
AP_FN ap_u64 morc_boost(ap_u64 steps)
{
	return (steps & 1 ? 379625062ULL : MORC_GAIN) << (steps / 2 & 7);
}

/* The rate with the best utility a time H ahead. */
AP_FN ap_u64 morc_rule(struct morc *m, ap_u64 received, ap_u64 queue, int is_silent)
{
	ap_u64 loop = morc_loop(m), ahead, gain, rate;
	int is_empty = queue < m->target / 4;

	if (is_silent && queue < m->target)
		return m->rate;
	ahead = ap_max(morc_times(loop, m->tuning.ahead_loops), 1);
	if (ap_less(m->now, m->resumed) > ahead && !m->is_limited)
		m->dry = is_empty ? ap_min(m->dry + 100, ap_max(m->tuning.dry_most, 1000)) : ap_max(m->dry - 30, 1000);
	m->boost = is_empty && m->tuning.boost ? ap_min(m->boost + 1, MORC_MAX_BOOST) : 0;
	ap_window_update(&m->best, m->now, received, morc_times(loop, m->tuning.memory_loops), 1);
	m->base = received;
	if (is_empty)
		m->base = ap_max(ap_max(received, ap_min(m->arrived, m->rate)), m->best.value[0]);
	gain = queue > m->target ? queue - m->target : m->target - queue;
	gain = ap_min(gain, MORC_MAX_FULL) * MORC_GAIN / ahead;
	gain = ap_min(ap_min(gain, MORC_GAIN) * morc_boost(m->boost) / MORC_GAIN, MORC_GAIN / 2);
	gain = queue > m->target ? MORC_GAIN - gain : MORC_GAIN + gain;
	gain = (gain * morc_sent_per_arrived(m) + MORC_GAIN / 2) / MORC_GAIN;
	rate = (ap_min(m->base, AP_MAX_RATE) * gain + MORC_GAIN / 2) / MORC_GAIN;
	return m->is_limited && queue < m->target ? ap_max(rate, m->rate) : rate;
}

/* Evaluates the ACKs; this happens twice per round trip. Returns whether the rate changes now. */
AP_CALL int morc_look(struct morc *m)
{
	ap_u64 since, received, queue, rate;
	int is_silent;

	if (!m)
		return 0;
	since = ap_less(m->now, m->last_look);
	is_silent = m->silent || m->was_silent;
	if (!m->samples || since < ap_max(morc_span(m) / 2, morc_packets_span(m, m->rate)))
		return 0;
	received = ap_rate_of(m->heard + m->heard_before, since + m->span_before);
	queue = m->queue_sum / m->samples;
	m->last_look = m->now;
	m->look_due = m->now + MORC_MIN_LOOK;
	m->was_silent = m->silent;
	m->heard_before = m->heard;
	m->span_before = since;
	m->heard = m->queue_sum = m->samples = m->silent = 0;

	m->received = received;
	m->target = morc_target_of(m, received);
	if (!m->overflowed)
		morc_held(m, since, queue);
	if (m->phase != MORC_ADJUSTING)
		return 0;
	if (m->rival == AP_NONE) {
		rate = morc_rule(m, received, queue, is_silent);
	} else {
		/* The window for competing with a rival grows by one packet per 40 ms. */
		m->rival += m->mss * MORC_PART * ap_min(since, AP_MAX_SPAN >> 8) / (40 * AP_MS);
		m->rival = ap_min(m->rival, AP_MAX_BYTES * MORC_PART);
		m->base = received;
		rate = morc_rate_of_parts(m->rival, morc_rtt_min(m) + queue);
	}
	m->rate = morc_bounded(m, rate);
	return 1;
}

/* Processes an ACK. Returns whether the current interval must end now. */
AP_FN int morc_hear(struct morc *m, const struct morc_ack *a)
{
	ap_u64 received;
	int changed, is_empty, is_over;

	m->now = a->now;
	if (AP_RARE(m->emptied == AP_NONE))
		m->emptied = a->now;
	if (AP_RARE(m->last_look == AP_NONE)) {
		m->last_look = a->now;
		m->look_due = a->now + MORC_MIN_LOOK;
	}
	m->heard += a->acked;
	m->silent |= a->app_limited;
	if (AP_RARE(a->rtt == AP_NONE))
		return 0;
	ap_window_update(&m->rtts, a->now, a->rtt, m->rtts_length, 0);
	m->least = m->rtts.value[0];
	m->queue = ap_less(a->rtt, m->least);
	m->queue_sum += m->queue;
	m->samples++;
	changed = AP_RARE(a->now >= m->look_due) && morc_look(m);
	m->crest = ap_max(m->crest, m->queue);
	is_empty = m->queue <= ap_max(m->target / 8, MORC_MIN_EMPTIED);

	if (AP_RARE(m->phase == MORC_STARTING)) {
		received = a->rate == AP_NONE ? m->received : a->rate;
		if (m->queue <= m->target || !received)
			return 0;
		morc_drain(m, received);
		return 1;
	}
	if (AP_USUAL(m->phase == MORC_ADJUSTING)) {
		if (is_empty) {
			m->emptied = a->now;
			morc_empty(m);
		} else if (morc_must_drain(m)) {
			morc_drain(m, m->received);
			return 1;
		}
		return changed;
	}
	m->drain_least = ap_min(m->drain_least, m->queue);
	is_over = a->now >= m->until || (a->newest_sent >= m->since && morc_is_held(m));
	if (is_empty) {
		morc_empty(m);
		morc_resume(m);
	} else if (is_over) {
		morc_end_drain(m);
	}
	return is_empty || is_over;
}

/* Processes the report of a slow-start interval. Returns whether slow start ends. */
AP_FN int morc_learn_start(struct morc *m, const struct pcc_report *r, ap_u64 queue)
{
	ap_u64 received = r->received_rate == AP_NONE ? r->acked_rate : r->received_rate;

	m->start_unknown = ap_less(m->start_unknown, r->role == PCC_STEP);
	if (received * 4 < r->sent_rate * 3 && queue > MORC_MIN_EMPTIED)
		m->start_short++;
	else
		m->start_short = 0;
	if (queue <= m->target && m->start_short < 2 &&
	    !(r->loss * 10 > PCC_ONE && r->lost >= MORC_OVERFLOW_PACKETS))
		return 0;
	morc_drain(m, received);
	return 1;
}

/*
 * Whether an interval lost more packets than random loss explains, while the queue may have been a full buffer. Also
 * updates the mean random loss.
 */
AP_FN int morc_overflows(struct morc *m, const struct pcc_report *r, ap_u64 queue, int is_near_crest)
{
	ap_u64 bound = PCC_ONE / 50 + m->mean_loss + m->mean_loss / 2, is_first = !m->mean_of;
	int is_many = r->packets > 4096;
	/*
	 * The numbers are scaled so that their squares fit into 64 bits: one packet is 2^19 units, or 2^11 units if the
	 * interval has many packets.
	 */
	ap_u64 sent = ap_min(r->packets, 1ULL << 20), expected = sent * m->mean_loss;
	ap_u64 beyond = ap_less(ap_min(r->lost, sent) * PCC_ONE, sent * bound) >> (is_many ? 19 : 11);
	ap_u64 chance = is_many ? expected >> 6 : expected << 10;
	int may_be_full = queue >= MORC_MIN_FULL && is_near_crest;

	if (is_first || !may_be_full || r->loss <= bound) {
		m->mean_of = ap_min(m->mean_of + 1, MORC_MEAN_OF);
		m->mean_loss = (m->mean_loss * (m->mean_of - 1) + r->loss) / m->mean_of;
	}
	return !is_first && r->lost >= MORC_OVERFLOW_PACKETS && r->loss > bound && beyond * beyond > chance && may_be_full;
}

/* Processes the report of an interval. Returns whether the current interval must end now. */
AP_CALL int morc_learn(struct morc *m, const struct pcc_report *r)
{
	ap_u64 queue;
	int is_near_crest;

	if (!m || !r)
		return 0;
	queue = ap_less(r->rtt, morc_rtt_min(m));
	if (r->lost == r->packets) {
		if (m->phase == MORC_STARTING)
			m->start_unknown = ap_less(m->start_unknown, r->role == PCC_STEP);
		if (m->phase != MORC_ADJUSTING)
			return 0;
		m->rate = morc_bounded(m, m->rate / 2);
		return 1;
	}
	m->is_limited = r->sent_rate * 10 < r->rate * 9;
	m->arrived = r->acked_rate;
	is_near_crest = queue * 10 > m->crest * 7;
	if (morc_overflows(m, r, queue, is_near_crest) && m->tuning.overflow) {
		m->full = ap_min(ap_max(queue, AP_MS), MORC_MAX_FULL);
		m->overflowed = 1;
	}
	if (r->lost && m->rival != AP_NONE && is_near_crest &&
	    ap_less(m->now, m->last_cut) > MORC_CUT_ROUNDS * m->rtt) {
		m->rival = m->rival * 7 / 10;
		m->last_cut = m->now;
	}
	return m->phase == MORC_STARTING && morc_learn_start(m, r, queue);
}

/* The window that the rate rule requires. */
AP_FN ap_u64 morc_wanted(const struct morc *m)
{
	ap_u64 least = morc_least_rate(m), rate = m->rate, bytes;
	int is_slow = m->phase != MORC_STARTING && m->rate <= least;

	if (m->rival != AP_NONE && m->phase == MORC_ADJUSTING)
		return ap_max(m->rival * 11 / (10 * MORC_PART), MORC_SLOW_PACKETS * m->mss);
	if (morc_is_held(m))
		return m->mss;
	if (m->phase == MORC_STARTING)
		rate = 2 * m->received;
	else if (is_slow)
		rate = ap_min(rate, m->received);
	bytes = ap_bytes_in(rate, morc_rtt_min(m) + morc_times(m->target, m->tuning.window_targets));
	return ap_max(bytes, (is_slow ? MORC_SLOW_PACKETS : MORC_FIRST_PACKETS) * m->mss);
}

AP_FN ap_u64 morc_window(const struct morc *m)
{
	ap_u64 most = ap_bytes_in(pcc_fastest(&m->intervals), 2 * m->rtt + 4 * m->variation);

	most += ap_min(10 * m->mss, ap_max(2 * m->mss, 15000));
	if (!m->is_known)
		return ap_min(MORC_FIRST_PACKETS * m->mss, most);
	if (!m->tuning.window_targets)
		return most;
	return ap_min(ap_max(morc_wanted(m), m->mss), most);
}

/* The rate of the next interval. `role`: whether slow start waits for the interval's report. */
AP_FN ap_u64 morc_next(struct morc *m, ap_u64 *role)
{
	int is_held = m->start_rate && m->start_unknown >= MORC_MAX_UNKNOWN;

	*role = PCC_STEP;
	if (m->phase != MORC_STARTING)
		return m->rate;
	if (!m->is_known)
		m->rate = morc_rate_of(m, MORC_FIRST_PACKETS, MORC_BLIND_RTT);
	else if (is_held)
		m->rate = m->start_rate;
	else if (m->start_rate)
		m->rate = ap_min(2 * m->start_rate, AP_MAX_RATE);
	else
		m->rate = morc_rate_of(m, MORC_FIRST_PACKETS, m->rtt);
	if (m->is_known && !is_held) {
		m->start_rate = m->rate;
		m->start_unknown++;
	} else {
		*role = PCC_WAITING;
	}
	return m->rate;
}

AP_FN void morc_init(struct morc *m, const struct ap_morc_tuning *t, ap_u64 mss)
{
	ap_u64 role;

	m->mss = mss;
	m->rtt = m->rtt_min = 100 * AP_MS;
	m->last_sent = m->last_look = m->full = m->rival = m->least = m->emptied = AP_NONE;
	m->dry = 1000;
	m->tuning = *t;
	m->target = t->target;
	m->rtts_length = MORC_RTT_MIN;
	m->cwnd = ap_min(10 * mss, ap_max(2 * mss, 15000));
	m->pacing = morc_bounded(m, morc_next(m, &role));
}

/* Passes the reports of completed intervals to the rate rule. */
AP_CALL int morc_report_all(struct morc *m)
{
	struct pcc *p = &m->intervals;
	struct pcc_report report;
	int i;

	if (!m)
		return 0;
	for (i = 0; i < PCC_INTERVALS; i++) {
		struct pcc_interval *it = &p->at[PCC_AT(p->head)];

		if (!p->count || !pcc_is_complete(it))
			break;
		pcc_report(it, m->rtt, &report);
		p->head++;
		p->count--;
		m->realign |= morc_learn(m, &report);
	}
	return 0;
}

/* Reports completed intervals. At most ACKs, no interval is complete. */
AP_FN void morc_report(struct morc *m)
{
	struct pcc *p = &m->intervals;

	if (AP_RARE(p->count && pcc_is_complete(&p->at[PCC_AT(p->head)])))
		morc_report_all(m);
}

/* Called before the packet `number` is sent: the packet may start an interval. */
AP_CALL int morc_before_send(struct morc *m, ap_u64 now, ap_u64 number)
{
	struct pcc *p = &m->intervals;
	struct pcc_interval *it;
	ap_u64 pause = AP_NONE, rate, role, span;

	if (!m)
		return 0;
	it = pcc_newest(p);
	if (m->last_sent != AP_NONE && m->last_limited) {
		/* The send time of the last packets, rounded up. */
		pause = (m->last_bytes * AP_BIT_NS_PER_BYTE + m->pacing - 1) / ap_max(m->pacing, 1);
		pause += m->last_sent;
		if (now <= pause + PCC_NO_PAUSE)
			pause = AP_NONE;
	}
	if (p->count) {
		if (pause < it->due) {
			pcc_begin(it, now, number, it->due - it->begin);
			return 0;
		}
		if (p->count >= PCC_INTERVALS || !(m->realign || it->due <= now))
			return 0;
		it->closed = ap_min(pause, now);
		it->end = number;
	}
	rate = morc_bounded(m, morc_next(m, &role));
	span = ap_min(ap_max(morc_span(m), morc_packets_span(m, m->rate)), MORC_MAX_INTERVAL);
	m->realign = 0;
	p->count++;
	it = pcc_newest(p);
	it->rate = rate;
	it->role = role;
	pcc_begin(it, now, number, span);
	m->cwnd = morc_window(m);
	m->pacing = ap_max(rate, 1);
	return 0;
}

/* Records sent packets. `app_limited`: the application had no more data to send after them. */
AP_FN void morc_on_sent(struct morc *m, ap_u64 now, const struct pcc_packets *sent,
			int app_limited)
{
	pcc_count_sent(&m->intervals, sent);
	m->last_sent = now;
	m->last_bytes = ap_min(sent->bytes, AP_MAX_BYTES);
	m->last_limited = app_limited;
	morc_report(m);
}

/* Records lost packets. */
AP_CALL int morc_on_lost(struct morc *m, const struct pcc_packets *lost)
{
	struct pcc *p = &m->intervals;
	ap_u64 i;

	if (!m || !lost)
		return 0;
	for (i = 0; i < PCC_INTERVALS; i++) {
		struct pcc_interval *it = &p->at[PCC_AT(p->head + i)];

		if (i >= p->count)
			break;
		it->lost += pcc_share(it, lost);
	}
	return 0;
}

/*
 * Records the packets that an ACK acknowledges. Called after morc_on_ack. `newest` is the newest acknowledged packet
 * that was never declared lost, followed by its round-trip time; AP_NONE if there is none.
 */
AP_FN void morc_on_acked(struct morc *m, const struct pcc_packets *acked, int were_lost, ap_u64 newest, ap_u64 rtt)
{
	struct pcc *p = &m->intervals;
	ap_u64 i;

	for (i = 0; i < PCC_INTERVALS; i++) {
		struct pcc_interval *it = &p->at[PCC_AT(p->head + i)];

		if (i >= p->count)
			break;
		pcc_acked(it, m->now, acked, were_lost);
		if (rtt != AP_NONE)
			pcc_rtt(it, newest, rtt);
	}
}

/* Processes an ACK. The caller then reports its packets (morc_on_acked) and calls morc_report. */
AP_FN void morc_on_ack(struct morc *m, const struct morc_ack *a)
{
	m->realign |= !m->is_known;
	m->is_known = 1;
	m->rtt = a->smoothed;
	m->rtt_min = a->least;
	m->variation = a->variation;
	m->realign |= morc_hear(m, a);
}

#endif
