/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fair shares, the collector's side. The table is shared memory: the probe adds
 * to one half of a slot, whoever drains the rings to the other.
 */
#include "capture_private.h"
#include "../bpf/share_table.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define SHARES_BYTES (SHARE_SLOTS * sizeof(struct share))

static_assert(sizeof(struct share) == 256, "a slot is four lines of the cache, and the collector's is its own");
static_assert((int)CAPTURE_FAIR_CGROUP == SHARE_BY_CGROUP && (int)CAPTURE_FAIR_UID == SHARE_BY_UID,
	      "one choice, two names");

int capture_shares_map(struct capture *capture, enum capture_fair fair, int map_fd)
{
	void *at;

	if (fair == CAPTURE_FAIR_NONE)
		return 0;
	at = mmap(NULL, SHARES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	capture->shares = at;
	capture->fair = fair;
	return 0;
}

void capture_shares_unmap(struct capture *capture)
{
	if (capture->shares)
		munmap(capture->shares, SHARES_BYTES);
}

/* Before the ring's own position moves on: a death in between counts it twice, and nothing is held for ever. */
void capture_shares_consume(struct capture *capture, const struct wire_event *event, int ring, size_t size)
{
	uint32_t slot = event->share - 1;

	if (!capture->shares || slot >= SHARE_SLOTS)
		return;
	__atomic_add_fetch(&capture->shares[slot].consumed_bytes[ring],
			   (size + BPF_RINGBUF_HDR_SZ + 7) & ~7UL, __ATOMIC_RELAXED);
}

void capture_shares_take_over(struct capture *capture)
{
	capture->shares_unsettled = capture->shares != NULL;
}

/* The sums first, then the ring: what they count was reserved before, and has left it since. */
void capture_shares_settle(struct capture *capture)
{
	uint64_t produced[SHARE_SLOTS][SHARE_RINGS];

	if (!capture->shares_unsettled)
		return;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		for (int ring = 0; ring < SHARE_RINGS; ring++)
			produced[i][ring] =
				__atomic_load_n(&capture->shares[i].produced_bytes[ring], __ATOMIC_ACQUIRE);
	if (ring_fill(&capture->front) || ring_fill(&capture->data) || ring_fill(&capture->lifecycle))
		return;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		for (int ring = 0; ring < SHARE_RINGS; ring++)
			__atomic_store_n(&capture->shares[i].consumed_bytes[ring], produced[i][ring],
					 __ATOMIC_RELAXED);
	capture->shares_unsettled = false;
}

static uint64_t held(const struct share *share, int ring)
{
	uint64_t consumed = __atomic_load_n(&share->consumed_bytes[ring], __ATOMIC_RELAXED),
		 produced = __atomic_load_n(&share->produced_bytes[ring], __ATOMIC_RELAXED);

	return produced > consumed ? produced - consumed : 0;
}

static uint64_t key_of(const struct capture *capture, uint64_t tenant)
{
	if (tenant == CAPTURE_NOBODY)
		return 0;
	return share_key((enum share_by)capture->fair, tenant, (uint32_t)tenant);
}

bool capture_share(const struct capture *capture, uint64_t tenant, struct capture_share *ret_share)
{
	const struct share *share;

	if (!capture->shares)
		return false;
	share = &capture->shares[share_slot(key_of(capture, tenant))];
	*ret_share = (struct capture_share){
		.accepted_bytes = share->accepted_bytes,
		.flows_refused = share->flows_refused,
		.lifecycle_lost = share->lifecycle_lost,
		.changes = share->changes,
		.flows = share->flows,
		.data_bytes = held(share, SHARE_DATA),
		.lifecycle_bytes = held(share, SHARE_LIFECYCLE),
	};
	memcpy(ret_share->lost_bytes, share->lost_bytes, sizeof(ret_share->lost_bytes));
	return true;
}
