/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the twin of PBE-CC's sender knows and hears, and its constants. pbe.h and pbe_guard.h have the rules. */
#ifndef AIRPACE_PBE_STATE_H
#define AIRPACE_PBE_STATE_H

#include "bbr_state.h"

enum pbe_phase { PBE_START, PBE_WIRELESS, PBE_DRAIN, PBE_INTERNET, PBE_FALLBACK, PBE_CHECK, PBE_HELD };

#define PBE_FALLBACK_ROUND_TRIPS 3
#define PBE_RAMP_ROUND_TRIPS 3
#define PBE_INITIAL_PACKETS 10
#define PBE_LEAST_PACKETS 4
#define PBE_FIRST_RATE 1200000

#define PBE_NO_QUEUE (11 * AP_MS)
#define PBE_CHECK_ROUNDS 4
#define PBE_PEAK_WINDOW (3 * AP_SECOND)
#define PBE_PEAK_SPAN (100 * AP_MS)
#define PBE_HELD_SPAN (10 * AP_SECOND)
#define PBE_PAUSE_ROUNDS 32
/* The queue in the base station: spans of the mean, unit of rises and their gain, greatest target, least and greatest span. */
#define PBE_BUFFER_SPANS 32
#define PBE_BUFFER_UNIT (1ULL << 24)
#define PBE_BUFFER_GAIN 4
#define PBE_BUFFER_MOST (25 * AP_MS)
#define PBE_BUFFER_LEAST_SPAN (40 * AP_MS)
#define PBE_BUFFER_MOST_SPAN (16 * AP_SECOND)
/* Evidence is counted in parts of a round, and what was reported in parts of a byte. */
#define PBE_ROUND 16
#define PBE_ROUNDS (3 * PBE_ROUND)
#define PBE_BYTE 1024

/* What a receiver told; the layout of crates/cc/src/pbe/feedback.rs is another. */
struct pbe_fed {
	/* bit/s; AP_NONE for none */
	ap_u64 capacity;
	ap_u64 fair_share;
	/* ns; AP_NONE if it was not measured yet */
	ap_u64 radio_delay;
	/* flags; without `is_told`, nothing of all this was told */
	ap_u32 is_told;
	ap_u32 internet;
	ap_u32 fresh;
	ap_u32 clear;
	ap_u32 carriers;
	/* of carriers, modulo 256 */
	ap_u32 activations;
};

/* What one ACK says besides what BBR hears. */
struct pbe_ack {
	struct ibbr_ack bbr;
	/* The least round-trip time of the connection. */
	ap_u64 least;
	/* When the first of its packets left. */
	ap_u64 oldest_sent;
};

/* Compares what is reported with what is delivered. */
struct pbe_guard {
	/* The round; AP_NONE before the first whole one */
	ap_u64 began;
	ap_u64 last;
	ap_u64 delivered;
	/* parts of PBE_BYTE */
	ap_u64 reported;
	/* AP_NONE if there is none */
	ap_u64 least_reported;
	ap_u64 least_rtt;
	ap_u64 rtts;
	ap_u64 rtt_count;
	ap_u64 app_limited;
	/* Since when how much was delivered, AP_NONE: not counted; and the most that the path delivered lately. */
	ap_u64 counted_since;
	ap_u64 counted;
	struct ap_window peak;
	/* parts of PBE_ROUND */
	ap_u64 evidence;
	/* A check */
	ap_u64 is_checking;
	ap_u64 emptied_least;
	ap_u64 emptied_mean;
	ap_u64 check_rounds;
	/* What the path delivered before it. */
	ap_u64 found;
	/* Rounds until evidence counts again, and the next such pause. */
	ap_u64 pause;
	ap_u64 next_pause;
	/* AP_NONE if the receiver is not flagged */
	ap_u64 lied;
};

/* How much of a queue is kept in the base station. */
struct pbe_buffer {
	/* The present span: the sum of the capacities and their number, and its rounds */
	ap_u64 sum;
	ap_u64 count;
	ap_u64 rounds;
	/* The least round-trip time of the present round, or AP_NONE */
	ap_u64 least_rtt;
	/* The mean capacity of the span before; zero before the first */
	ap_u64 before;
	/* How long the last whole span was, in ns */
	ap_u64 span;
	/* The mean rise times PBE_BUFFER_SPANS, in parts of PBE_BUFFER_UNIT */
	ap_u64 rises;
	/* Of the last round, in ns */
	ap_u64 queue;
	ap_u64 rtprop;
	/* What it aims at, in ns */
	ap_u64 target;
};

/* What every ACK needs comes first, as in struct ibbr. */
struct pbe {
	ap_u64 mss;
	ap_u32 phase;
	ap_u32 silenced;
	/* The answer while BBR does not steer: bytes, and bit/s. */
	ap_u64 cwnd;
	ap_u64 pacing;
	/* The last fresh feedback, and when it came. Before the first: when the first ACK came; AP_NONE before that. */
	struct pbe_fed fed;
	ap_u64 heard;
	ap_u64 delivery_rate;
	/* The rate of the start and wireless states. */
	ap_u64 rate;
	/* A start: it began at AP_NONE if it waits for its first ACK. */
	ap_u64 ramp_began;
	ap_u64 ramp_from;
	ap_u64 ramp_span;
	ap_u64 drain_until;
	struct pbe_buffer buffer;
	struct ap_pbe_tuning tuning;
	struct ibbr bbr;
	struct pbe_guard guard;
};

#endif
