/* SPDX-License-Identifier: MIT */
/*
 * The division of a fleet's quota: two hosts, two dividers, etcd between them. Any of them may be
 * slow for ever; hosts are cut off and come back, dividers forget everything between two steps,
 * the quota's demand moves at will. Names are those of src/fleet/division.h and divider.c.
 * tests/model_fleet.sh runs it; docs/fleet.md tells the protocol in words.
 *
 * Checked:
 *  I1  What the hosts allow themselves is together at most the quota.
 *  I2  After each transaction, shares and what is free are the quota.
 *  I3  A host allows itself at most its share.
 *
 * Time: a host's lease ends in etcd (lease = false) only after the host has ended its own use of it
 * (leased = false), which is the margin of src/fleet/host.c.
 */
#ifndef QUOTA
#define QUOTA 2
#endif
#ifndef GUARANTEE
#define GUARANTEE 1
#endif
#ifndef LOSSES
#define LOSSES 1 /* how often hosts are cut off */
#endif
#define HOSTS 2
#ifndef ROUNDS
#define ROUNDS 3 /* transactions that change something */
#endif
#define least(a, b) (a < b -> a : b)

/* etcd: records, their revisions, the ledger and the leases */
byte share[HOSTS], kept[HOSTS], target[HOSTS], bottom[HOSTS];
byte revision[HOSTS], ledger_revision;
byte freed = QUOTA;
bool lease[HOSTS];
byte confirmed[HOSTS]; /* the revision that the host has reported; 0: none */

/* hosts: the record that they keep to */
byte seen_target[HOSTS], seen_bottom[HOSTS], seen_revision[HOSTS];
bool leased[HOSTS];
byte losses, commits;

#define ALLOWED(h) (leased[h] -> seen_target[h] : seen_bottom[h])
#define CHECK_HOSTS                                                                                \
	assert(ALLOWED(0) + ALLOWED(1) <= QUOTA);			      /* I1 */             \
	assert(ALLOWED(0) <= share[0] && ALLOWED(1) <= share[1])	      /* I3 */
#define CHECK_LEDGER assert(share[0] + share[1] + freed == QUOTA) /* I2 */

active [HOSTS] proctype host()
{
	do
	/* A new session: the lease first, then the record as it is now. */
	:: atomic {
			!lease[_pid] && !leased[_pid] -> lease[_pid] = true;
#ifdef BUG_OLD_RECORD
			leased[_pid] = true; CHECK_HOSTS
#endif
		}
#ifndef BUG_OLD_RECORD
		atomic {
			lease[_pid] ->
			seen_target[_pid] = target[_pid];
			seen_bottom[_pid] = bottom[_pid];
			seen_revision[_pid] = revision[_pid];
			leased[_pid] = true;
			CHECK_HOSTS
		}
#endif
	/* A change comes, sooner or later. */
	:: atomic {
			leased[_pid] && seen_revision[_pid] != revision[_pid] ->
			seen_target[_pid] = target[_pid];
			seen_bottom[_pid] = bottom[_pid];
			seen_revision[_pid] = revision[_pid];
			CHECK_HOSTS
		}
	/* The collector keeps to it. */
	:: atomic {
#ifdef BUG_CONFIRM_EARLY /* what has come, but is not in force */
			leased[_pid] && confirmed[_pid] != revision[_pid] -> confirmed[_pid] = revision[_pid]
#else
			leased[_pid] && confirmed[_pid] != seen_revision[_pid] ->
			confirmed[_pid] = seen_revision[_pid]
#endif
		}
	/* Cut off: its own clock first, then etcd's. */
	:: atomic { leased[_pid] && losses < LOSSES -> losses++;
#ifdef BUG_NO_MARGIN
			lease[_pid] = false }
		atomic { leased[_pid] = false; CHECK_HOSTS }
#else
			leased[_pid] = false; CHECK_HOSTS }
		atomic { lease[_pid] = false }
