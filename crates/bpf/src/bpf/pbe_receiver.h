/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * PBE-CC's receiver for one flow, in integer arithmetic: the delay of the path, and whether the bottleneck is outside
 * the cell. This file is the C port of crates/cc/src/pbe/receiver.rs, delay.rs, bottleneck.rs, growth.rs and
 * explained.rs, which document the reason of each rule. User space measures the capacity of the cell and writes it into
 * the feed.
 *
 * Source: PBE-CC §4.1; PBE-CC §4.2.2; PBE-CC §4.2.3; PBE-CC §5
 *
 * Differs from the Rust controller: on carriers of NR, the Rust controller learns the time of a HARQ retransmission
 * (harq.rs), and the threshold Dth is Dprop + max(3 retransmissions + 3 ms, 12 ms). This file has LTE's constants on all
 * carriers: 27 ms (PBE_RADIO_DELAY), and 11 ms, one retransmission and 3 ms, for the growth of the delay
 * (PBE_MIN_GROWTH). The feed does not contain the learned time. If retransmissions follow after less than 8 ms, as on
 * most 5G carriers, the kernel's receiver detects a queue outside of the cell later than the Rust controller. Capacity,
 * fair share and full subframes come from the Rust code in user space, which knows NR.
 */
#ifndef AIRPACE_PBE_RECEIVER_H
#define AIRPACE_PBE_RECEIVER_H

#include "pbe_state.h"

#define PBE_DPROP_WINDOW (10 * AP_SECOND)
#define PBE_RADIO_DELAY (27 * AP_MS)
#define PBE_SUBFRAME AP_MS
#define PBE_AGREEING_SUBFRAMES 6
#define PBE_MIN_STALE (50 * AP_MS)
#define PBE_MAX_STALE (100 * AP_MS)
/*
 * The mean radio delay is averaged over 2^8 arrivals. It has 16 fractional bits: 8 bits for the averaging, and 8 more.
 */
#define PBE_MEAN_BITS 8
#define PBE_MEAN_POINT 16
#define PBE_GROWTH_PARTS 4
#define PBE_MIN_GROWTH (11 * AP_MS)
/* One-way delays are differences of two clocks: this offset is added so that they are above zero. */
#define PBE_CLOCKS (1ULL << 62)

/* A received packet, or several packets received at once, with the sender's header option. */
struct pbe_arrival {
	/* arrival time by the receiver's clock, ns */
	ap_u64 now;
	/* departure time by the sender's clock, ns; the clock has a resolution of `tick` */
	ap_u64 sent;
	ap_u64 tick;
	ap_u64 bytes;
	ap_u64 packets;
	/* RTprop (ns) and pacing rate (bit/s) of the sender, valid if `has_header` is set; AP_NONE if absent */
	ap_u64 rtprop;
	ap_u64 pacing;
	ap_u32 starting;
	ap_u32 has_header;
};

/* State of the cell at one time, from the feed, and the number of the device's receiving flows. */
struct pbe_cell {
	struct ap_pbe_told told;
	ap_u64 flows;
};

/* Consecutive packets that are all late, or all not late. */
struct pbe_run {
	ap_u64 packets;
	ap_u64 since;
};

struct pbe_receiver {
	ap_u64 mss;
	ap_u64 least_span;
	/* Time over which fewer than Npkt consecutive packets are sufficient; zero disables the rule. */
	ap_u64 span;
	ap_u32 return_needs_rate;
	ap_u32 device_split;
	/* Last values of the sender's option: RTprop (ns) and pacing rate (bit/s); AP_NONE if absent. */
	ap_u64 rtprop;
	ap_u64 pacing;
	ap_u32 starting;
	ap_u32 internet;
	ap_u32 clear;
	ap_u32 reserved;
	/* one-way delay of the last packet, ns, plus PBE_CLOCKS */
	ap_u64 latest;
	struct ap_window dprop;
	struct pbe_run late;
	struct pbe_run timely;
	/* mean delay of the radio in units of 2^-16 ns; AP_NONE before the first sample */
	ap_u64 radio_delay;
	/*
	 * State of a linear start. AP_NONE means: no packet yet (`began`), a part without packets (`least`), no rate
	 * yet (`previous`).
	 */
	ap_u64 began;
	ap_u64 bytes;
	ap_u64 least[PBE_GROWTH_PARTS];
	ap_u64 previous;
};

