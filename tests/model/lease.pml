/* SPDX-License-Identifier: MIT */
/*
 * The lease protocol between a collector (the daemon) and the processes that
 * charge (the clients), for one kind of resource and one limit. Clients may be
 * killed and the daemon may crash between any two steps, the limit is cut at
 * any time, and the daemon's stores reach memory late, as on x86; with -DWEAK memory
 * has the weaker order of ARMv8, see "memory" below.
 * Names are those of src/ledger/lease.c and src/collector/{grants,books,members}.c.
 * tests/model.sh runs it; docs/lease-model.md tells it in words.
 *
 * Checked, by the names that the assertions below have:
 *  I1  The sum of grants is at most the limit. A cut may leave it over the limit,
 *      and then it never grows.
 *  I2  cap <= granted after each single store of the daemon. x86 makes the stores of
 *      one processor visible in their order, and a crash loses none that was made;
 *      so this holds for whatever is in memory at any moment, too.
 *  I3  A client holds no more than it was granted, and no charge succeeds that makes
 *      all together hold more than the limit. Objects from before a cut may be over
 *      it; while they are, nobody creates.
 *  I4  A refusal is true: between question and answer there was a moment at which what
 *      the other used, unless it was dead, and the total asked for were more than the
 *      limit. With three clients "used" includes a charge from its first look at the cap on.
 *  I5  Nothing leaks: when all is quiet and all clients are gone, every record is
 *      FREE, and granted and cap are 0.
 *  I6  Progress: nobody waits for a reply for ever, and the LTL formula below: whoever
 *      asks comes to an end, with its object or with a refusal.
 */

#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef THREADS
#define THREADS CLIENTS /* CLIENTS + 1: the last one is a second thread of client 0 */
#endif
#ifndef LIMIT
#define LIMIT 2 /* at first */
#endif
#ifndef CUT
#define CUT 1 /* the limit after a cut */
#endif
#ifndef CUTS
#define CUTS 1
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef SPAWNS
#define SPAWNS 1 /* new processes in the place of killed ones */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif

#define slot(t) (t % CLIENTS)
#define least(a, b) (a < b -> a : b)
#define most(a, b) (a > b -> a : b)
#if CLIENTS == 2
#define SUM(a) (a[0] + a[1])
#define EACH(f) f(0); f(1)
#define ANY(f) (f(0) || f(1))
#define PICK(f, i) if :: f(0) -> i = 0 :: f(1) -> i = 1 fi
#else
#define SUM(a) (a[0] + a[1] + a[2])
#define EACH(f) f(0); f(1); f(2)
#define ANY(f) (f(0) || f(1) || f(2))
#define PICK(f, i) if :: f(0) -> i = 0 :: f(1) -> i = 1 :: f(2) -> i = 2 fi
#endif
#if THREADS == 2
#define EACH_THREAD(f) f(0); f(1)
#define ANY_THREAD(f) (f(0) || f(1))
#define PICK_THREAD(f, i) if :: f(0) -> i = 0 :: f(1) -> i = 1 fi
#else
#define EACH_THREAD(f) f(0); f(1); f(2)
#define ANY_THREAD(f) (f(0) || f(1) || f(2))
#define PICK_THREAD(f, i) if :: f(0) -> i = 0 :: f(1) -> i = 1 :: f(2) -> i = 2 fi
#endif

mtype = { FREE, LIVE, DYING };			    /* a record of the ledger */
mtype = { NONE, HELLO, GROW_REQUEST, GROW_REPLY, REFUSED, LOST }; /* what a connection carries */

/* Usage pages, each written by its client. */
byte used[CLIENTS];

/* The lease table, written by the daemon: as memory has it, and as the daemon
 * sees it. What is between the two is in its store buffer. */
byte cap[CLIENTS];
byte own_cap[CLIENTS];
chan buffer = [3] of { byte, byte, bit }; /* which, value, by a store-release */
#ifdef WEAK
byte ordered;	      /* store-releases in it */
byte shown[CLIENTS];  /* used, as memory has it */
#define USED(c) shown[c]
#else
#define USED(c) used[c]
#endif

