/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * progress.c - see progress.h for the contract
 *
 * Invariants
 *   - A pause between two answers is told of, however short: it is remembered until then.
 */
#include "collector/progress.h"

#include <inttypes.h>
#include <stdio.h>

bool mt_progress_due(const struct mt_progress_pace *pace, uint64_t now_ns)
{
	return pace->asked && now_ns >= pace->next_ns;
}

void mt_progress_tell(struct mt_progress_pace *pace, int channel, uint64_t now_ns, uint64_t events,
		      uint64_t chains)
{
	char text[MT_PROGRESS_ROOM];

	snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, events, chains);
	pace->next_ns = now_ns + MT_PROGRESS_NS;
	if (mt_channel_offer(channel, MT_MESSAGE_PROGRESS, pace->paused, text) < 0)
		return;
	pace->asked = false;
	pace->paused = false;
}

int mt_progress_parse(const struct mt_message *message, struct mt_progress *ret)
{
	uint64_t events, chains;
	int end = 0;

	if (message->kind != MT_MESSAGE_PROGRESS ||
	    sscanf(message->text, "%" SCNu64 " %" SCNu64 "%n", &events, &chains, &end) != 2 ||
	    message->text[end])
		return -EBADMSG;
	*ret = (struct mt_progress){
		.events = events,
		.chains = chains,
		.paused = message->number != 0,
	};
	return 0;
}

/* 1234567 as 1,234,567, whatever the locale. */
static const char *grouped(uint64_t number, char (*room)[32])
{
	char *at = *room + sizeof(*room) - 1;

	*at = '\0';
	for (int digits = 0; number || !digits; digits++) {
		if (digits && digits % 3 == 0)
			*--at = ',';
		*--at = (char)('0' + number % 10);
		number /= 10;
	}
	return at;
}

void mt_progress_format(const struct mt_progress *progress, uint64_t artifact_bytes, char *ret,
			size_t room)
{
	static const char units[] = "KMGTPE";
	char events[32], chains[32];
	double size = (double)artifact_bytes / 1024;
	int unit = 0;

	for (; size >= 1023.95 && units[unit + 1]; unit++)
		size /= 1024;
	snprintf(ret, room, "memtrack: %s events, %s chains, %.1f %ciB%s",
		 grouped(progress->events, &events), grouped(progress->chains, &chains), size,
		 units[unit], progress->paused ? ", paused" : "");
}