AP_FN void pbe_growth_reset(struct pbe_receiver *r, ap_u64 began, ap_u64 bytes, ap_u64 previous, ap_u64 excess)
{
	r->began = began;
	r->bytes = bytes;
	r->previous = previous;
	r->least[0] = excess;
	r->least[1] = r->least[2] = r->least[3] = AP_NONE;
}

AP_FN void pbe_receiver_init(struct pbe_receiver *r, const struct ap_pbe_tuning *t, ap_u64 mss)
{
	r->mss = ap_max(mss, 1);
	r->least_span = t->least_span;
	r->span = t->span;
	r->return_needs_rate = t->return_needs_rate;
	r->device_split = t->device_split;
	r->rtprop = r->pacing = r->radio_delay = AP_NONE;
	pbe_growth_reset(r, AP_NONE, 0, AP_NONE, AP_NONE);
}

AP_FN ap_u64 pbe_of_flow(const struct pbe_receiver *r, ap_u64 rate, ap_u64 flows)
{
	flows = r->device_split ? ap_max(flows, 1) : 1;
	return rate == AP_NONE ? AP_NONE : (ap_min(rate, AP_MAX_RATE) + flows / 2) / flows;
}

/* Whether the last radio report is recent enough. */
AP_FN int pbe_is_fresh(ap_u64 rtprop, const struct ap_pbe_told *told, ap_u64 now)
{
	ap_u64 stale;

	rtprop = rtprop == AP_NONE ? 0 : rtprop;
	stale = ap_max(ap_min(2 * rtprop, ap_less(PBE_MAX_STALE, rtprop)), PBE_MIN_STALE);
	return told->heard != 0 && told->carriers > 0 && ap_less(now, told->heard) <= stale;
}

/* Delay of the last packet above the minimum delay. */
AP_FN ap_u64 pbe_excess(const struct pbe_receiver *r)
{
	return ap_less(r->latest, ap_min(ap_window_best(&r->dprop), r->latest));
}

/* Number of bits set in `word`. */
AP_FN ap_u64 pbe_ones(ap_u64 word)
{
	word -= (word >> 1) & 0x5555555555555555ULL;
	word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (word * 0x0101010101010101ULL) >> 56;
}

/*
 * Number of full subframes among the last `count` subframes up to `newest`. The ring has one bit for each of the last
 * 1024 subframes. The bits of a word are read from the highest bit on. The code has no branches, so that the verifier
 * sees one path.
 */
AP_CALL ap_u64 pbe_full_subframes(const struct ap_pbe_feed *f, ap_u64 newest, ap_u64 count)
{
	ap_u64 ones = 0, word, past, taken;
	long long missing;
	int i;

	if (!f)
		return 0;
	count = ap_min(ap_min(count, AP_SUBFRAMES), newest + 1);
	for (i = 0; i <= AP_SUBFRAMES / 64; i++) {
		/*
		 * `past` is the number of bits of this word that are not newer than `newest`. At most `count` bits are
		 * read.
		 */
		past = (newest & 63) + 1;
		missing = count - past;
		asm volatile("" : "+r"(missing));
		taken = past + (missing & (missing >> 63));
		word = *(volatile const ap_u64 *)&f->full[(newest >> 6) & (AP_SUBFRAMES / 64 - 1)];
		word <<= 64 - past;
		/* If no bit is read, the shift is 64, which is too much for one shift instruction. */
		word = word >> ((64 - taken) / 2) >> ((65 - taken) / 2);
		ones += pbe_ones(word);
		count -= taken;
		newest -= taken;
	}
	return ones;
}

