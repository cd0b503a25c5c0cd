/* SPDX-License-Identifier: MIT */
/* The clients of lease.pml, which includes this: the process's side of a lease, as lease.c has it. */

/* The end of proto_call. LOST: the connection ended without a reply. */
inline receive(t)
{
	answer = box[t];
	box[t] = NONE;
	no_room[t] = false
}

/* Others see what this process has added. VISIBLE: what a load-acquire waits for, if the store was a
 * store-release. SENT: what goes into the kernel is a release in any case. */
#ifdef WEAK
#define SENT(c) (shown[c] == used[c])
#ifdef BUG_LOOK_RELAXED /* or the compare-and-swap is: the same */
#define VISIBLE(c) true
#else
#define VISIBLE(c) SENT(c)
#endif
/* The first look is relaxed: what it says may be old, either way. */
#define FIRST_LOOK(yes) true
#else
#define SENT(c) true
#define VISIBLE(c) true
#define FIRST_LOOK(yes) (yes)
#endif

/* lease_take_kind and lease_grow, for an amount of 1 */
inline charge(t, c)
{
	do
	:: atomic {
			!undone && SENT(c) && FIRST_LOOK(used[c] + 1 <= cap[c]) ->
			seen = used[c] + 1;
			IF_THREE(taking[c] = 1);
			LOOK
		}
		if /* the compare-and-swap, a full barrier */
		:: d_step { used[c] == seen - 1 -> used[c] = seen; IF_THREE(taking[c] = 0); LOOK }
			if
#ifdef BUG_NO_RECHECK
			:: d_step {
#else
			:: atomic { VISIBLE(c) && seen > cap[c] -> SENT(c) -> used[c]--; undone = 1 } /* revoked meanwhile: ask */
			:: d_step {
					VISIBLE(c) && seen <= cap[c] ->
#endif
					held[c]++;
					assert(held[c] <= granted[c]); /* I3 */
					assert(SUM(held) <= in_force) /* I3 */
				}
				break
			fi
		:: atomic { used[c] != seen - 1 -> IF_THREE(taking[c] = 0) } /* another thread was faster */
		fi
	:: atomic {
			SENT(c) && (undone || FIRST_LOOK(used[c] + 1 > cap[c])) ->
			undone = 0;
			seen = used[c] + 1;
			total[t] = seen;
			NEW_QUESTION(t);
			box[t] = GROW_REQUEST;
			IF_PROGRESS(asking[c] = true);
			LOOK
		}
		atomic {
			box[t] != GROW_REQUEST -> receive(t);
			if
			:: answer == GROW_REPLY
			:: answer == LOST	   /* asks again... */
			:: answer == LOST -> break /* ...or fails closed */
#ifdef BUG_ANY_REFUSAL
			:: answer == REFUSED -> assert(used[c] + 1 >= seen); /* I4 */ break
#else
			:: answer == REFUSED && used[c] + 1 < seen /* outdated */
			:: answer == REFUSED && used[c] + 1 >= seen -> break
#endif
			fi
		}
	od
;
	atomic { SENT(c) -> total[t] = 0; NEW_QUESTION(t); IF_PROGRESS(asking[c] = false) }
}

/* lease_refund; the object is gone before */
#if defined(BUG_REFUND_FIRST) || (defined(WEAK) && defined(BUG_REFUND_RELAXED))
#define REFUND(c) atomic { held[c] > 0 && SENT(c) -> used[c]-- } held[c]--
#else
#define REFUND(c) atomic { held[c] > 0 -> held[c]-- } atomic { SENT(c) -> used[c]-- }
#endif

/* hello_say */
inline register(t)
{
	do
	:: box[t] = HELLO;
		atomic {
			box[t] != HELLO -> receive(t);
			if
			:: answer == GROW_REPLY -> break
			:: else
			fi
		}
	od
}

inline live(t, c)
{
	do
#ifdef MOST
	:: held[c] < MOST -> charge(t, c)
#else
	:: charge(t, c)
#endif
	:: REFUND(c)
	:: over() -> break
	od
}

/* A client that writes and asks what it likes. */
inline lie(t)
{
	do
	:: d_step { used[t] = 0; LOOK }
	:: d_step { used[t] = LIMIT + 1; LOOK }
	:: d_step { total[t] = 1; given[t] = 0; box[t] = GROW_REQUEST; LOOK }
		atomic { box[t] != GROW_REQUEST -> receive(t) }
	:: d_step { total[t] = LIMIT + 1; given[t] = 0; box[t] = GROW_REQUEST; LOOK }
		atomic { box[t] != GROW_REQUEST -> receive(t) }
	:: over() -> break
	od
}

active [CLIENTS] proctype client()
{
	byte seen;
	bit undone;
	mtype answer;
life:
	{
		register(_pid);
#ifdef LIAR
		if
		:: _pid == 1 -> lie(_pid)
		:: else -> live(_pid, _pid)
		fi
#else
		live(_pid, _pid)
#endif
	} unless { killed[_pid] };
	atomic {
		killed[_pid] = false;
#ifdef WEAK
		shown[_pid] = used[_pid];
#endif
		held[_pid] = 0; /* by the kernel, before the pidfd says so */
		alive[_pid] = false;
		given[_pid] = 0;
		undone = 0;
		IF_THREE(taking[_pid] = 0);
		IF_PROGRESS(asking[_pid] = false);
		if
		:: asks(_pid) /* the daemon will still find the question */
		:: else -> box[_pid] = NONE; total[_pid] = 0
		fi
	}
	if
	:: atomic {
			spawns > 0 && box[_pid] == NONE ->
			spawns--;
			identity[_pid] = 1 - identity[_pid];
			alive[_pid] = true
		}
		goto life
	:: spawns == 0
	fi
}

#if THREADS > CLIENTS
/* A second thread of client 0. */
active proctype companion()
{
	byte seen;
	bit undone;
	mtype answer;
	{
		state[0] == LIVE;
		live(CLIENTS, 0)
	} unless { killed[0] || !alive[0] };
	atomic {
		if
		:: asks(CLIENTS)
		:: else -> box[CLIENTS] = NONE; total[CLIENTS] = 0
		fi
	}
}
#endif
