/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Exchange between PBE-CC's sender and receiver in TCP headers: an experimental TCP option. The SYN offers the option
 * and the SYN-ACK confirms it; in both, the option has no contents. On pure ACKs the option carries the receiver's
 * feedback, on data the sender's state.
 *
 *  0     254                              4…7   bit 31: the bottleneck is in the Internet
 *  1     length: 4, 8 or 12                     bit 30: the telemetry is fresh
 *  2…3   0xA19B, the identifier                 bit 29: the last Npkt packets met no queue
 *                                               bits 14 to 27: the capacity Ct; bits 0 to 13: the fair share Cf
 *        on ACKs                          8     active carriers
 *                                         9     total activations of carriers, modulo 256
 *                                         10…11 delay of the radio, 10 µs; all ones unknown
 *
 *        on data, length 8                4…7   bit 31: in the linear start
 *                                               bit 30: the sender's time stamps are in µs, and not in ms
 *                                               bits 14 to 29: RTprop in 2^15 ns; zero unknown
 *                                               bits 0 to 13: the pacing rate
 *
 * A rate is (512 + the low 9 bits) * 2^(the high 5 bits) bit/s, exact to a thousandth; all ones means no rate. All
 * numbers are big-endian. With two SACK blocks and time stamps there is space for only 8 bytes. The last four bytes are
 * then omitted, and their previous values remain valid.
 *
 * Source: RFC 6994 §3; PBE-CC §5
 * Chosen: the identifier, which is not registered; and the encoding, because the encoding of a rate in the paper, as an
 * interval, alone fills the available space.
 */
#ifndef AIRPACE_PBE_OPTION_H
#define AIRPACE_PBE_OPTION_H

#include "pbe_receiver.h"

#define PBE_OPTION_KIND 254
#define PBE_OPTION_EXID_HIGH 0xA1
#define PBE_OPTION_EXID_LOW 0x9B
/* Lengths of the option in bytes: in the offer, without its rarely changing fields, and complete. */
#define PBE_OPTION_OFFER 4
#define PBE_OPTION_SHORT 8
#define PBE_OPTION_LONG 12
#define PBE_RTPROP_SHIFT 15
#define PBE_MAX_RTPROP 0xffff

#define PBE_RATE_NONE 0x3fff

AP_FN ap_u64 pbe_option_rate(ap_u32 code)
{
	if (code == PBE_RATE_NONE)
		return AP_NONE;
	return ap_min((ap_u64)(512 + (code & 511)) << (code >> 9 & 31), AP_MAX_RATE);
}

/*
 * Encodes a rate. Rates below 512 bit/s are encoded as "no rate". A mantissa that is rounded up to 1024 increments the
 * exponent.
 */
AP_CALL ap_u32 pbe_option_code(ap_u64 rate)
{
	ap_u64 rest = ap_min(rate, AP_MAX_RATE), exponent = 0;
	int i;

	if (rate == AP_NONE || rate < 512)
		return PBE_RATE_NONE;
	for (i = 4; i >= 0; i--) {
		/* This condition holds if the rate has more than ten bits even after a shift by 2^i. */
		if (rest >> (9 + (1 << i))) {
			rest >>= 1 << i;
			exponent += 1 << i;
		}
	}
	rest = exponent ? (ap_min(rate, AP_MAX_RATE) + (1ULL << exponent >> 1)) >> exponent : rest;
	return ap_min((exponent << 9) + (rest - 512), PBE_RATE_NONE - 1);
}

AP_FN void pbe_option_put(unsigned char *to, ap_u32 word)
{
	to[0] = word >> 24;
	to[1] = word >> 16;
	to[2] = word >> 8;
	to[3] = word;
}

/* Writes the contents of the option on an ACK. */
AP_FN void pbe_option_write(const struct pbe_fed *fed, unsigned char *to)
{
	ap_u64 delay = fed->radio_delay == AP_NONE ? 0xffff : ap_min(fed->radio_delay / (10 * AP_US), 0xfffe);
	ap_u32 flags = fed->internet << 31 | fed->fresh << 30 | fed->clear << 29;

	pbe_option_put(to, flags | pbe_option_code(fed->capacity) << 14 | pbe_option_code(fed->fair_share));
	to[4] = fed->carriers;
	to[5] = fed->activations;
	to[6] = delay >> 8;
	to[7] = delay;
}

/* Writes the contents of the option on data. */
AP_FN void pbe_header_write(int starting, int has_us, ap_u64 rtprop, ap_u64 pacing, unsigned char *to)
{
	ap_u32 units = rtprop == AP_NONE ? 0 : ap_min(ap_max(rtprop >> PBE_RTPROP_SHIFT, 1), PBE_MAX_RTPROP);

	pbe_option_put(to, (ap_u32)!!starting << 31 | (ap_u32)!!has_us << 30 | units << 14 | pbe_option_code(pacing));
}

/* Reads the contents of the option on data into an arrival. */
AP_FN void pbe_header_read(struct pbe_arrival *a, const unsigned char *from)
{
	ap_u32 word = (ap_u32)from[0] << 24 | (ap_u32)from[1] << 16 | (ap_u32)from[2] << 8 | from[3];
	ap_u64 units = word >> 14 & PBE_MAX_RTPROP;

	a->has_header = 1;
	a->starting = word >> 31;
	a->tick = word >> 30 & 1 ? AP_US : AP_MS;
	a->rtprop = units ? units << PBE_RTPROP_SHIFT : AP_NONE;
	a->pacing = pbe_option_rate(word & PBE_RATE_NONE);
}

/* Reads the contents of an option of `length` bytes. `from` points to the byte after the option's first four bytes. */
AP_FN void pbe_option_read(struct pbe_fed *fed, const unsigned char *from, int length)
{
	ap_u32 word = (ap_u32)from[0] << 24 | (ap_u32)from[1] << 16 | (ap_u32)from[2] << 8 | from[3];
	ap_u32 delay;

	fed->is_told = 1;
	fed->internet = word >> 31;
	fed->fresh = word >> 30 & 1;
	fed->clear = word >> 29 & 1;
	fed->capacity = pbe_option_rate(word >> 14 & PBE_RATE_NONE);
	fed->fair_share = pbe_option_rate(word & PBE_RATE_NONE);
	if (length < PBE_OPTION_LONG)
		return;
	fed->carriers = from[4];
	fed->activations = from[5];
	delay = (ap_u32)from[6] << 8 | from[7];
	fed->radio_delay = delay == 0xffff ? AP_NONE : (ap_u64)delay * 10 * AP_US;
}

#endif