/*
 * Whether the last packet met a queue outside of the cell: whether the stored subframes leave more than the permitted
 * delay of the packet unexplained.
 */
AP_FN int pbe_is_late(const struct ap_pbe_feed *f, const struct ap_pbe_told *told, ap_u64 excess)
{
	ap_u64 full;

	if (excess <= PBE_RADIO_DELAY)
		return 0;
	if (!(told->flags & AP_PBE_EXPLAINS))
		return 1;
	excess = ap_min(excess, AP_SUBFRAMES * PBE_SUBFRAME);
	full = pbe_full_subframes(f, told->newest, excess / PBE_SUBFRAME);
	return ap_less(excess, full * PBE_SUBFRAME) > PBE_RADIO_DELAY;
}

AP_FN void pbe_extend(struct pbe_run *run, ap_u64 now, ap_u64 packets)
{
	if (run->packets == 0)
		run->since = now;
	run->packets += packets;
}

AP_FN int pbe_agrees(const struct pbe_run *run, ap_u64 now, ap_u64 needed, ap_u64 span)
{
	return run->packets >= needed || (span && run->packets > 1 && ap_less(now, run->since) >= span);
}

AP_FN void pbe_switch(struct pbe_receiver *r, int internet)
{
	r->internet = internet;
	r->late.packets = r->timely.packets = 0;
	r->clear = 0;
}

/* Npkt = 6 * Ct / MSS, rounded up */
AP_FN ap_u64 pbe_agreeing_packets(const struct pbe_receiver *r, ap_u64 capacity)
{
	ap_u64 bits = 8000 * r->mss;

	return ap_max((PBE_AGREEING_SUBFRAMES * capacity + bits - 1) / bits, 1);
}

AP_FN void pbe_judge(struct pbe_receiver *r, const struct pbe_arrival *a, const struct pbe_cell *c, int is_late)
{
	ap_u64 capacity = pbe_of_flow(r, c->told.capacity, c->flows);
	ap_u64 fair_share = pbe_of_flow(r, c->told.fair_share, c->flows);
	ap_u64 needed = pbe_agreeing_packets(r, capacity == AP_NONE ? 0 : capacity);
	int reached;

	if (is_late) {
		r->timely.packets = 0;
		r->clear = 0;
		if (!(c->told.flags & AP_PBE_ELSEWHERE)) {
			r->late.packets = 0;
			return;
		}
		pbe_extend(&r->late, a->now, a->packets);
		if (!r->internet && pbe_agrees(&r->late, a->now, needed, r->span) &&
		    ap_less(a->now, r->late.since) >= r->least_span)
			pbe_switch(r, 1);
		return;
	}
	r->late.packets = 0;
	pbe_extend(&r->timely, a->now, a->packets);
	r->clear = pbe_agrees(&r->timely, a->now, needed, r->span);
	reached = r->pacing != AP_NONE && r->pacing >= ap_scaled(fair_share == AP_NONE ? 0 : fair_share, 99, 100);
	if (r->internet && r->clear && (reached || !r->return_needs_rate))
		pbe_switch(r, 0);
}

/* Whether the delay rose in all parts of a round trip. */
AP_FN int pbe_delay_rose(const struct pbe_receiver *r)
{
	return r->least[3] != AP_NONE && r->least[0] < r->least[1] && r->least[1] < r->least[2] &&
	       r->least[2] < r->least[3] && r->least[3] > r->least[0] + PBE_MIN_GROWTH;
}