/* The ledger: the daemon's, and survives it. So does the policy. */
byte granted[CLIENTS];
mtype state[CLIENTS] = FREE;
bit owner[CLIENTS];
byte limit = LIMIT;

/* The daemon's own memory. */
byte sum;
bit given[CLIENTS]; /* the question under way was answered by GROW_REPLY or TOLERATED */

/* Connections, one per thread: the request until it is answered, then the reply. */
mtype box[THREADS] = NONE;
byte total[THREADS];

/* What the kernel knows. */
bool alive[CLIENTS] = true;
bit identity[CLIENTS]; /* two processes in a row differ */
bool killed[CLIENTS];
bool crashed;
byte kills = KILLS, spawns = SPAWNS, crashes = CRASHES, cuts = CUTS;

/* For the checks only. */
byte held[CLIENTS];	/* charges that succeeded and are not refunded */
byte in_force = LIMIT;	/* the limit for new objects: a cut one once the cut is done */
bool no_room[THREADS];	/* there was a moment, since the question, without room for it */
#if CLIENTS > 2
bit taking[CLIENTS];	/* has looked at the cap and found room */
#endif
#ifdef PROGRESS
bool asking[CLIENTS];
#define IF_PROGRESS(x) x
#else
#define IF_PROGRESS(x) skip
#endif

#define dead(c) (!alive[c] || identity[c] != owner[c]) /* what the record's pidfd says */
#define gone(c) (state[c] == LIVE && dead(c))
#define asks(t) (box[t] == HELLO || box[t] == GROW_REQUEST)
#define over() (kills + crashes + cuts == 0) /* then all leave */

/* What was given in answer to a question, while the page says that the question is not done.
 * The number of a question is not in the model: asking the next one makes the promise void. Of
 * two threads the second has none; in lease.c they ask one after the other. */
#ifdef BUG_NO_PROMISE
#define promised(c) 0
#else
#define promised(c) (given[c] -> least(total[c], granted[c]) : 0)
#endif

/* I4: looks whether there is room for each question, whenever that may have become less. */
#if CLIENTS == 2
#define TAKING(c) 0
#define IF_THREE(x) skip
#else
#define TAKING(c) taking[c]
#define IF_THREE(x) x
#endif
#define OTHER(c, me) (c == me || dead(c) -> 0 : most(USED(c) + TAKING(c), promised(c)))
#if CLIENTS == 2
#define OTHERS(me) (OTHER(0, me) + OTHER(1, me))
#else
#define OTHERS(me) (OTHER(0, me) + OTHER(1, me) + OTHER(2, me))
#endif
inline look_for(t)
{
	if
	:: box[t] == GROW_REQUEST && OTHERS(slot(t)) + most(total[t], USED(slot(t))) > limit ->
		no_room[t] = true
	:: else
	fi
}
#define LOOK EACH_THREAD(look_for)

#if THREADS == CLIENTS
#define NEW_QUESTION(t) given[t] = 0
#else
#define NEW_QUESTION(t) if :: t < CLIENTS -> given[slot(t)] = 0 :: else fi
#endif

#include "clients.pml"

/* ==== memory ==== */

/* What lies behind the kernel's locks: everything before was stored. */
#define DRAINED empty(buffer)

/*
 * x86: the daemon's stores to the lease table arrive in order, at any later time. A store that is
 * sequentially consistent waits for that, and a compare-and-swap is a full barrier.
 *
 * ARMv8 (WEAK): memory is one for all, but each processor's stores to different words arrive in
 * any order. Only a store-release (stlr, stlxr, casal) waits for those before it, and only a
 * load-acquire (ldar, ldaxr) for the store-releases before it; no operation is a barrier for
 * itself. The same holds for a client: its compare-and-swap has read `used` and is done, and others
 * do not see it yet. A plain load is made before the stores that it need not wait for.
 */
