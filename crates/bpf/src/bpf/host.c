/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Functions by which tests on the host call the C ports of the controllers. */
#include "active.h"
#include "bbr.h"
#include "biscay.h"
#include "morc.h"
#include "pbe.h"
#include "pbe_option.h"
#include "split.h"
#include "window.h"

ap_u64 ap_host_biscay_words(void)
{
	return (sizeof(struct biscay) + 7) / 8;
}

void ap_host_biscay_init(struct biscay *b, const struct ap_tuning *t, ap_u64 mss)
{
	biscay_init(b, t, mss);
}

void ap_host_biscay_sent(struct biscay *b, ap_u64 now, ap_u64 bytes, ap_u32 is_first, ap_u32 app_limited)
{
	biscay_on_sent(b, now, bytes, is_first, app_limited);
}

void ap_host_biscay_ack(struct biscay *b, const struct biscay_ack *a, const struct biscay_radio *r)
{
	biscay_on_ack(b, a, r);
}

void ap_host_biscay_loss(struct biscay *b, ap_u64 lost, ap_u32 is_silence, const struct biscay_radio *r)
{
	biscay_on_loss(b, lost, is_silence, r);
}

void ap_host_biscay_before_send(struct biscay *b, ap_u64 now, const struct biscay_radio *r)
{
	biscay_before_send(b, now, r);
}

/* Writes to `out`: state, window in bytes, pacing rate in bit/s, end-to-end bandwidth in bit/s. */
void ap_host_biscay_answer(const struct biscay *b, ap_u64 out[4])
{
	out[0] = b->state;
	out[1] = b->cwnd;
	out[2] = b->pacing;
	out[3] = b->end_to_end;
}

ap_u64 ap_host_morc_words(void)
{
	return (sizeof(struct morc) + 7) / 8;
}

void ap_host_morc_init(struct morc *m, const struct ap_morc_tuning *t, ap_u64 mss)
{
	morc_init(m, t, mss);
}

void ap_host_morc_sent(struct morc *m, ap_u64 now, const struct pcc_packets *sent, ap_u32 app_limited)
{
	morc_before_send(m, now, sent->number);
	morc_on_sent(m, now, sent, app_limited);
}

/* Processes the ACK itself. The caller then reports the ACK's packets and finally calls the report function. */
void ap_host_morc_ack(struct morc *m, const struct morc_ack *a)
{
	morc_on_ack(m, a);
}

void ap_host_morc_acked(struct morc *m, const struct pcc_packets *acked, ap_u32 were_lost)
{
	morc_on_acked(m, acked, were_lost, 0, AP_NONE);
}

void ap_host_morc_after_ack(struct morc *m, const struct morc_ack *a)
{
	struct pcc_packets none = {};

	morc_on_acked(m, &none, 0, a->newest, a->rtt);
	morc_report(m);
}

void ap_host_morc_lost(struct morc *m, const struct pcc_packets *lost)
{
	morc_on_lost(m, lost);
}

void ap_host_morc_after_loss(struct morc *m)
{
	morc_report(m);
}

/* Writes to `out`: phase, window in bytes, pacing rate in bit/s, and whether the flow competes with a rival. */
void ap_host_morc_answer(const struct morc *m, ap_u64 out[4])
{
	out[0] = m->phase;
	out[1] = m->cwnd;
	out[2] = m->pacing;
	out[3] = m->phase == MORC_ADJUSTING && m->rival != AP_NONE;
}

ap_u64 ap_host_bbr_words(void)
{
	return (sizeof(struct ibbr) + 7) / 8;
}

void ap_host_bbr_init(struct ibbr *b, ap_u64 mss)
{
	ibbr_init(b, mss);
}

/* Sets the next random number from the caller's generator. Returns how many random numbers were used. */
ap_u64 ap_host_bbr_random(struct ibbr *b, ap_u64 random)
{
	b->random = random;
	return b->draws;
}

void ap_host_bbr_sent(struct ibbr *b, ap_u64 now, ap_u32 is_first, ap_u32 app_limited)
{
	ibbr_on_sent(b, now, is_first, app_limited);
}

void ap_host_bbr_ack(struct ibbr *b, const struct ibbr_ack *a)
{
	ibbr_on_ack(b, a);
}

void ap_host_bbr_loss(struct ibbr *b, ap_u64 lost, ap_u32 is_silence, ap_u64 recovered)
{
	ibbr_on_loss(b, lost, is_silence, recovered);
}

