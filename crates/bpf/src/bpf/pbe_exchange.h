/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Exchange of feedback between PBE-CC's sender and receiver in the kernel: programs that are attached to a control group or
 * to a network device. Both endpoints run the same programs.
 *
 *  pbe_options     offers the option in the SYN. If the peer confirms the option: on data, writes and reads the sender's
 *                  state; on pure ACKs, writes and reads the receiver's measurements
 *  pbe_downloads   counts the sockets that receive data and therefore share the radio
 *  pbe_room        at a network device: if SACK blocks leave no space for the option, replaces the last block by it
 *
 * Source: RFC 6994; Linux include/uapi/linux/bpf.h
 */
#ifndef AIRPACE_PBE_EXCHANGE_H
#define AIRPACE_PBE_EXCHANGE_H

#include "active.h"
#include "pbe_option.h"
#include "sockops.h"

/* Counter of this machine's receiving flows. */
struct ap_host host SEC(".data.host");

/* Receiver state of a connection. */
struct received {
	/* The sender's clock in ticks, and the last time stamp received. */
	ap_u64 ticks;
	ap_u32 stamp;
	ap_u32 has_stamp;
	struct pbe_receiver r;
};

AP_AT_SOCKETS(receivers, struct received);

/* The slot of time in which each socket last received data. */
AP_AT_SOCKETS(downloads, ap_u64);

/* The context of the programs that process packets. */
struct __sk_buff {
	ap_u32 len;
	ap_u32 before_ifindex[9];
	ap_u32 ifindex;
	ap_u32 before_data[8];
	ap_u32 data;
	ap_u32 data_end;
	ap_u32 before_sk[21];
	struct sock *sk;
};

_Static_assert(__builtin_offsetof(struct __sk_buff, data) == 76, "as the kernel has it");
_Static_assert(__builtin_offsetof(struct __sk_buff, sk) == 168, "as the kernel has it");

enum { MIN_TCP = 20, MIN_IPV4 = 20, IPV6_BYTES = 40 };
enum { PROTOCOL_TCP = 6 };
/* Interface index of the loopback device in every network namespace. Source: Linux include/net/flow.h (LOOPBACK_IFINDEX) */
enum { LOOPBACK = 1 };
enum { PASS = 1 };

static long (*const bpf_skb_store_bytes)(void *skb, ap_u32 at, const void *from, ap_u32 length, ap_u64 flags) = (void *)9;
static long (*const bpf_l4_csum_replace)(void *skb, ap_u32 at, ap_u64 from, ap_u64 to, ap_u64 size) = (void *)11;
static long (*const bpf_skb_load_bytes_relative)(const void *skb, ap_u32 at, void *to, ap_u32 length,
						 ap_u32 from) = (void *)68;

/* Writes the first four bytes of an option. */
AP_FN void begin_option(unsigned char *option, unsigned char length)
{
	option[0] = PBE_OPTION_KIND;
	option[1] = length;
	option[2] = PBE_OPTION_EXID_HIGH;
	option[3] = PBE_OPTION_EXID_LOW;
}

/* Finds the option in the received packet, or in the SYN. Returns its length, or a value <= 0 if it is absent. */
AP_FN long find_option(struct bpf_sock_ops *ctx, unsigned char *option, ap_u64 where)
{
	begin_option(option, PBE_OPTION_OFFER);
	return bpf_load_hdr_opt(ctx, option, PBE_OPTION_LONG, where);
}

/* Length of the current packet's TCP header in bytes; zero if unknown. */
AP_FN ap_u32 header_bytes(struct bpf_sock_ops *ctx)
{
	unsigned char *tcp = ctx->skb_data, *end = ctx->skb_data_end;

	return tcp + MIN_TCP > end ? 0 : (tcp[12] >> 4) * 4;
}

/* Whether a feeder on this machine has ever written a record. */
AP_FN int is_fed(void)
{
	return feed.told[0].time || feed.told[1].time;
}

