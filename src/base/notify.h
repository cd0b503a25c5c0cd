/* SPDX-License-Identifier: MIT */
/*
 * Messages to the service manager (sd_notify(3)), without libsystemd. Where no service manager has
 * asked for messages, nothing is sent.
 */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

/* Assignments such as "READY=1", each on a line of its own. 1: sent; 0: not asked for; -errno. */
int notify_send(const char *assignments);

/* What "systemctl status" shows of the program; control characters become spaces. */
void notify_status(const char *text);

/* To be called regularly. Says that the program works, three times in the time that the unit's
 * WatchdogSec= allows. */
void notify_alive(void);

#endif
