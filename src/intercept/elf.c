/* SPDX-License-Identifier: MIT */
/*
 * A small reader of loaded ELF objects; see elf.h. It walks the list that the
 * loader keeps for debuggers, in load order, and needs no allocation and no
 * loader lock, so it works before any constructor has run.
 */
#include "intercept/elf.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "intercept/libc.h"

enum { VERSION_HIDDEN = 0x8000 }; /* not the default definition */

struct symbols {
	const ElfW(Sym) *table;
	const char *names;
	const uint32_t *gnu_hash;
	const uint32_t *hash;
	const uint16_t *versions;
	const char *soname;
};

/* glibc relocates these addresses in place, other loaders leave offsets. */
static const void *address_in(const struct link_map *object, ElfW(Addr) value)
{
	return (const void *)(value < object->l_addr ? value + object->l_addr : value);
}

static struct symbols elf_symbols(const struct link_map *object)
{
	struct symbols symbols = { 0 };
	ElfW(Xword) soname = 0;

	for (const ElfW(Dyn) *entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
		const void *address = address_in(object, entry->d_un.d_ptr);

		switch (entry->d_tag) {
		case DT_SYMTAB:
			symbols.table = address;
			break;
		case DT_STRTAB:
			symbols.names = address;
			break;
		case DT_GNU_HASH:
			symbols.gnu_hash = address;
			break;
		case DT_HASH:
			symbols.hash = address;
			break;
		case DT_VERSYM:
			symbols.versions = address;
			break;
		case DT_SONAME:
			soname = entry->d_un.d_val;
			break;
		}
	}
	symbols.soname = symbols.names && soname ? symbols.names + soname : "";
	return symbols;
}

/* The symbol's address if it is a definition of the name; default ones win. */
static void elf_consider(const struct link_map *object, const struct symbols *symbols,
			 uint32_t index, const char *name, void **ret_default, void **ret_hidden)
{
	const ElfW(Sym) *symbol = &symbols->table[index];
	void *address = (void *)(object->l_addr + symbol->st_value);

	if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
	    !elf_same_name(symbols->names + symbol->st_name, name))
		return;
	if (symbols->versions && symbols->versions[index] & VERSION_HIDDEN)
		*ret_hidden = address;
	else
		*ret_default = address;
}

void *elf_find_in_object(const struct link_map *object, const char *name)
{
	struct symbols symbols = elf_symbols(object);
	void *found = NULL, *hidden = NULL;

	if (!symbols.table || !symbols.names)
		return NULL;
	if (symbols.gnu_hash) {
		uint32_t count = symbols.gnu_hash[0], first = symbols.gnu_hash[1];
		const uint32_t *bucket = (const uint32_t *)((const ElfW(Addr) *)(symbols.gnu_hash + 4) +
							    symbols.gnu_hash[2]);
		const uint32_t *chain = bucket + count;
		uint32_t hash = 5381, index;

		for (const char *at = name; *at; at++)
			hash = hash * 33 + (unsigned char)*at;
		index = count ? bucket[hash % count] : 0;
		for (; index >= first && index; index++) {
			if ((chain[index - first] | 1) == (hash | 1))
				elf_consider(object, &symbols, index, name, &found, &hidden);
			if (chain[index - first] & 1)
				break;
		}
	} else if (symbols.hash) {
		for (uint32_t index = 1; index < symbols.hash[1]; index++)
			elf_consider(object, &symbols, index, name, &found, &hidden);
	}
	return found ? found : hidden;
}

void *elf_find_in(const char *soname, const char *name)
{
	for (const struct link_map *object = libc_objects(); object; object = object->l_next)
		if (elf_same_name(elf_symbols(object).soname, soname))
			return elf_find_in_object(object, name);
	return NULL;
}

struct elf_search {
	uintptr_t address;
	ElfW(Addr) base;
	const char *name;
};

static int elf_search_visit(struct dl_phdr_info *object, size_t size, void *argument)
{
	struct elf_search *search = argument;

	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD ||
		    search->address - object->dlpi_addr - segment->p_vaddr >= segment->p_memsz)
			continue;
		search->base = object->dlpi_addr;
		search->name = object->dlpi_name;
		return 1;
	}
	return 0;
}

const struct link_map *elf_find_object(const void *address)
{
	struct elf_search search = { .address = (uintptr_t)address };
	const struct link_map *object = libc_objects();

	if (!dl_iterate_phdr(elf_search_visit, &search))
		return NULL;
	while (object && (object->l_addr != search.base ||
			  (search.base == 0 && !elf_same_name(object->l_name, search.name))))
		object = object->l_next;
	return object;
}

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

static bool elf_is_other_copy(const struct link_map *object)
{
	return object->l_ld != _DYNAMIC &&
	       elf_same_name(elf_symbols(object).soname, "librdma_intercept.so");
}

static void *elf_find_unless_copy(const struct link_map *object, const char *name)
{
	void *found = elf_find_in_object(object, name);

	return found && elf_is_other_copy(object) ? NULL : found;
}

void *elf_find_next(const char *name)
{
	const struct link_map *first = libc_objects(), *object = first;
	void *found = NULL;

	while (object && object->l_ld != _DYNAMIC)
		object = object->l_next;
	for (object = object ? object->l_next : NULL; object && !found; object = object->l_next)
		found = elf_find_unless_copy(object, name);
	for (object = first; object && !found && object->l_ld != _DYNAMIC; object = object->l_next)
		found = elf_find_unless_copy(object, name);
	return found;
}

bool elf_has_copies(void)
{
	const struct link_map *object = libc_objects();

	while (object && !elf_is_other_copy(object))
		object = object->l_next;
	return object != NULL;
}

bool elf_is_copy(void)
{
	const struct link_map *object = libc_objects();

	while (object && object->l_ld != _DYNAMIC && !elf_is_other_copy(object))
		object = object->l_next;
	return object && object->l_ld != _DYNAMIC;
}