/* Reads the feeder's last record. If the writer is interrupted, the valid record is unchanged. */
AP_CALL int read_cell(struct pbe_cell *c, ap_u64 now)
{
	volatile struct ap_pbe_feed *seen = &feed;
	volatile struct ap_pbe_told *told;
	ap_u64 before;
	int tries;

	if (!c)
		return 0;
	for (tries = 0; tries < 4; tries++) {
		before = seen->sequence;
		told = &seen->told[before & 1];
		c->told.time = told->time;
		c->told.heard = told->heard;
		c->told.capacity = told->capacity;
		c->told.fair_share = told->fair_share;
		c->told.newest = told->newest;
		c->told.flags = told->flags;
		c->told.carriers = told->carriers;
		c->told.activations = told->activations;
		if (seen->sequence == before)
			break;
	}
	c->flows = now < *(volatile ap_u64 *)&host.until ? *(volatile ap_u64 *)&host.flows : 1;
	return 0;
}

/* Writes the contents of the option on an ACK that is sent now. */
AP_FN void tell(struct sock *sk, unsigned char *contents)
{
	struct received *r = bpf_sk_storage_get(&receivers, sk, 0, 0);
	ap_u64 now = bpf_ktime_get_ns();
	struct pbe_cell cell = {};
	struct pbe_fed fed = {};

	read_cell(&cell, now);
	pbe_receiver_tell(r ? &r->r : 0, &cell, now, options()->device_split, &fed);
	pbe_option_write(&fed, contents);
}

/* Processes received data. The option contains the sender's state; the TCP time stamp contains the send time. */
AP_FN void receive(struct bpf_sock_ops *ctx, struct sock *sk, const unsigned char *contents, ap_u32 headers)
{
	const struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	ap_u64 ip = ctx->family == AF_INET6 ? IPV6_BYTES : MIN_IPV4, payload;
	struct pbe_arrival a = {};
	struct pbe_cell cell = {};
	struct received *r;
	ap_u32 stamp, before;

	if (!tp || !is_fed())
		return;
	r = bpf_sk_storage_get(&receivers, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!r)
		return;
	pbe_header_read(&a, contents);
	stamp = tp->rx_opt.rcv_tsval;
	if (!r->has_stamp) {
		pbe_receiver_init(&r->r, options(), tp->advmss + MIN_TCP + ip);
		/*
		 * The clock starts far from zero, so that a packet that was sent before the first received packet has
		 * no negative time.
		 */
		r->ticks = 1ULL << 32;
		r->has_stamp = 1;
	} else {
		r->ticks += (ap_u64)(long long)(int)(stamp - r->stamp);
	}
	r->stamp = stamp;
	if (a.rtprop != AP_NONE)
		*(volatile ap_u64 *)&feed.rtprop = a.rtprop;
	a.now = tp->tcp_clock_cache;
	a.sent = r->ticks * a.tick;
	payload = ctx->skb_len - headers;
	a.packets = payload / ap_max(ap_less(r->r.mss, headers + ip), 1) + 1;
	a.bytes = payload + a.packets * (headers + ip);
	read_cell(&cell, a.now);
	before = r->r.internet;
	pbe_receiver_packet(&r->r, &a, &cell, &feed);
	if (r->r.internet && !before)
		__sync_fetch_and_add(&totals.elsewhere, 1);
}

/*
 * Processes a received option. On data, the option contains the sender's state; on an ACK, the receiver's measurements.
 */
AP_FN void hear(struct bpf_sock_ops *ctx, struct sock *sk)
{
	unsigned char option[PBE_OPTION_LONG] = {};
	long length = find_option(ctx, option, 0);
	ap_u32 headers = header_bytes(ctx);
	struct heard *h;
	struct flow *f;

	if (length < PBE_OPTION_SHORT || !headers)
		return;
	if (ctx->skb_len > headers) {
		receive(ctx, sk, option + 4, headers);
		return;
	}
	f = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (f) {
		pbe_option_read(&f->told, option + 4, length);
		f->count++;
		return;
	}
	h = bpf_sk_storage_get(&heard, sk, 0, 0);
	if (h) {
		pbe_option_read(&h->fed, option + 4, length);
		h->count++;
	}
}