/* Writes to `out`: state, window in bytes, pacing rate in bit/s. */
void ap_host_bbr_answer(const struct ibbr *b, ap_u64 out[3])
{
	out[0] = b->state;
	out[1] = ap_max(b->cwnd, b->mss);
	out[2] = ap_max(b->pacing, ibbr_least_rate(b));
}

ap_u64 ap_host_pbe_words(void)
{
	return (sizeof(struct pbe) + 7) / 8;
}

void ap_host_pbe_init(struct pbe *p, const struct ap_pbe_tuning *t, ap_u64 mss)
{
	pbe_init(p, t, mss);
}

/*
 * Sets the next random numbers from the caller's generator, encoded as in struct ibbr. Returns how many random numbers
 * were used.
 */
ap_u64 ap_host_pbe_random(struct pbe *p, ap_u64 random)
{
	p->bbr.random = random;
	return p->bbr.draws;
}

void ap_host_pbe_sent(struct pbe *p, ap_u64 now, ap_u32 is_first, ap_u32 app_limited)
{
	ibbr_on_sent(&p->bbr, now, is_first, app_limited);
}

void ap_host_pbe_ack(struct pbe *p, const struct pbe_ack *a, const struct pbe_fed *told)
{
	pbe_on_ack(p, a, told);
}

void ap_host_pbe_feedback(struct pbe *p, ap_u64 now, const struct pbe_fed *told)
{
	pbe_on_feedback(p, now, told);
}

void ap_host_pbe_loss(struct pbe *p, ap_u64 lost, ap_u32 is_silence, ap_u64 recovered)
{
	pbe_on_loss(p, lost, is_silence, recovered);
}

void ap_host_pbe_before_send(struct pbe *p, ap_u64 now)
{
	pbe_before_send(p, now);
}

void ap_host_pbe_option(struct pbe_fed *fed, const unsigned char *contents, ap_u32 length)
{
	pbe_option_read(fed, contents, length);
}

void ap_host_pbe_option_write(const struct pbe_fed *fed, unsigned char *contents)
{
	pbe_option_write(fed, contents);
}

void ap_host_pbe_header_write(ap_u32 starting, ap_u32 has_us, ap_u64 rtprop, ap_u64 pacing, unsigned char *contents)
{
	pbe_header_write(starting, has_us, rtprop, pacing, contents);
}

void ap_host_pbe_header_read(struct pbe_arrival *a, const unsigned char *contents)
{
	pbe_header_read(a, contents);
}

ap_u64 ap_host_pbe_receiver_words(void)
{
	return (sizeof(struct pbe_receiver) + 7) / 8;
}

void ap_host_pbe_receiver_init(struct pbe_receiver *r, const struct ap_pbe_tuning *t, ap_u64 mss)
{
	pbe_receiver_init(r, t, mss);
}

/* The cell's state according to the last record in `f`, with this number of flows. */
AP_FN struct pbe_cell ap_host_pbe_cell(const struct ap_pbe_feed *f, ap_u64 flows)
{
	struct pbe_cell c = { .told = f->told[f->sequence & 1], .flows = flows };

	return c;
}

void ap_host_pbe_receiver_packet(struct pbe_receiver *r, const struct pbe_arrival *a, const struct ap_pbe_feed *f,
				 ap_u64 flows)
{
	struct pbe_cell c = ap_host_pbe_cell(f, flows);

	pbe_receiver_packet(r, a, &c, f);
}

void ap_host_pbe_receiver_tell(const struct pbe_receiver *r, const struct ap_pbe_feed *f, ap_u64 flows, ap_u64 now,
			       struct pbe_fed *fed)
{
	struct pbe_cell c = ap_host_pbe_cell(f, flows);

	pbe_receiver_tell(r, &c, now, r->device_split, fed);
}

/* Writes to `out`: phase, the state of BBR, window in bytes, pacing rate in bit/s. */
void ap_host_pbe_answer(const struct pbe *p, ap_u64 out[4])
{
	int is_bbr = pbe_is_steered_by_bbr(p);

	out[0] = p->phase;
	out[1] = p->bbr.state;
	out[2] = is_bbr ? pbe_bbr_cwnd(p) : p->cwnd;
	out[3] = is_bbr ? pbe_bbr_pacing(p) : p->pacing;
}

ap_u64 ap_host_active_words(void)
{
	return sizeof(struct ap_host) / 8;
}

