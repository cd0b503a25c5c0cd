/* SPDX-License-Identifier: MIT */
/*
 * Lines of the log about variables without effect: misspelt ones, and those that another one, or the
 * collector, makes ineffective. Each is named once in a process and its forked children.
 */
#ifndef INTERCEPT_NOTICES_H
#define INTERCEPT_NOTICES_H

struct library;

/* After the settings were read and the log was opened. */
void notices_of_settings(const struct library *library);

/* After the process has joined its ledger. */
void notices_of_transport(const struct library *library);

#endif