/*
 * Processes the establishment of a connection. The endpoints use the option if the peer's SYN or SYN-ACK contained it.
 */
AP_FN void settle(struct bpf_sock_ops *ctx, int is_passive)
{
	unsigned char option[PBE_OPTION_LONG] = {};
	struct sock *sk = ctx->sk;
	struct heard *h = 0;

	/* Active side: the received SYN-ACK is the current packet. Passive side: the kernel saved the received SYN. */
	if (find_option(ctx, option, is_passive ? BPF_LOAD_HDR_OPT_TCP_SYN : 0) > 0 && sk)
		h = bpf_sk_storage_get(&heard, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!h) {
		/*
		 * If another program observes the connection too, it may have set the same flags, which must not be
		 * cleared then.
		 */
		if (!(ctx->bpf_sock_ops_cb_flags & ~(PARSE_UNKNOWN | WRITE)))
			bpf_sock_ops_cb_flags_set(ctx, 0);
		return;
	}
	h->fed.capacity = h->fed.fair_share = h->fed.radio_delay = AP_NONE;
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | PARSE_UNKNOWN | WRITE);
	if (is_passive)
		hear(ctx, sk);
}

/* Length in bytes of the option for the packet that is being built; zero: no option. */
AP_FN ap_u32 wanted(struct bpf_sock_ops *ctx)
{
	unsigned char option[PBE_OPTION_LONG] = {};
	struct sock *sk = ctx->sk;
	struct heard *h;

	if (ctx->skb_tcp_flags & FLAG_SYN) {
		/*
		 * With a SYN cookie, no state is stored for the offer in the SYN, so the SYN-ACK does not confirm it.
		 */
		if (ctx->args[0] == BPF_WRITE_HDR_TCP_SYNACK_COOKIE)
			return 0;
		if (ctx->skb_tcp_flags & FLAG_ACK && find_option(ctx, option, BPF_LOAD_HDR_OPT_TCP_SYN) <= 0)
			return 0;
		return PBE_OPTION_OFFER;
	}
	/*
	 * This program is also called for a connection without the option if another program has requested the
	 * connection's packets.
	 */
	h = sk ? bpf_sk_storage_get(&heard, sk, 0, 0) : 0;
	if (!h)
		return 0;
	if (ctx->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS || ctx->skb_len) {
		if (!h->is_sender)
			return 0;
		/*
		 * The MSS always leaves space for the option. Segments that were built before PBE-CC became the
		 * congestion control may lack this space.
		 */
		if (ctx->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS || (int)(ctx->snd_una - h->first) >= 0)
			return PBE_OPTION_SHORT;
		return 0;
	}
	/* An ACK with FIN carries the option too; otherwise there would be no feedback at the end of a flow. */
	return (ctx->skb_tcp_flags & ~FLAG_FIN) == FLAG_ACK && is_fed() ? PBE_OPTION_LONG : 0;
}

AP_FN void write_option(struct bpf_sock_ops *ctx)
{
	unsigned char option[PBE_OPTION_LONG] = {};
	struct sock *sk = ctx->sk;
	struct flow *f;

	if (ctx->skb_tcp_flags & FLAG_SYN) {
		begin_option(option, PBE_OPTION_OFFER);
		bpf_store_hdr_opt(ctx, option, PBE_OPTION_OFFER, 0);
		return;
	}
	if (!sk || !bpf_sk_storage_get(&heard, sk, 0, 0))
		return;
	begin_option(option, PBE_OPTION_SHORT);
	if (ctx->skb_len > header_bytes(ctx)) {
		f = bpf_sk_storage_get(&flows, sk, 0, 0);
		if (f)
			write_header(f, option + 4);
		bpf_store_hdr_opt(ctx, option, PBE_OPTION_SHORT, 0);
		return;
	}
	tell(sk, option + 4);
	option[1] = PBE_OPTION_LONG;
	if (bpf_store_hdr_opt(ctx, option, PBE_OPTION_LONG, 0) == 0)
		return;
	option[1] = PBE_OPTION_SHORT;
	bpf_store_hdr_opt(ctx, option, PBE_OPTION_SHORT, 0);
}

