/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Checks whether the path delivers the reported capacity: the C port of crates/cc/src/pbe/guard.rs, which documents the
 * reason of each rule.
 *
 * Source: PBE-CC §7
 */
#ifndef AIRPACE_PBE_GUARD_H
#define AIRPACE_PBE_GUARD_H

#include "pbe_state.h"

enum pbe_verdict { PBE_NOTHING, PBE_DO_CHECK, PBE_RELEASE, PBE_FLAG };

AP_FN void pbe_guard_round(struct pbe_guard *g, ap_u64 began)
{
	g->began = began;
	g->last = began;
	g->delivered = g->reported = g->rtts = g->rtt_count = g->app_limited = 0;
	g->least_reported = g->least_rtt = AP_NONE;
}

AP_FN void pbe_guard_init(struct pbe_guard *g)
{
	pbe_guard_round(g, AP_NONE);
	g->peak.seen = 0;
	g->counted_since = g->lied = AP_NONE;
	g->counted = g->evidence = g->is_checking = g->pause = g->next_pause = 0;
}

/*
 * Discards the data of the current round. Called when the flow no longer uses its receiver's reports for a reason other
 * than the guard.
 */
AP_FN void pbe_guard_interrupt(struct pbe_guard *g)
{
	pbe_guard_round(g, AP_NONE);
	g->counted_since = AP_NONE;
	g->is_checking = 0;
}

/*
 * Whether the reports of a flagged receiver are used again. The receiver reports the capacity `reported`; the path
 * delivers at most `delivered`.
 */
AP_FN int pbe_guard_held(struct pbe_guard *g, ap_u64 now, ap_u64 reported, ap_u64 delivered)
{
	if (g->lied == AP_NONE)
		return 1;
	if (ap_scaled(reported, 9, 10) > delivered)
		g->lied = now;
	if (ap_less(now, g->lied) < PBE_HELD_SPAN)
		return 0;
	pbe_guard_init(g);
	return 1;
}

/* Bytes that `rate` carries in `span`, in units of 1/PBE_BYTE of a byte. */
AP_FN ap_u64 pbe_promised(ap_u64 rate, ap_u64 span)
{
	if (span < AP_SECOND)
		return ap_over_7812500(rate * span);
	return ap_bytes_in_long(rate, span) * PBE_BYTE;
}

/* Whether the reports exceed the round's delivery rate and also the recent maximum delivery rate. */
AP_FN int pbe_guard_is_too_much(const struct pbe_guard *g, ap_u64 span)
{
	ap_u64 mean = ap_rate_of(g->reported / PBE_BYTE, span);
	ap_u64 least = g->least_reported == AP_NONE ? 0 : g->least_reported;
	ap_u64 most = g->peak.seen ? g->peak.value[0] : 0;

	return g->delivered * (10 * PBE_BYTE) < g->reported * 9 && most * 200 < ap_max(2 * least, mean) * 95;
}

AP_FN int pbe_guard_end_check(struct pbe_guard *g, int is_emptied, ap_u64 now)
{
	g->is_checking = 0;
	g->evidence = 0;
	if (is_emptied) {
		g->lied = now;
		return PBE_FLAG;
	}
	g->next_pause = ap_max(g->next_pause * 2, PBE_PAUSE_ROUNDS);
	g->pause = g->next_pause;
	return PBE_RELEASE;
}

/* Evaluates a completed round. If the result is PBE_DO_CHECK, `found` is the delivery rate of the round. */
AP_CALL int pbe_guard_judge(struct pbe_guard *g, ap_u64 now, ap_u64 rtprop)
{
	ap_u64 span;
	int is_emptied;

	if (!g || g->began == AP_NONE || g->least_rtt == AP_NONE)
		return PBE_NOTHING;
	span = ap_less(now, g->began);
	if (g->is_checking) {
		g->check_rounds++;
		is_emptied = g->least_rtt <= g->emptied_least && g->rtts / ap_max(g->rtt_count, 1) <= g->emptied_mean;
		if (!is_emptied && g->check_rounds < PBE_CHECK_ROUNDS)
			return PBE_NOTHING;
		return pbe_guard_end_check(g, is_emptied, now);
	}
	if (g->pause > 0) {
		g->pause--;
		return PBE_NOTHING;
	}
	if (g->app_limited || g->least_rtt <= rtprop + PBE_NO_QUEUE || !pbe_guard_is_too_much(g, span)) {
		g->evidence = ap_less(g->evidence, 1);
		return PBE_NOTHING;
	}
	g->evidence += PBE_ROUND;
	if (g->evidence < PBE_ROUNDS)
		return PBE_NOTHING;
	g->is_checking = 1;
	g->emptied_least = rtprop + ap_less(g->least_rtt, rtprop) / 4;
	g->emptied_mean = g->emptied_least + PBE_NO_QUEUE;
	g->check_rounds = 0;
	g->found = ap_rate_of(g->delivered, span);
	return PBE_DO_CHECK;
}

/* Processes an ACK while the flow uses its receiver's reports or checks them. */
AP_FN int pbe_guard_ack(struct pbe_guard *g, const struct ibbr_ack *a, int round_start, ap_u64 rtprop, ap_u64 reported)
{
	int verdict = PBE_NOTHING;

	if (g->counted_since == AP_NONE) {
		g->counted_since = a->now;
		g->counted = 0;
	} else {
		g->counted += a->acked;
		if (ap_less(a->now, g->counted_since) >= PBE_PEAK_SPAN) {
			ap_window_update(&g->peak, a->now, ap_rate_of(g->counted, a->now - g->counted_since),
					 PBE_PEAK_WINDOW, 1);
			g->counted_since = a->now;
			g->counted = 0;
		}
	}
	if (round_start) {
		verdict = pbe_guard_judge(g, a->now, rtprop);
		pbe_guard_round(g, a->now);
	}
	g->reported += pbe_promised(reported, ap_less(a->now, g->last));
	g->last = a->now;
	g->least_reported = ap_min(g->least_reported, reported);
	g->delivered += a->acked;
	g->least_rtt = ap_min(g->least_rtt, a->rtt);
	if (a->rtt != AP_NONE) {
		g->rtts += a->rtt;
		g->rtt_count++;
	}
	g->app_limited |= !!a->app_limited;
	return verdict;
}

#endif
