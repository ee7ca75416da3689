/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* State, inputs and constants of the C port of PBE-CC's sender. pbe.h and pbe_guard.h contain the rules. */
#ifndef AIRPACE_PBE_STATE_H
#define AIRPACE_PBE_STATE_H

#include "bbr_state.h"

enum pbe_phase { PBE_START, PBE_WIRELESS, PBE_DRAIN, PBE_INTERNET, PBE_FALLBACK, PBE_CHECK, PBE_HELD };

#define PBE_FALLBACK_ROUND_TRIPS 3
#define PBE_RAMP_ROUND_TRIPS 3
#define PBE_INITIAL_PACKETS 10
#define PBE_MIN_PACKETS 4
#define PBE_FIRST_RATE 1200000

#define PBE_NO_QUEUE (11 * AP_MS)
#define PBE_CHECK_ROUNDS 4
#define PBE_PEAK_WINDOW (3 * AP_SECOND)
#define PBE_PEAK_SPAN (100 * AP_MS)
#define PBE_HELD_SPAN (10 * AP_SECOND)
#define PBE_PAUSE_ROUNDS 32
/*
 * Constants for the queue in the base station: number of spans over which rises are averaged, unit and gain of rises,
 * maximum target, minimum and maximum span.
 */
#define PBE_BUFFER_SPANS 32
#define PBE_BUFFER_UNIT (1ULL << 24)
#define PBE_BUFFER_GAIN 4
#define PBE_BUFFER_MAX (25 * AP_MS)
#define PBE_BUFFER_MIN_SPAN (40 * AP_MS)
#define PBE_BUFFER_MAX_SPAN (16 * AP_SECOND)
/* Evidence is counted in units of 1/PBE_ROUND of a round, and reported bytes in units of 1/PBE_BYTE of a byte. */
#define PBE_ROUND 16
#define PBE_ROUNDS (3 * PBE_ROUND)
#define PBE_BYTE 1024

/* Contents of a receiver's feedback. Its layout differs from the layout in crates/cc/src/pbe/feedback.rs. */
struct pbe_fed {
	/* capacity Ct and fair share Cf, bit/s; AP_NONE: no rate */
	ap_u64 capacity;
	ap_u64 fair_share;
	/* delay of the radio, ns; AP_NONE if not measured yet */
	ap_u64 radio_delay;
	/* flags; without `is_told`, all other members are invalid */
	ap_u32 is_told;
	ap_u32 internet;
	ap_u32 fresh;
	ap_u32 clear;
	ap_u32 carriers;
	/* number of carrier activations, modulo 256 */
	ap_u32 activations;
};

/* Contents of one ACK: BBR's input, and two further times. */
struct pbe_ack {
	struct ibbr_ack bbr;
	/* The minimum round-trip time of the connection, ns. */
	ap_u64 least;
	/* Send time of the first packet that the ACK acknowledges, ns. */
	ap_u64 oldest_sent;
};

/* Compares the reported capacity with the delivered bytes. */
struct pbe_guard {
	/* Start of the current round; AP_NONE before the first complete round */
	ap_u64 began;
	ap_u64 last;
	ap_u64 delivered;
	/* reported rate integrated over the round, in units of 1/PBE_BYTE of a byte */
	ap_u64 reported;
	/* minimum reported rate of the round; AP_NONE if no report arrived in this round */
	ap_u64 least_reported;
	ap_u64 least_rtt;
	ap_u64 rtts;
	ap_u64 rtt_count;
	ap_u64 app_limited;
	/*
	 * Start time of the current delivery-rate measurement (AP_NONE: none), bytes delivered since then, and the
	 * recent maximum delivery rate.
	 */
	ap_u64 counted_since;
	ap_u64 counted;
	struct ap_window peak;
	/* counter of evidence, in units of 1/PBE_ROUND of a round */
	ap_u64 evidence;
	/* State of a check */
	ap_u64 is_checking;
	ap_u64 emptied_least;
	ap_u64 emptied_mean;
	ap_u64 check_rounds;
	/* Delivery rate that was measured before the check. */
	ap_u64 found;
	/* Number of rounds until evidence counts again, and the length of the next such pause in rounds. */
	ap_u64 pause;
	ap_u64 next_pause;
	/*
	 * Last time at which a flagged receiver reported more than was delivered; AP_NONE if the receiver is not
	 * flagged
	 */
	ap_u64 lied;
};

/* State from which the size of the flow's queue in the base station is computed. */
struct pbe_buffer {
	/* Current span: sum of the capacity samples, number of samples, and number of rounds */
	ap_u64 sum;
	ap_u64 count;
	ap_u64 rounds;
	/* Minimum round-trip time of the current round; AP_NONE without a sample */
	ap_u64 least_rtt;
	/* Mean capacity of the previous span; zero before the first span */
	ap_u64 before;
	/* Duration of the last complete span, ns */
	ap_u64 span;
	/* Mean relative rise of the capacity, multiplied by PBE_BUFFER_SPANS, in units of 1/PBE_BUFFER_UNIT */
	ap_u64 rises;
	/* Queueing delay of the last round, and RTprop, ns */
	ap_u64 queue;
	ap_u64 rtprop;
	/* Target queueing delay, ns */
	ap_u64 target;
};

/* The members that every ACK uses are first, as in struct ibbr. */
struct pbe {
	ap_u64 mss;
	ap_u32 phase;
	ap_u32 silenced;
	/* The decision while BBR does not control the flow: window in bytes, pacing rate in bit/s. */
	ap_u64 cwnd;
	ap_u64 pacing;
	/*
	 * Last fresh feedback, and its arrival time. Before the first feedback, `heard` is the time of the first ACK,
	 * and AP_NONE before that ACK.
	 */
	struct pbe_fed fed;
	ap_u64 heard;
	ap_u64 delivery_rate;
	/* Rate of the start and wireless phases, bit/s. */
	ap_u64 rate;
	/* Linear start. `ramp_began` is AP_NONE while the start waits for its first ACK. */
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