SEC("sockops")
int pbe_options(struct bpf_sock_ops *ctx)
{
	struct sock *sk = ctx->sk;
	ap_u32 bytes;
	int yes = 1;

	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		bpf_setsockopt(ctx, SOL_TCP, TCP_SAVE_SYN, &yes, sizeof(yes));
		/* fall through */
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | WRITE);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		settle(ctx, 0);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		settle(ctx, 1);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		if (sk)
			hear(ctx, sk);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		bytes = wanted(ctx);
		if (bytes && bpf_reserve_hdr_opt(ctx, bytes, 0) && bytes == PBE_OPTION_LONG)
			bpf_reserve_hdr_opt(ctx, PBE_OPTION_SHORT, 0);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		write_option(ctx);
		break;
	}
	return 1;
}

/* Source: RFC 791 §3.1; RFC 8200 §3; RFC 9293 §3.1 */
SEC("cgroup_skb/ingress")
int pbe_downloads(struct __sk_buff *skb)
{
	ap_u8 *at = (ap_u8 *)(unsigned long)skb->data, *end = (ap_u8 *)(unsigned long)skb->data_end;
	ap_u32 headers = IPV6_BYTES, protocol;
	struct sock *sk = skb->sk;
	ap_u64 *last;

	if (skb->ifindex == LOOPBACK || !sk || at + MIN_IPV4 > end)
		return PASS;
	if (at[0] >> 4 == 4) {
		headers = (at[0] & 15) * 4;
		protocol = at[9];
	} else {
		protocol = at[6];
	}
	at += headers;
	if (protocol == PROTOCOL_TCP) {
		if (at + MIN_TCP > end)
			return PASS;
		headers += (at[12] >> 4) * 4;
		/* Pure ACKs do not count as downloads. */
		if (skb->len <= headers)
			return PASS;
	}
	last = bpf_sk_storage_get(&downloads, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (last)
		active_sends(&host, last, bpf_ktime_get_ns());
	return PASS;
}

/* Return value that lets the kernel run the other programs at the device: TCX_NEXT, and TC_ACT_UNSPEC. */
#define ROOM_NEXT (-1)
/* BPF_HDR_START_NET */
#define ROOM_FROM_NET 1

/*
 * Lengths of the TCP header and of the SACK option that Linux writes when SACK blocks fill the whole option space:
 * three blocks with time stamps, four blocks without.
 */
#define ROOM_STAMPED_BYTES 60
#define ROOM_STAMPED_SACK 32
#define ROOM_PLAIN_BYTES 56
#define ROOM_PLAIN_SACK 20
#define SACK_BLOCK 8

struct ap_room {
	unsigned char ip[IPV6_BYTES];
	unsigned char tcp[ROOM_STAMPED_BYTES];
};

/*
 * Writes the option in place of the last SACK block. `at`: offset of the TCP header in the packet; `sack`: offset of
 * the SACK option in the TCP header.
 */
AP_FN void take_room(struct __sk_buff *skb, struct sock *sk, const unsigned char *tcp, ap_u32 at, ap_u32 sack, ap_u32 bytes)
{
	ap_u32 last = bytes - SACK_BLOCK, before[3], after[3];
	unsigned char option[PBE_OPTION_LONG] = {}, length[4];

	begin_option(option, PBE_OPTION_SHORT);
	tell(sk, option + 4);
	__builtin_memcpy(length, tcp + sack, 4);
	__builtin_memcpy(&before[0], length, 4);
	__builtin_memcpy(&before[1], tcp + last, 4);
	__builtin_memcpy(&before[2], tcp + last + 4, 4);
	length[3] -= SACK_BLOCK;
	__builtin_memcpy(&after[0], length, 4);
	__builtin_memcpy(&after[1], option, 4);
	__builtin_memcpy(&after[2], option + 4, 4);
	if (bpf_skb_store_bytes(skb, at + sack, length, 4, 0) || bpf_skb_store_bytes(skb, at + last, option, SACK_BLOCK, 0))
		return;
	/* If the device computes the checksum, these calls have no effect. */
	bpf_l4_csum_replace(skb, at + 16, before[0], after[0], 4);
	bpf_l4_csum_replace(skb, at + 16, before[1], after[1], 4);
	bpf_l4_csum_replace(skb, at + 16, before[2], after[2], 4);
	__sync_fetch_and_add(&totals.rooms, 1);
}

/*
 * The first SACK block reports the data received last; the other blocks repeat blocks of earlier ACKs. The last block
 * therefore carries the least new information.
 *
 * Source: RFC 2018 §4
 */
SEC("tcx/egress")
int pbe_room(struct __sk_buff *skb)
{
	ap_u32 ip = MIN_IPV4, length, from, bytes;
	struct sock *sk = skb->sk;
	struct ap_room room;
	const unsigned char *tcp = room.tcp;

	/* A longer packet cannot be an ACK without data, even with all options and the link-layer header. */
	if (skb->len > 2 * IPV6_BYTES + ROOM_STAMPED_BYTES || !sk || !is_fed())
		return ROOM_NEXT;
	if (bpf_skb_load_bytes_relative(skb, 0, room.ip, MIN_IPV4, ROOM_FROM_NET))
		return ROOM_NEXT;
	if (room.ip[0] == 0x45) {
		length = (ap_u32)room.ip[2] << 8 | room.ip[3];
		if (room.ip[9] != PROTOCOL_TCP)
			return ROOM_NEXT;
	} else if (room.ip[0] >> 4 == 6) {
		ip = IPV6_BYTES;
		length = ((ap_u32)room.ip[4] << 8 | room.ip[5]) + IPV6_BYTES;
		if (room.ip[6] != PROTOCOL_TCP)
			return ROOM_NEXT;
	} else {
		return ROOM_NEXT;
	}
	bytes = length - ip;
	if ((bytes != ROOM_STAMPED_BYTES && bytes != ROOM_PLAIN_BYTES) || length > skb->len)
		return ROOM_NEXT;
	if (bpf_skb_load_bytes_relative(skb, ip, room.tcp, ROOM_PLAIN_BYTES, ROOM_FROM_NET))
		return ROOM_NEXT;
	/* Only packets without data and without flags other than ACK are changed. */
	if ((tcp[12] >> 4) * 4 != (int)bytes || tcp[13] != FLAG_ACK || !bpf_sk_storage_get(&heard, sk, 0, 0))
		return ROOM_NEXT;
	/* The length of the link-layer header is the length of the packet minus the length of the IP packet. */
	from = skb->len - length + ip;
	if (bytes == ROOM_PLAIN_BYTES) {
		if (tcp[ROOM_PLAIN_SACK + 2] == 5 && tcp[ROOM_PLAIN_SACK + 3] == 2 + 4 * SACK_BLOCK)
			take_room(skb, sk, tcp, from, ROOM_PLAIN_SACK, ROOM_PLAIN_BYTES);
		return ROOM_NEXT;
	}
	if (bpf_skb_load_bytes_relative(skb, ip + ROOM_PLAIN_BYTES, room.tcp + ROOM_PLAIN_BYTES, 4, ROOM_FROM_NET))
		return ROOM_NEXT;
	if (tcp[ROOM_STAMPED_SACK + 2] == 5 && tcp[ROOM_STAMPED_SACK + 3] == 2 + 3 * SACK_BLOCK)
		take_room(skb, sk, tcp, from, ROOM_STAMPED_SACK, ROOM_STAMPED_BYTES);
	return ROOM_NEXT;
}

#endif
