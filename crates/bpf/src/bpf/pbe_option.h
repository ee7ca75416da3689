/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * How a PBE-CC receiver's feedback rides in TCP's headers: an experimental option on its pure ACKs, offered in the SYN and
 * confirmed in the SYN-ACK by the option without contents. crates/bpf/src/option.rs writes the contents.
 *
 *  0     254                              4…7   bit 31: the bottleneck is in the Internet
 *  1     length: 4, 8 or 12                     bit 30: the telemetry is fresh
 *  2…3   0xA19B, who uses it                    bit 29: the last Npkt packets met no queue
 *                                               bits 14 to 27: the capacity Ct; bits 0 to 13: the fair share Cf
 *                                         8     active carriers
 *                                         9     activations of carriers so far, modulo 256
 *                                         10…11 delay of the radio, 10 µs; all ones unknown
 *
 * A rate is (512 + the low 9 bits) * 2^(the high 5 bits) bit/s, and all ones is none: right to a thousandth. All numbers
 * are big-endian. Beside two SACK blocks and time stamps there is room for 8 bytes only: the last four are left out, and
 * what they said last holds.
 *
 * Source: RFC 6994 §3; PBE-CC §5
 * Chosen: the identifier, which is not registered; and the shape, as the paper's interval alone fills all the room.
 */
#ifndef AIRPACE_PBE_OPTION_H
#define AIRPACE_PBE_OPTION_H

#include "pbe_state.h"

#define PBE_OPTION_KIND 254
#define PBE_OPTION_EXID_HIGH 0xA1
#define PBE_OPTION_EXID_LOW 0x9B
/* Lengths: an offer, without what seldom changes, and with it. */
#define PBE_OPTION_OFFER 4
#define PBE_OPTION_SHORT 8
#define PBE_OPTION_LONG 12
/* In the first byte of the contents. */
#define PBE_OPTION_FRESH 0x40

#define PBE_RATE_NONE 0x3fff

AP_FN ap_u64 pbe_option_rate(ap_u32 code)
{
	if (code == PBE_RATE_NONE)
		return AP_NONE;
	return ap_min((ap_u64)(512 + (code & 511)) << (code >> 9 & 31), AP_MOST_RATE);
}

/* Reads the contents of an option of `length` bytes, of which the first four are not given. */
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
