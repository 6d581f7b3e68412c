/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A call's iterator -> ring records: size classes, stream offsets, holes.
 *
 * Everything here runs when the bytes are known to be accepted. The state of
 * the walk lives in the call's map entry, because the verifier follows every
 * value of a stack slot separately and gives up on long loops.
 */
#ifndef NIGHTCLERK_PAYLOAD_BPF_H
#define NIGHTCLERK_PAYLOAD_BPF_H

#include "flow.bpf.h"
#include "pages.bpf.h"

/*
 * One send can be 2 GiB - 4 KiB long (MAX_RW_COUNT) and have 1024 segments
 * (UIO_MAXIOV): 32857 full records, a shorter one and a step for each segment.
 */
#define WALK_TURN_STEPS 190
#define WALK_TURNS 190
#define FIRST_BYTES 24
#define GATHER_PIECES 16
#define GATHER_CLASS WIRE_CLASS_2
#define GATHER_BYTES ((GATHER_CLASS - sizeof(struct wire_event)) / 2)

enum call_kind {
	CALL_OTHER, /* pages that cannot be read, or an iterator that we do not know: length only */
	CALL_UBUF,  /* one user buffer */
	CALL_IOVEC, /* an array, in kernel memory, of user buffers */
	CALL_BVEC,  /* an array of runs of pages */
	CALL_PAGES, /* one run of pages */
};

struct position {   /* of a send in its sender's memory */
	u64 base;   /* user buffer, struct page, or address of the array's current element */
	u64 offset; /* into the buffer, the pages, or the current element */
	u64 segments;
	u64 count; /* bytes still offered from here */
	u32 kind;
	u32 reserved;
};

/* One send on its way, keyed by its thread. */
struct call {
	struct wire_event event; /* what all records of the call share */
	u64 sk;
	u64 flow;	    /* its id: the address of a socket comes back with the next one */
	struct position at; /* of the byte at `offset` */
	u64 offset;	    /* stream offset where the bytes from `at` begin */
	u64 done;	    /* accepted bytes of this call that were emitted before its end */
	u64 left;	    /* to emit now */
	u64 hole_offset, hole_length;
	u32 hole_cause;
	u32 seq; /* raw sequence number of `offset` */
	u32 message_flags;
	u32 slept_at; /* kprobe door: write_seq when the thread gave the lock away */
	u8 asleep;    /* kprobe door: it has not got it back */
	u8 placed;    /* offset is set */
	u8 reserved[6];
	u8 first[FIRST_BYTES]; /* of the stream */
};

/* An entry stays until its thread ends; sk is 0 while the thread is in no send. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CALL_TABLE_ENTRIES);
	__type(key, u64); /* pid_tgid */
	__type(value, struct call);
} calls SEC(".maps");

struct record {
	struct wire_event event;
	u8 payload[];
};