#ifdef WEAK
#ifdef BUG_CLOSE_RELAXED
#define RELEASES(value) (value > 0)
#else
#define RELEASES(value) 1
#endif
#ifdef BUG_USED_RELAXED
#define FENCE true
#else
#define FENCE (ordered == 0)
#endif
#define SHOW(c) d_step { shown[c] != used[c] -> shown[c] = used[c]; LOOK }
#define PASSED_BY(c) d_step { \
		buffer??[c, value, 0] && !buffer??[c, value, 1] -> \
		buffer??c, value, release; cap[c] = value; value = 0 }
#else
#define RELEASES(value) 0
#define FENCE DRAINED /* __atomic_thread_fence(__ATOMIC_SEQ_CST) */
#endif

active proctype memory()
{
	byte c, value;
	bit release;
end:	do
	:: d_step {
			buffer?c, value, release;
			cap[c] = value;
#ifdef WEAK
			ordered = ordered - release;
#endif
			c = 0; value = 0; release = 0
		}
#ifdef WEAK
	:: SHOW(0)
	:: SHOW(1)
#ifdef BUG_CLOSE_RELAXED
	:: PASSED_BY(0)
	:: PASSED_BY(1)
#endif
#if CLIENTS > 2
	:: SHOW(2)
#endif
#endif
	od
}

/* ==== the daemon: books.c ==== */

/* the store of a cap */
inline store_cap(c, value)
{
	if
	:: own_cap[c] == value
	:: atomic {
			own_cap[c] != value && nfull(buffer) ->
			buffer!c, value, RELEASES(value);
#ifdef WEAK
			ordered = ordered + RELEASES(value);
#endif
			own_cap[c] = value;
			assert(own_cap[c] <= granted[c]) /* I2 */
		}
	fi
}

/* books_grant */
inline book(c, value)
{
	d_step {
		sum = sum + value - granted[c];
		assert(value <= granted[c] || SUM(granted) + value - granted[c] <= limit); /* I1 */
		granted[c] = value;
		assert(own_cap[c] <= granted[c]); /* I2 */
		assert(dead(c) || held[c] <= granted[c]); /* I3 */
		LOOK
	}
}

/* books_member_free; each step may be done again */
inline death(c)
{
	state[c] = DYING;
#ifdef BUG_DEATH_FREE_FIRST
	state[c] = FREE;
#endif
	store_cap(c, 0);
	book(c, 0);
	state[c] = FREE
}

/* ==== grants.c ==== */

inline cap_close(c)
{
	if
	:: state[c] != LIVE
	:: else ->
#ifdef BUG_REVOKE_LEDGER_FIRST
		atomic { g = least(granted[c], USED(c)); book(c, g) }
#endif
		atomic {
#ifdef BUG_CLOSE_TO_USED
			g = most(USED(c), promised(c));
			g = least(g, own_cap[c]);
#else
			g = (hold -> 0 : least(promised(c), own_cap[c]));
#endif
			store_cap(c, g);
			g = 0
		}
	fi
}

/* What is used, or could still be, stays granted. What was promised is looked at first. */
inline grant_settle(c)
{
	p = promised(c);
	atomic {
#if defined(BUG_TRUST_USED)
		g = most(own_cap[c], USED(c));
#elif defined(BUG_FORGET_USED)
		g = own_cap[c];
#else
		g = least(USED(c), granted[c]);
		g = most(g, p);
#ifndef BUG_FORGET_CAP
		g = most(g, own_cap[c]);
#endif
#endif
		if
		:: state[c] == LIVE && g != granted[c] -> book(c, g)
		:: else
		fi;
#ifndef BUG_CLOSE_TO_USED
		again = again || (own_cap[c] > 0 && p == 0);
#endif
		g = 0; p = 0
	}
}

/* Not while the limit is exceeded. */
inline cap_raise(c)
{
	atomic {
		if
#ifdef BUG_CUT_KEEPS_CAPS
		:: true ->
#else
		:: sum > limit
		:: else ->
#endif
			g = granted[c];
			store_cap(c, g)
		fi;
		g = 0
	}
}

