/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What BBR's twin knows and hears, and its constants. bbr.h has the rules. */
#ifndef AIRPACE_BBR_STATE_H
#define AIRPACE_BBR_STATE_H

#include "intf.h"

enum ibbr_state { IBBR_STARTUP, IBBR_DRAIN, IBBR_PROBE_BW, IBBR_PROBE_RTT };

/* Gains are parts of this; 2.885 is 2 / ln 2. */
#define IBBR_UNIT 1000
#define IBBR_HIGH 2885
/* Linux's: what of the bandwidth is sent, 99 %; the window in ProbeBW; and how far a probe tries to go. */
#define IBBR_SENT 990
#define IBBR_WINDOW 2000
#define IBBR_PROBE 1250
#define IBBR_PHASES 8
#define IBBR_INITIAL_PACKETS 10
#define IBBR_LEAST_PACKETS 4
#define IBBR_BTLBW_ROUNDS 10
#define IBBR_RTPROP_WINDOW (10 * AP_SECOND)
#define IBBR_PROBE_RTT_SPAN (200 * AP_MS)
#define IBBR_SLACK_RTPROPS 4
#define IBBR_EXTRA_ROUNDS 5
#define IBBR_EXTRA_CAP (100 * AP_MS)
#define IBBR_EPOCH_LIMIT ((1ULL << 20) * 1500)
/* The policer: rounds of an interval, and the longest; how long its rate is used; two rates that are the same. */
#define IBBR_LT_ROUNDS 4
#define IBBR_LT_MOST_ROUNDS 16
#define IBBR_LT_USE_ROUNDS 48
#define IBBR_LT_SAME_RATE 4000

struct ibbr_ack {
	ap_u64 now;
	ap_u64 acked;
	ap_u64 prior_inflight;
	ap_u64 inflight;
	ap_u64 delivered;
	/* delivered when the newest acknowledged packet left */
	ap_u64 prior_delivered;
	/* AP_NONE if the ACK gives no sample */
	ap_u64 rtt;
	ap_u64 smoothed;
	ap_u64 rate;
	ap_u64 app_limited;
	/* When the newest packet left. */
	ap_u64 newest_sent;
	/* Recoveries of the transport that are over. */
	ap_u64 recovered;
};

/* What it is made with. */
struct ibbr_tuning {
	/* Window in ProbeBW, and what of the bandwidth is sent: parts of IBBR_UNIT. */
	ap_u64 window;
	ap_u64 sent;
	/* Time added to RTprop in the window of ProbeBW. */
	ap_u64 slack;
	/* RTprop is the least of a sliding window, and not the least since it was renewed. */
	ap_u64 is_sliding;
	ap_u64 finds_policers;
};

/* How ProbeBW probes: a gain in parts of IBBR_UNIT, the most that it sends, and whether probes go on while BtlBw grows. */
struct ibbr_probe {
	ap_u64 gain;
	ap_u64 cap;
	ap_u64 while_growing;
};

/* What every ACK needs comes first, as what is not in a processor's cache takes longer than the arithmetic. */
struct ibbr {
	ap_u64 mss;
	ap_u64 state;
	/* the model */
	ap_u64 rounds;
	ap_u64 next_round;
	ap_u64 held_since;
	ap_u64 held_until;
	struct ap_window btlbw;
	/* AP_NONE before the first sample */
	ap_u64 rtprop;
	ap_u64 rtprop_at;
	/* if it is sliding */
	struct ap_window least;
	/* bunches of ACKs */
	ap_u64 epoch;
	ap_u64 epoch_acked;
	ap_u64 buckets[2];
	ap_u32 bucket;
	ap_u32 bucket_rounds;
	ap_u32 conserving;
	ap_u32 recovery_began;
	/*
	 * The phases in which the next cycles begin, less one if above zero: digits to base IBBR_PHASES - 1, the next one
	 * last; and how many began.
	 */
	ap_u64 random;
	ap_u64 draws;
	/* The policer: its rate, and for how many rounds that was obeyed; AP_NONE: it has seen none, obeys none */
	ap_u64 lt_rate;
	ap_u64 lt_obeyed;
	struct ibbr_tuning tuning;

	/* From here on, while it controls. The answer: bytes, and bit/s. */
	ap_u64 cwnd;
	ap_u64 pacing;
	ap_u64 phase;
	ap_u64 phase_since;
	/* BtlBw when the last probe began */
	ap_u64 probed_from;
	struct ibbr_probe probe;
	ap_u64 is_full;
	/* the window */
	ap_u64 prior_cwnd;
	/* It has recovered when so many recoveries are over; AP_NONE: it has. */
	ap_u64 recovery_end;
	ap_u64 lost;
	ap_u64 lost_at_last_ack;
	ap_u64 from_idle;
	ap_u64 has_seen_rtt;
	ap_u64 was_idle;
	ap_u64 rtt_probed;
	/* ProbeRTT: AP_NONE until the window has drained */
	ap_u64 probe_until;
	ap_u64 probe_round_done;
	/* the end of Startup */
	ap_u64 baseline;
	ap_u64 flat_rounds;
	/* the policer; AP_NONE: it samples none */
	ap_u64 lt_since;
	ap_u64 lt_delivered;
	ap_u64 lt_lost;
	ap_u64 lt_rounds;
};

#endif
