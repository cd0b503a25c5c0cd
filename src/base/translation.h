/* SPDX-License-Identifier: MIT */
/*
 * Texts in the language of the person who reads them. A program that a person calls opens the
 * translation (translation_open.c); in all others, the preloaded library first, every text stays
 * English. Words that programs read are never translated: names of kinds, keys, modes, events,
 * and JSON as a whole.
 */
#ifndef BASE_TRANSLATION_H
#define BASE_TRANSLATION_H

/* The text in the language in use, or the text itself. A format stays a format. */
const char *translated(const char *text) __attribute__((format_arg(1)));

#define _(text) translated(text)
/* In tables: po/catalog.sh collects the text, and _() translates it where it is shown. */
#define N_(text) text

/* From the locale on: LC_CTYPE and LC_MESSAGES become those of the environment, and texts come
 * from the catalogs beside the program. */
void translation_open(void);

/* All texts are English again: for JSON, logs and other programs. */
void translation_close(void);

/* What finds a text; NULL for no translation. Only for translation_open.c and tests. */
void translation_use(char *(*find)(const char *text));

#endif