/* After the fence nobody takes anything new but what it was promised: what is read then was
 * held, or was just being taken, at one moment. Again if a promise was over meanwhile: who had
 * it could take more than once. */
inline sweep()
{
	do
	:: EACH(cap_close);
#ifndef BUG_NO_FENCE
		FENCE;
#endif
		again = false;
		EACH(grant_settle);
#ifdef BUG_SWEEP_ONCE
		again = false;
#endif
		if
		:: again
		:: else -> break
		fi
	od;
	again = false;
	EACH(cap_raise)
}

/* A member that is made to ask may not take again what it gave back. */
inline held_settle(c)
{
	if
#ifdef BUG_NO_HELD_SETTLE
	:: true
#else
	:: own_cap[c] >= granted[c]
	:: else -> FENCE -> grant_settle(c); again = false
#endif
	fi
}

#define GROWTH(t, c) (total[t] > granted[c] -> total[t] - granted[c] : 0)
#define OBSTACLE(t, c) (GROWTH(t, c) > 0 && sum + GROWTH(t, c) > limit)

/* server_reply and all that goes back to the kernel, whose locks are fences */
inline reply(t, what)
{
	atomic {
		DRAINED;
		if
		:: alive[slot(t)] -> box[t] = what
		:: else -> box[t] = NONE; total[t] = 0; no_room[t] = false
		fi
	}
}

inline bury_other(c)
{
	if
	:: gone(c) && c != slot(i) -> death(c)
	:: else
	fi
}

/* grants_need */
inline need(t, c)
{
	held_settle(c);
	do
	:: OBSTACLE(t, c) && !swept ->
#ifndef BUG_NO_SWEEP
		sweep();
#endif
#if !defined(BUG_REFUSE_BEFORE_REAP) && !defined(BUG_REAP_ONCE)
		EACH(bury_other); /* who died before the sweep */
#endif
		swept = true
	:: atomic {
			OBSTACLE(t, c) && swept ->
			assert(no_room[t]); /* I4 */
#ifdef MOST
			assert(limit < LIMIT) /* I4 */
#endif
		}
		reply(t, REFUSED);
		break
	:: atomic {
			!OBSTACLE(t, c) ->
			g = most(granted[c], total[t]);
			if
			:: true
			:: GROWTH(t, c) > 0 && sum + GROWTH(t, c) < limit -> g++ /* bonus */
#ifdef BUG_GIVE_LOWERS
			:: g = total[t]
#endif
			fi;
#ifdef BUG_GRANT_CAP_FIRST
			store_cap(c, g);
#endif
			book(c, g);
			if
			:: t == c -> given[c] = 1
			:: else
			fi;
			LOOK;
			g = 0
		}
#ifdef BUG_GIVE_WHILE_DRAINING
		atomic { g = granted[c]; store_cap(c, g); g = 0 }
#else
		cap_raise(c);
#endif
		reply(t, GROW_REPLY);
		break
	od;
	swept = false
}

/* grants_enforce */
inline enforce()
{
	if
	:: sum > limit -> hold = true; sweep(); hold = false
	:: else
	fi;
	in_force = limit
}

/* grants_settle: how far a killed daemon was, nobody knows */
inline settle(c)
{
	if
	:: own_cap[c] == granted[c]
	:: else ->
#ifdef BUG_SETTLE_TO_CAP
		atomic { g = own_cap[c]; book(c, g); g = 0 }
#else
		FENCE;
		grant_settle(c);
		again = false;
#endif
#ifdef BUG_SETTLE_OPENS
		atomic { g = granted[c]; store_cap(c, g); g = 0 }
#else
		cap_raise(c)
#endif
	fi
}

/* ==== members.c ==== */

inline bury_dead(c)
{
	if
	:: gone(c) -> death(c)
	:: else
	fi
}

