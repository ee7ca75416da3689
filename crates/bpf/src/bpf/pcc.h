/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Monitor intervals in integer arithmetic: the C port of crates/cc/src/pcc/interval.rs, and of the intervals' state in
 * crates/cc/src/pcc.rs.
 *
 * Transmissions are numbered consecutively. The fate of a transmission counts for the interval in which it was sent. Of
 * the round-trip times, only the mean is stored, because MORC needs no other value.
 */
#ifndef AIRPACE_PCC_H
#define AIRPACE_PCC_H

#include "intf.h"

/* Maximum number of intervals that wait for ACKs at the same time. */
#define PCC_INTERVALS 32
#define PCC_AT(n) ((n) & (PCC_INTERVALS - 1))

/* Maximum time between two packets that does not count as a pause of the application. */
#define PCC_NO_PAUSE (2 * AP_MS)

/* Unit of loss fractions: 2^-30. */
#define PCC_ONE (1ULL << 30)

enum pcc_role { PCC_WAITING, PCC_STEP };

/* The size is two cache lines, because an ACK accesses the cache lines of each interval that waits for ACKs. */
struct pcc_interval {
	/* The interval's packets have numbers from `first` up to, but not including, `end`. */
	ap_u64 first;
	ap_u64 end;
	ap_u64 acked;
	ap_u64 acked_bytes;
	/*
	 * Times of the first and last ACK (AP_NONE if there was no ACK), and bytes acknowledged after the time of the
	 * first ACK.
	 */
	ap_u64 first_ack;
	ap_u64 last_ack;
	ap_u64 after_first;
	ap_u64 rtt_sum;
	ap_u32 rtts;
	/* Whether slow start waits for the interval's report (enum pcc_role). */
	ap_u32 role;
	ap_u64 lost;
	/* end of the interval; AP_NONE while the interval is being sent */
	ap_u64 closed;
	ap_u64 sent;
	ap_u64 sent_bytes;
	ap_u64 begin;
	/* Time at which the interval has its full length. */
	ap_u64 due;
	ap_u64 rate;
};

/* The intervals, oldest first. The packets of the last interval are being sent. */
struct pcc {
	ap_u64 head;
	ap_u64 count;
	struct pcc_interval at[PCC_INTERVALS];
};

/* Results of an interval. Rates in bit/s, fractions in units of 1/PCC_ONE, times in ns. */
struct pcc_report {
	ap_u64 rate;
	ap_u64 role;
	ap_u64 sent_rate;
	ap_u64 acked_rate;
	/* rate at which the interval's packets arrived; AP_NONE if all their ACKs arrived at the same time */
	ap_u64 received_rate;
	ap_u64 packets;
	ap_u64 lost;
	ap_u64 loss;
	ap_u64 rtt;
};

/* Packets with consecutive numbers. */
struct pcc_packets {
	ap_u64 number;
	ap_u64 count;
	/* size of each packet */
	ap_u64 bytes;
};

AP_FN void pcc_begin(struct pcc_interval *it, ap_u64 now, ap_u64 number, ap_u64 span)
{
	it->begin = now;
	it->due = now + span;
	it->closed = AP_NONE;
	it->first = number;
	it->end = AP_NONE;
	it->sent = it->sent_bytes = it->acked = it->acked_bytes = it->lost = 0;
	it->first_ack = AP_NONE;
	it->last_ack = it->after_first = it->rtts = it->rtt_sum = 0;
}

AP_FN struct pcc_interval *pcc_newest(struct pcc *p)
{
	return &p->at[PCC_AT(p->head + p->count - 1)];
}

AP_FN void pcc_count_sent(struct pcc *p, const struct pcc_packets *sent)
{
	struct pcc_interval *it = pcc_newest(p);

	if (!p->count)
		return;
	it->sent += sent->count;
	it->sent_bytes += sent->count * sent->bytes;
}

/* Number of packets of `of` that belong to the interval `it`. */
AP_FN ap_u64 pcc_share(const struct pcc_interval *it, const struct pcc_packets *of)
{
	return ap_less(ap_min(of->number + of->count, it->end), ap_max(of->number, it->first));
}

AP_FN void pcc_acked(struct pcc_interval *it, ap_u64 now, const struct pcc_packets *acked, int were_lost)
{
	ap_u64 count = pcc_share(it, acked);

	if (!count)
		return;
	it->acked += count;
	it->acked_bytes += count * acked->bytes;
	if (were_lost)
		it->lost = ap_less(it->lost, count);
	if (it->first_ack == AP_NONE) {
		it->first_ack = it->last_ack = now;
	} else if (now > it->first_ack) {
		it->last_ack = now;
		it->after_first += count * acked->bytes;
	}
}

AP_FN void pcc_rtt(struct pcc_interval *it, ap_u64 newest, ap_u64 rtt)
{
	if (newest < it->first || newest >= it->end)
		return;
	it->rtts++;
	it->rtt_sum += rtt;
}

AP_FN int pcc_is_complete(const struct pcc_interval *it)
{
	return it->closed != AP_NONE && it->acked + it->lost >= it->sent;
}

AP_FN void pcc_report(const struct pcc_interval *it, ap_u64 smoothed, struct pcc_report *r)
{
	ap_u64 span = ap_less(it->closed, it->begin);
	ap_u64 spacing = ap_less(it->last_ack, it->first_ack);

	r->rate = it->rate;
	r->role = it->role;
	r->packets = ap_max(it->sent, 1);
	r->lost = ap_min(it->lost, r->packets);
	r->loss = ap_min(r->lost, 1ULL << 32) * PCC_ONE / r->packets;
	r->sent_rate = span ? ap_rate_of(it->sent_bytes, span) : it->rate;
	r->acked_rate = ap_rate_of(it->acked_bytes, span);
	r->received_rate = it->first_ack != AP_NONE && spacing ? ap_rate_of(it->after_first, spacing) : AP_NONE;
	r->rtt = it->rtts ? it->rtt_sum / it->rtts : smoothed;
}

AP_FN ap_u64 pcc_fastest(const struct pcc *p)
{
	ap_u64 fastest = 0, i;

	for (i = 0; i < PCC_INTERVALS; i++) {
		if (i >= p->count)
			break;
		fastest = ap_max(fastest, p->at[PCC_AT(p->head + i)].rate);
	}
	return fastest;
}

#endif
