/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kernel's own BBR, called by programs that do nothing else. Its CPU time per ACK (`bpf_stats`) is the reference
 * for the cost of the other programs. Users do not load this program.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

SEC("struct_ops/probe_init")
int probe_init(ap_u64 *ctx)
{
	bbr_init((struct sock *)ctx[0]);
	return 0;
}

SEC("struct_ops/probe_cong_control")
int probe_cong_control(ap_u64 *ctx)
{
	call_bbr_main((struct sock *)ctx[0], sample_of(ctx));
	return 0;
}

SEC("struct_ops/probe_min_tso_segs")
int probe_min_tso_segs(ap_u64 *ctx)
{
	return bbr_min_tso_segs((struct sock *)ctx[0]);
}

SEC("struct_ops/probe_set_state")
void probe_set_state(ap_u64 *ctx)
{
	bbr_set_state((struct sock *)ctx[0], ctx[1]);
}

SEC("struct_ops/probe_cwnd_event")
void probe_cwnd_event(ap_u64 *ctx)
{
	bbr_cwnd_event((struct sock *)ctx[0], ctx[1]);
}

SEC("struct_ops/probe_ssthresh")
int probe_ssthresh(ap_u64 *ctx)
{
	return bbr_ssthresh((struct sock *)ctx[0]);
}

SEC("struct_ops/probe_undo_cwnd")
int probe_undo_cwnd(ap_u64 *ctx)
{
	return bbr_undo_cwnd((struct sock *)ctx[0]);
}

SEC("struct_ops/probe_sndbuf_expand")
int probe_sndbuf_expand(ap_u64 *ctx)
{
	return bbr_sndbuf_expand((struct sock *)ctx[0]);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops airpace_bbr = {
	.init = (void *)probe_init,
	.cong_control = (void *)probe_cong_control,
	.min_tso_segs = (void *)probe_min_tso_segs,
	.set_state = (void *)probe_set_state,
	.cwnd_event = (void *)probe_cwnd_event,
	.ssthresh = (void *)probe_ssthresh,
	.undo_cwnd = (void *)probe_undo_cwnd,
	.sndbuf_expand = (void *)probe_sndbuf_expand,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "airpace_bbr",
};