/* members_join; the usage page is a new one */
inline hello(t, c)
{
	d_step {
		if
		#ifdef WEAK
		:: state[c] == FREE -> shown[c] = 0; used[c] = 0; owner[c] = identity[c]; state[c] = LIVE
#else
		:: state[c] == FREE -> used[c] = 0; owner[c] = identity[c]; state[c] = LIVE
#endif
		:: else
		fi
	}
	reply(t, GROW_REPLY)
}

/* rows_read */
inline sum_add(c)
{
	if
	:: state[c] == FREE
	:: else -> sum = sum + granted[c]
	fi
}

/* members_attach */
inline attach(c)
{
	if
	:: state[c] == FREE
#ifndef BUG_FORGET_DYING
	:: state[c] == DYING -> death(c)
#endif
	:: gone(c) -> death(c)
	:: state[c] == LIVE && !dead(c) -> settle(c)
	fi
}

inline restart()
{
	d_step { sum = 0; EACH(sum_add) }
	EACH(attach);
	enforce()
}

#define promise_forget(c) given[c] = 0

/* The connections of a daemon that is gone. */
inline hang_up(t)
{
	if
	:: asks(t) && alive[slot(t)] -> box[t] = LOST
	:: asks(t) && !alive[slot(t)] -> box[t] = NONE; total[t] = 0
	:: else
	fi;
	no_room[t] = false
}

active proctype daemon()
{
	byte i, g;
	byte p;
	bool swept, again, hold;
#ifdef PROGRESS
	byte turn;
#endif
boot:
	{
		restart();
end:		do
#ifdef PROGRESS
		/* who was served waits for the others, as with epoll */
		:: atomic {
				asks(turn) || asks(1 - turn) ->
				i = (asks(turn) -> turn : 1 - turn);
				turn = 1 - i
			}
#else
		:: atomic { ANY_THREAD(asks) -> PICK_THREAD(asks, i) }
#endif
#ifndef BUG_REFUSE_BEFORE_REAP
			EACH(bury_dead); /* answer: members_dispatch */
#endif
			if
#ifndef BUG_NO_GENERATION
			:: dead(slot(i)) && box[i] == GROW_REQUEST -> reply(i, LOST)
			:: !dead(slot(i)) && box[i] == GROW_REQUEST -> need(i, slot(i))
#else
			:: box[i] == GROW_REQUEST -> need(i, slot(i))
#endif
			:: box[i] == HELLO -> hello(i, slot(i))
			fi;
			i = 0
		:: atomic { ANY(gone) -> PICK(gone, i) }
			death(i);
			i = 0
		:: d_step { cuts > 0 -> cuts--; limit = CUT; LOOK }
			enforce()
		od
	} unless { crashed };
	DRAINED; /* what was stored is stored */
	d_step {
		crashed = false;
		sum = 0; i = 0; g = 0; p = 0; swept = false; again = false; hold = false;
		EACH(promise_forget);
		EACH_THREAD(hang_up)
	}
	goto boot
}

/* ==== fate ==== */

#define KILL(c) d_step { kills > 0 && alive[c] && !killed[c] -> kills--; killed[c] = true }

active proctype fate()
{
end:	do
	:: KILL(0)
	:: KILL(1)
#if CLIENTS > 2
	:: KILL(2)
#endif
	:: d_step { crashes > 0 && !crashed -> crashes--; crashed = true }
	:: d_step { !over() -> kills = 0; crashes = 0; cuts = 0; spawns = 0 } /* no more */
	od
}

#define ALL_OVER(c) assert(!alive[c] && state[c] == FREE && granted[c] == 0 && cap[c] == 0)

active proctype undertaker()
{
	timeout; /* nothing else can happen */
	EACH(ALL_OVER) /* I5 */
}

#ifdef PROGRESS
#ifdef ALONE
ltl served { <>[]!asking[1] -> [](asking[0] -> <>!asking[0]) } /* I6 */
#else
ltl served { [](asking[0] -> <>!asking[0]) } /* I6 */
#endif
#endif
