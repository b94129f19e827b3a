/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * auditor.c - an audit library, which brings a second C library and allocates from it
 * whenever the loader calls it
 */
#include <link.h>
#include <stdlib.h>

#define BYTES 20101

static void churn(void)
{
	void *volatile block = malloc(BYTES);

	free(block);
}

unsigned int la_version(unsigned int version)
{
	churn();
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

unsigned int la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	(void)map;
	(void)space;
	(void)cookie;
	churn();
	return LA_FLG_BINDFROM | LA_FLG_BINDTO;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned int number, uintptr_t *from, uintptr_t *to,
		       unsigned int *flags, const char *name)
{
	(void)number;
	(void)from;
	(void)to;
	(void)flags;
	(void)name;
	churn();
	return symbol->st_value;
}