#endif
	:: commits >= ROUNDS -> break
	od
}

/* A divider reads everything, one thing after the other, and writes one record with the ledger. */
active [2] proctype divider()
{
	byte h, at, ledger_at, was_free, was_share, was_kept, was_target, was_bottom, wish, said;
	byte new_share, new_kept, new_target, new_bottom;
	bool was_alive;

	do
	:: commits < ROUNDS ->
		atomic {
			if :: h = 0 :: h = 1 fi;
			ledger_at = ledger_revision;
			was_free = freed;
			at = revision[h];
			was_share = share[h]; was_kept = kept[h]; was_target = target[h]; was_bottom = bottom[h]
		}
		atomic { said = confirmed[h]; was_alive = lease[h] }
		atomic {
			if :: wish = 0 :: wish = 1 :: wish = QUOTA fi; /* demand */
			new_share = was_share; new_kept = was_kept;
			new_target = was_target; new_bottom = was_bottom;
			/* record_settle */
			if
			:: was_alive && said == at && at > 0 ->
				new_share = least(was_share, was_target);
				new_kept = was_bottom
#ifdef BUG_NO_CONFIRM
			:: was_alive && !(said == at && at > 0) -> new_share = was_target
#else
			:: was_alive && !(said == at && at > 0)
#endif
			:: !was_alive ->
#ifdef BUG_FORGET_KEPT
				new_share = was_bottom; new_kept = was_bottom;
#else
				new_share = was_kept;
#endif
				new_target = least(was_bottom, new_share)
			fi;
			was_free = was_free + was_share - new_share;
			/* target_lower */
			if
			:: was_alive && wish < new_target ->
				new_target = wish;
				new_bottom = least(new_bottom, wish)
#ifdef BUG_LOWER_KEPT
				; was_free = was_free + new_share - (new_kept > wish -> wish : new_kept);
				new_share = (new_kept > wish -> wish : new_kept); new_kept = new_share;
				new_share = (new_share > new_target -> new_share : new_target)
#endif
			/* target_raise */
			:: was_alive && wish >= new_target ->
#ifdef BUG_GIVE_TOO_MUCH
				if
				:: wish > new_share -> new_share = wish; was_free = 0
				:: else
				fi;
#else
				if
				:: wish > new_share ->
					if
					:: wish - new_share <= was_free ->
						was_free = was_free - (wish - new_share); new_share = wish
					:: else -> new_share = new_share + was_free; was_free = 0
					fi
				:: else
				fi;
#endif
				new_target = least(wish, new_share);
				if
				:: least(GUARANTEE, new_target) > new_bottom -> new_bottom = least(GUARANTEE, new_target)
				:: else
				fi;
				if
				:: new_bottom > new_kept -> new_kept = new_bottom
				:: else
				fi
			:: !was_alive
			fi;
			if
			:: new_share == was_share && new_kept == was_kept && new_target == was_target &&
				new_bottom == was_bottom /* nothing to write */
			:: else ->
				if
				:: (true
#ifndef BUG_NO_LEDGER_COMPARE
					&& ledger_revision == ledger_at
#endif
					/* The ledger changes with every record: its revision is
					 * enough, and the record's is compared on top of that. */
					&& revision[h] == at
#ifndef BUG_NO_LEASE_COMPARE
					&& (was_alive || !lease[h])
#endif
					) ->
					share[h] = new_share; kept[h] = new_kept;
					target[h] = new_target; bottom[h] = new_bottom;
					freed = was_free;
					commits++;
					revision[h] = commits;
					ledger_revision = commits;
					CHECK_LEDGER;
					CHECK_HOSTS
				:: else
				fi
			fi;
			h = 0; at = 0; ledger_at = 0; was_free = 0; was_share = 0; was_kept = 0; was_target = 0;
			was_bottom = 0; wish = 0; said = 0; was_alive = false;
			new_share = 0; new_kept = 0; new_target = 0; new_bottom = 0
		}
	:: else -> break
	od
}