/* Its reader comes every few ms; when a quarter waits, it is called, once for each time that it came. */
static __always_inline u64 wakeup_flag(void *ring, u64 fill, u64 quarter, u64 *woken)
{
	u64 read;

	if (fill < quarter)
		return BPF_RB_NO_WAKEUP;
	read = bpf_ringbuf_query(ring, BPF_RB_CONS_POS) + 1;
	if (*woken == read)
		return BPF_RB_NO_WAKEUP;
	*woken = read;
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline u64 data_wakeup_flag(void)
{
	u64 fill = bpf_ringbuf_query(&data_ring, BPF_RB_AVAIL_DATA);

	if (fill > data_ring_peak)
		data_ring_peak = fill;
	return wakeup_flag(&data_ring, fill, data_ring_quarter, &data_woken);
}

static __always_inline u64 front_wakeup_flag(void)
{
	u64 fill = bpf_ringbuf_query(&front_ring, BPF_RB_AVAIL_DATA);

	return wakeup_flag(&front_ring, fill, front_ring_full, &front_woken);
}

/* ---- holes: neighbours with one cause are one event ---- */

static __always_inline void hole_flush(struct call *call, struct flow *flow)
{
	struct wire_event *event;

	if (!call->hole_length)
		return;
	counter_add(WIRE_COUNTER_LOST_BYTES + (call->hole_cause & 15), call->hole_length);
	share_lost(call->event.share, call->hole_cause, call->hole_length);
	event = share_reserve_event(call->event.share, WIRE_HOLE);
	if (!event) {
		call->hole_length = 0;
		return;
	}
	__builtin_memcpy(event, &call->event, sizeof(*event));
	event->kind = WIRE_HOLE;
	event->cause = call->hole_cause;
	event->when_ns = bpf_ktime_get_ns();
	event->offset = call->hole_offset;
	event->seq = flow->send_base_seq + (u32)call->hole_offset;
	event->length_bytes = call->hole_length;
	event->lost_records = flow->lost_records;
	call->hole_length = 0;
	lifecycle_submit(event, BPF_RB_NO_WAKEUP);
}

static __noinline int hole_add(struct call *call, struct flow *flow, u64 length, u32 cause)
{
	if (!call || !flow)
		return 0;
	if (call->hole_length &&
	    (call->hole_cause != cause || call->hole_offset + call->hole_length != call->offset))
		hole_flush(call, flow);
	if (!call->hole_length)
		call->hole_offset = call->offset;
	call->hole_cause = cause;
	call->hole_length += length;
	return 0;
}

/* ---- records ---- */

static __always_inline struct record *record_reserve(const u32 class, bool *ret_in_front)
{
	struct record *record = NULL;

	if (front_ring_full)
		record = bpf_ringbuf_reserve(&front_ring, class, 0);
	*ret_in_front = record != NULL;
	return record ? record : bpf_ringbuf_reserve(&data_ring, class, 0);
}

/* The record holds length bytes of the stream from call->offset on. */
static __always_inline void record_submit(struct call *call, struct flow *flow, struct record *record,
					  u64 length, bool in_front)
{
	__builtin_memcpy(&record->event, &call->event, sizeof(record->event));
	record->event.when_ns = bpf_ktime_get_ns();
	record->event.offset = call->offset;
	record->event.seq = flow->send_base_seq + (u32)call->offset;
	record->event.length_bytes = length;
	record->event.captured_bytes = length;
	record->event.lost_records = flow->lost_records;
	if (!call->offset)
		__builtin_memcpy(call->first, record->payload, FIRST_BYTES);
	bpf_ringbuf_submit(record, in_front ? front_wakeup_flag() : data_wakeup_flag());
	counter_add(WIRE_COUNTER_RECORDS, 1);
}

/*
 * length is clamped once more right before the copy, and hidden from the
 * compiler, which would otherwise drop the bound that the verifier asks for.
 */
static __always_inline int record_copy(struct call *call, struct flow *flow, u64 address,
				       u64 length, const u32 class)
{
	bool in_front, in_pages = call->at.kind >= CALL_BVEC;
	struct record *record = record_reserve(class, &in_front);
	long failed;

	if (!record) {
		flow->lost_records++;
		return WIRE_CAUSE_RING_FULL;
	}
	share_produced(call->event.share, SHARE_DATA, class);
	asm volatile("" : "+r"(length));
	if (length > class - sizeof(struct wire_event))
		length = class - sizeof(struct wire_event);
	if (in_pages)
		failed = bpf_probe_read_kernel(record->payload, length, (void *)address);
	else
		failed = bpf_probe_read_user(record->payload, length, (void *)address);
	if (failed) {
		share_discarded(call->event.share, SHARE_DATA, class);
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
		return in_pages ? WIRE_CAUSE_PAGES : WIRE_CAUSE_FAULT;
	}
	record_submit(call, flow, record, length, in_front);
	return WIRE_CAUSE_NONE;
}

#define FITS(length, class) ((length) <= (class) - sizeof(struct wire_event))

static __noinline int record_emit(struct call *call, struct flow *flow, u64 address, u64 length)
{
	if (!call || !flow)
		return WIRE_CAUSE_NONE;
	if (FITS(length, WIRE_CLASS_0))
		return record_copy(call, flow, address, length, WIRE_CLASS_0);
	if (FITS(length, WIRE_CLASS_1))
		return record_copy(call, flow, address, length, WIRE_CLASS_1);
	if (FITS(length, WIRE_CLASS_2))
		return record_copy(call, flow, address, length, WIRE_CLASS_2);
	if (FITS(length, WIRE_CLASS_3))
		return record_copy(call, flow, address, length, WIRE_CLASS_3);
	if (FITS(length, WIRE_CLASS_4))
		return record_copy(call, flow, address, length, WIRE_CLASS_4);
	if (FITS(length, WIRE_CLASS_5))
		return record_copy(call, flow, address, length, WIRE_CLASS_5);
	if (FITS(length, WIRE_CLASS_6))
		return record_copy(call, flow, address, length, WIRE_CLASS_6);
	if (FITS(length, WIRE_CLASS_7))
		return record_copy(call, flow, address, length, WIRE_CLASS_7);
	if (FITS(length, WIRE_CLASS_8))
		return record_copy(call, flow, address, length, WIRE_CLASS_8);
	if (FITS(length, WIRE_CLASS_9))
		return record_copy(call, flow, address, length, WIRE_CLASS_9);
	return record_copy(call, flow, address, length, WIRE_CLASS_10);
}

/* ---- several pieces in one record: a head and its body, as servers write them ---- */

/*
 * The verifier adds the greatest place to the greatest length, so half of a
 * record is out of reach. A piece that cannot be read ends the record before it.
 */
static __always_inline u64 gather(struct call *call, struct flow *flow)
{
	struct position at = call->at;
	struct iovec piece = {};
	struct record *record;
	bool in_front;
	u64 length, filled = 0;

	record = record_reserve(GATHER_CLASS, &in_front);
	if (!record)
		return 0;
	share_produced(call->event.share, SHARE_DATA, GATHER_CLASS);
	for (int i = 0; i < GATHER_PIECES && at.segments && filled < call->left; i++) {
		if (bpf_probe_read_kernel(&piece, sizeof(piece), (void *)at.base) || piece.iov_len < at.offset)
			break;
		length = piece.iov_len - at.offset;
		if (length > call->left - filled)
			length = call->left - filled;
		asm volatile("" : "+r"(length), "+r"(filled));
		if (filled > GATHER_BYTES || length > GATHER_BYTES || filled + length > GATHER_BYTES ||
		    bpf_probe_read_user(record->payload + filled, length, piece.iov_base + at.offset))
			break;
		filled += length;
		at.offset += length;
		if (at.offset == piece.iov_len) {
			at.base += sizeof(piece);
			at.segments--;
			at.offset = 0;
		}
	}
	if (!filled) {
		share_discarded(call->event.share, SHARE_DATA, GATHER_CLASS);
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
		return 0;
	}
	record_submit(call, flow, record, filled, in_front);
	call->at = at;
	return filled;
}

/* Whole pieces, as many as fit. Returns how many bytes it took; 0 = piece by piece, please. */
static __noinline u64 gather_emit(struct call *call, struct flow *flow)
{
	if (!call || !flow || call->at.kind != CALL_IOVEC)
		return 0;
	return gather(call, flow);
}

/* ---- first bytes ---- */

/* RFC 9110 section 5.6.2: tchar. Bit c of the two words. */
static __always_inline bool is_token_byte(u8 c)
{
	const u64 low = 0x03ff6cfa00000000ULL;	/* ! # $ % & ' * + - . 0-9 */
	const u64 high = 0x57ffffffc7fffffeULL; /* A-Z ^ _ ` a-z | ~ */

	return c < 128 && ((c < 64 ? low : high) >> (c & 63) & 1);
}

/*
 * May the stream be HTTP/1, HTTP/2 or TLS? A request and the HTTP/2 preface
 * begin with a token and a space, a status line with "HTTP/", TLS with 0x16 3.
 */
static __noinline bool first_bytes_fit(const struct call *call, u64 length)
{
	bool token = false;

	if (!call)
		return true;
	if (call->first[0] == 0x16)
		return length < 2 || call->first[1] == 3;
	/* Unrolled: before 6.3 the verifier wants loops laid out in one way, which clang may not choose. */
#pragma clang loop unroll(full)
	for (u32 i = 0; i < FIRST_BYTES; i++) {
		u8 c = call->first[i];

		if (i >= length)
			return true;
		if (!token && (c == '\r' || c == '\n')) /* RFC 9112 section 2.2 */
			continue;
		if (c == ' ')
			return token;
		if (c == '/')
			return i == 4 && call->first[0] == 'H' && call->first[1] == 'T' &&
			       call->first[2] == 'T' && call->first[3] == 'P';
		if (!is_token_byte(c))
			return false;
		token = true;
	}
	return true;
}

/* ---- the walk ---- */

/* The current element of the array. */
static __always_inline u64 walk_segment(const struct call *call, u64 *ret_address)
{
	struct bio_vec *pages = (void *)call->at.base;
	struct iovec segment = {};

	if (call->at.kind == CALL_BVEC) {
		*ret_address = pages_address((u64)BPF_CORE_READ(pages, bv_page)) +
			       BPF_CORE_READ(pages, bv_offset);
		return BPF_CORE_READ(pages, bv_len);
	}
	if (bpf_probe_read_kernel(&segment, sizeof(segment), (void *)call->at.base))
		return 0;
	*ret_address = (u64)segment.iov_base;
	return segment.iov_len;
}

/* Memory at the current position: how much lies together; 0 = go to the next segment. */
static __always_inline u64 walk_room(struct call *call, u64 *ret_address)
{
	u64 length;

	if (call->at.kind == CALL_UBUF || call->at.kind == CALL_PAGES) {
		*ret_address = call->at.offset + (call->at.kind == CALL_UBUF
							  ? call->at.base
							  : pages_address(call->at.base));
		return call->left;
	}
	length = walk_segment(call, ret_address);
	if (length <= call->at.offset) {
		call->at.base += sizeof(struct iovec);
		call->at.offset = 0;
		call->at.segments--;
		return 0;
	}
	*ret_address += call->at.offset;
	return length - call->at.offset;
}

/* The rest of the send goes: false, there is no more to do. */
static __always_inline bool walk_shed(struct call *call, struct flow *flow)
{
	hole_add(call, flow, call->left, WIRE_CAUSE_SHARE);
	flow->lost_records++;
	call->offset += call->left;
	call->left = 0;
	return false;
}

/* `length` bytes are done. Is there more to do? */
static __always_inline bool walk_on(struct call *call, struct flow *flow, u64 length, bool captured)
{
	call->left -= length;
	if (captured && !call->offset && !first_bytes_fit(call, length)) {
		flow->muted = 1; /* the other end may yet answer in HTTP: it has first bytes of its own */
		call->left = 0;
	}
	call->offset += length;
	return call->left != 0;
}

/* Is there more to do? */
static __always_inline bool walk_step(struct call *call, struct flow *flow)
{
	u64 address, length, gathered;
	int cause;

	bool in_array = call->at.kind == CALL_IOVEC || call->at.kind == CALL_BVEC;

	if (!call->left || (in_array && !call->at.segments))
		return false;
	length = walk_room(call, &address);
	if (!length)
		return true;
	if (length > call->left)
		length = call->left;
	if (length > WIRE_PAYLOAD_MAX)
		length = WIRE_PAYLOAD_MAX;
	if (!share_admits(call->event.share, call->done - call->left, &length))
		return walk_shed(call, flow);
	gathered = length < call->left && length <= GATHER_BYTES ? gather_emit(call, flow) : 0;
	if (gathered)
		return walk_on(call, flow, gathered, true);
	cause = record_emit(call, flow, address, length);
	if (cause)
		hole_add(call, flow, length, cause);
	call->at.offset += length;
	return walk_on(call, flow, length, !cause);
}

/*
 * The same for the current thread's send. A global function: the verifier looks
 * at it once, not once for each of its calls, so that two plain loops do what
 * would take bpf_loop() of 5.17. It may not be given pointers before 5.12.
 */
__noinline __weak int walk_next(void)
{
	u64 id = bpf_get_current_pid_tgid();
	struct call *call = bpf_map_lookup_elem(&calls, &id);
	struct flow *flow = call ? bpf_map_lookup_elem(&flows, &call->sk) : NULL;

	return call && flow && walk_step(call, flow);
}

__noinline __weak int walk_turn(void)
{
	for (int i = 0; i < WALK_TURN_STEPS; i++)
		if (!walk_next())
			return false;
	return true;
}

/* Most sends take one step. */
static __always_inline void walk(struct call *call, struct flow *flow)
{
	if (!walk_step(call, flow))
		return;
	for (int i = 0; i < WALK_TURNS; i++)
		if (!walk_turn())
			return;
}

static __always_inline void emit_hole(struct call *call, struct flow *flow, u64 length, u32 cause)
{
	if (!length)
		return;
	hole_add(call, flow, length, cause);
	call->offset += length;
}

/*
 * `length` bytes were accepted at call->offset; the last `urgent` of them are
 * not part of the stream. They are counted first, so that a loss further down
 * cannot hide from the sum.
 */
static __always_inline void call_emit(struct call *call, struct flow *flow, u64 length, u64 urgent)
{
	flow_count_accepted(flow, length);
	__sync_fetch_and_add(&flow->accounted, length);
	call->done += length;
	if (flow_is_muted(flow))
		return;
	flow_describe(flow, &call->event);
	call->event.share = flow->share;
	call->left = length - urgent;
	if (call->at.kind == CALL_OTHER) {
		emit_hole(call, flow, call->left, WIRE_CAUSE_PAGES);
	} else {
		walk(call, flow);
		emit_hole(call, flow, call->left, WIRE_CAUSE_TRUNCATED);
	}
	emit_hole(call, flow, urgent, WIRE_CAUSE_URGENT);
	hole_flush(call, flow);
}

#endif