/* Processes a packet of a start. Returns whether the start's rate has stopped growing. */
AP_FN int pbe_growth(struct pbe_receiver *r, const struct pbe_arrival *a, ap_u64 excess)
{
	ap_u64 span = ap_min(r->rtprop, AP_MAX_SPAN), elapsed, rate, part;
	int stalled;

	if (r->began == AP_NONE)
		r->began = a->now;
	elapsed = ap_less(a->now, r->began);
	if (elapsed < span) {
		part = elapsed * PBE_GROWTH_PARTS / span;
		part &= PBE_GROWTH_PARTS - 1;
		r->least[part] = ap_min(r->least[part], excess);
		r->bytes += a->bytes;
		return 0;
	}
	rate = ap_rate_of(r->bytes, span);
	stalled = r->previous != AP_NONE && rate < ap_scaled(r->previous, 105, 100) && pbe_delay_rose(r);
	pbe_growth_reset(r, a->now, a->bytes, rate, excess);
	return stalled;
}

/* Averages the delay of packets that met no queue: the cell had idle PRBs, and the delay is not above Dth. */
AP_FN void pbe_measure_radio_delay(struct pbe_receiver *r, ap_u64 excess)
{
	ap_u64 sample = excess << PBE_MEAN_POINT;

	if (r->radio_delay == AP_NONE)
		r->radio_delay = sample;
	else if (sample >= r->radio_delay)
		r->radio_delay += (sample - r->radio_delay) >> PBE_MEAN_BITS;
	else
		r->radio_delay -= (r->radio_delay - sample) >> PBE_MEAN_BITS;
}

/*
 * Processes a received packet. If the sender's clock has a coarse tick, measured delays are too long by up to one tick,
 * and by half a tick on average; the minimum delay is nearly exact.
 */
AP_CALL int pbe_receiver_packet(struct pbe_receiver *r, const struct pbe_arrival *a, const struct pbe_cell *c,
				const struct ap_pbe_feed *f)
{
	ap_u64 excess;

	if (!r || !a || !c || !f)
		return 0;
	if (a->has_header) {
		r->rtprop = a->rtprop;
		r->pacing = a->pacing;
		r->starting = a->starting;
	}
	r->latest = PBE_CLOCKS + a->now - a->sent;
	ap_window_update(&r->dprop, a->now, r->latest, PBE_DPROP_WINDOW, 0);
	if (!pbe_is_fresh(r->rtprop, &c->told, a->now))
		return 0;
	excess = pbe_excess(r);
	if (c->told.flags & AP_PBE_IDLE && excess <= PBE_RADIO_DELAY)
		pbe_measure_radio_delay(r, ap_less(excess, a->tick / 2));
	pbe_judge(r, a, c, pbe_is_late(f, &c->told, excess));
	if (!r->starting || r->rtprop == AP_NONE)
		pbe_growth_reset(r, AP_NONE, 0, AP_NONE, AP_NONE);
	else if (pbe_growth(r, a, excess) && !r->internet && c->told.flags & AP_PBE_ELSEWHERE)
		pbe_switch(r, 1);
	return 0;
}

/* Computes the feedback of an ACK that is sent now. `r` is null for a flow without packets. */
AP_FN void pbe_receiver_tell(const struct pbe_receiver *r, const struct pbe_cell *c, ap_u64 now, int splits,
			     struct pbe_fed *fed)
{
	ap_u64 flows = splits ? ap_max(c->flows, 1) : 1;

	fed->capacity = c->told.capacity == AP_NONE ? AP_NONE :
			(ap_min(c->told.capacity, AP_MAX_RATE) + flows / 2) / flows;
	fed->fair_share = c->told.fair_share == AP_NONE ? AP_NONE :
			  (ap_min(c->told.fair_share, AP_MAX_RATE) + flows / 2) / flows;
	fed->carriers = c->told.carriers;
	fed->activations = c->told.activations;
	fed->is_told = 1;
	fed->fresh = pbe_is_fresh(r ? r->rtprop : AP_NONE, &c->told, now);
	fed->internet = r ? r->internet : 0;
	fed->clear = r ? r->clear : 0;
	fed->radio_delay = r && r->radio_delay != AP_NONE ? r->radio_delay >> PBE_MEAN_POINT : AP_NONE;
}

#endif
