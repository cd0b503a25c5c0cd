/* SPDX-License-Identifier: MIT */
/* Changes of a policy's text that leave everything else in it as it is, comments included. */
#ifndef FLEET_EDIT_H
#define FLEET_EDIT_H

/*
 * Sets a key of a section ("host", "default" or "tenant NAME"); value NULL: takes its line out. A
 * section that there is not is added. New memory.
 */
char *fleet_text_set(const char *text, const char *section, const char *key, const char *value);

/* Puts the first line "# changed by ..." of a text, or another one in its place. New memory. */
char *fleet_text_sign(const char *text, const char *author, const char *what);

/* Who changed it last, and what; "" if the text does not say. */
void fleet_text_signature(const char *text, char ret_signature[256]);

#endif