/* Records that a flow sends bytes. Returns the flow's new last slot. */
ap_u64 ap_host_active_sends(struct ap_host *h, ap_u64 last, ap_u64 now)
{
	active_sends(h, &last, now);
	return last;
}

/*
 * Records that a flow, and thereby its application, sends bytes. `before`: the flow's previous application; `is_same`:
 * whether this is `app`.
 */
void ap_host_apps_sends(struct ap_host *h, struct ap_host *apps, struct active_flow *flow, ap_u64 name,
			struct active_app *app, struct active_app *before, ap_u32 is_same, ap_u64 now)
{
	ap_u64 was = active_sends(h, &flow->last, now);

	if (was != AP_NONE)
		active_app_sends(apps, flow, name, app, is_same ? app : before, was, now);
}

void ap_host_use(struct ap_use *use, ap_u64 now, ap_u64 bytes)
{
	active_use(use, now, bytes);
}

ap_u64 ap_host_used(const struct ap_use *use, ap_u64 now)
{
	return active_used(use, now);
}

void ap_host_split(ap_u32 policy, const struct split_view *seen, struct split_part *part)
{
	split_part(part, policy, seen);
}

ap_u64 ap_host_window_words(void)
{
	return sizeof(struct window) / 8;
}

void ap_host_window_init(struct window *w)
{
	window_init(w);
}

void ap_host_window_echo(struct window *w, const struct ap_tuning *t, ap_u64 now, ap_u64 rtt)
{
	window_on_echo(w, t, now, rtt);
}

ap_u64 ap_host_window(struct window *w, const struct ap_tuning *t, ap_u64 now, ap_u64 mss, ap_u64 sampled,
		      const struct split_part *part)
{
	return window_of(w, t, now, mss, sampled, part);
}

/* Writes to `out`: number of active flows, and the time until which this number is valid. */
void ap_host_active(const struct ap_host *h, ap_u64 out[2])
{
	out[0] = h->flows;
	out[1] = h->until;
}

ap_u64 ap_host_log2(ap_u64 x)
{
	return ap_log2(x);
}

ap_u64 ap_host_bytes_in(ap_u64 rate, ap_u64 span)
{
	return ap_bytes_in(rate, span);
}

ap_u64 ap_host_rate_of(ap_u64 bytes, ap_u64 span)
{
	return ap_rate_of(bytes, span);
}

ap_u64 ap_host_scaled(ap_u64 value, ap_u64 num, ap_u64 den)
{
	return ap_scaled(value, num, den);
}

/* Writes the sizes and offsets of the shared layouts to `out`, for a test. */
void ap_host_layout(ap_u64 out[33])
{
	out[0] = AP_LAYOUT;
	out[1] = sizeof(struct ap_feed);
	out[2] = __builtin_offsetof(struct ap_feed, told);
	out[3] = sizeof(struct ap_told);
	out[4] = sizeof(struct ap_tuning);
	out[5] = __builtin_offsetof(struct ap_tuning, tolerance);
	out[6] = sizeof(struct biscay_ack);
	out[7] = sizeof(struct biscay_radio);
	out[8] = sizeof(struct ap_morc_tuning);
	out[9] = __builtin_offsetof(struct ap_morc_tuning, rival);
	out[10] = sizeof(struct morc_ack);
	out[11] = sizeof(struct pcc_packets);
	out[12] = sizeof(struct ibbr_ack);
	out[13] = sizeof(struct ap_pbe_tuning);
	out[14] = __builtin_offsetof(struct ap_pbe_tuning, sent);
	out[15] = sizeof(struct pbe_ack);
	out[16] = sizeof(struct pbe_fed);
	out[17] = sizeof(struct ap_pbe_feed);
	out[18] = sizeof(struct ap_totals);
	out[19] = __builtin_offsetof(struct ap_totals, confirmed);
	out[20] = sizeof(struct ap_host);
	out[21] = __builtin_offsetof(struct ap_host, until);
	out[22] = sizeof(struct active_app) - sizeof(struct ap_host);
	out[23] = sizeof(struct active_flow);
	out[24] = sizeof(struct ap_use);
	out[25] = sizeof(struct split_view);
	out[26] = sizeof(struct split_part);
	out[27] = sizeof(struct ap_shares);
	out[28] = sizeof(struct ap_pbe_told);
	out[29] = __builtin_offsetof(struct ap_pbe_feed, full);
	out[30] = sizeof(struct pbe_arrival);
	out[31] = sizeof(struct ap_shown);
	out[32] = __builtin_offsetof(struct ap_shown, rate);
}
