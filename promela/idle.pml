/*
 * idle.pml: an idle worker's sleep against push, steal and Blocking (internal/sched).
 *
 * NW workers are started at first, MAXW is the cap on workers, TARGET the number
 * that should run fibers at once.  A queue is a count of runnable items: gq the
 * global one, lq[i] the ring of worker i, which everybody may steal from.
 * NPUSH goroutines from outside push one item each into gq.  An item, when run,
 * may push further items (KIDS in all), may never end (LONG of them: a long
 * computation), may enter Blocking (NATIVE of them) and return from it or not.
 *
 * The handshake.  Whoever publishes an item looks at the idle workers afterwards;
 * whoever goes idle announces it, and looks at the queues afterwards.  One of the
 * two sees the other.  Three more sides have the same duty, because a pusher relies
 * on them: a searcher (nsearch != 0) looks again after it has left nsearch, be it
 * with work or without; a worker that leaves `active` for a native call looks again
 * after it has left; a worker that moves items between queues counts as a searcher,
 * because what it has in hand is in no queue that others look at.
 *
 * In the code (internal/sched)            here
 *   wake (after each push)                inline wake
 *   find, steal                           Worker, from label find
 *   found (leave nsearch, chain)          Worker, label found
 *   idle (announce, re-check, sleep)      Worker, label idle
 *   anywork                               inline anywork: one pass, no lock
 *   Blocking                              Worker, label native
 *   push to the own ring / the global     Worker, label progress_item / proctype Pusher
 *   one-slot semaphore of a worker        sem[i]
 *
 * `active` is a word of Promela's: here it is nactive.
 * nidle, nsearch, active are atomics that are read without the mutex; the idle list
 * (onlist) changes under the mutex only.  Each statement outside the mutex is one
 * atomic operation on one variable; so is each inside that others can see without it.
 *
 * Properties
 *   WORK     at rest no item is runnable while fewer than TARGET workers are active and
 *            a worker sleeps or may still be started (also if some worker never comes
 *            back from its item: work conservation, stronger than "not all asleep").
 *            Spec: SC-09, SC-19, SC-24, SC-25, SC-40
 *   TOKEN    a semaphore is released only when empty; a worker gets a token only when it
 *            was taken off the list; no token is left at rest
 *   SPIN     no worker goes round for ever without running items: no non-progress cycle
 *            (a run of its own, with pan -l).  Spec: SC-23, SC-26
 *   COUNT    nsearch, nidle, active never go below 0 and are exact at rest
 *
 * Mutants, each of which the check has to find, and what finds it
 *   NO_RECHECK       no pass over the queues after the announcement        WORK
 *   LATE_ANNOUNCE    the pass comes before the announcement                WORK
 *   NSEARCH_LATE     nsearch is left after the pass                        WORK
 *   CHECK_FIRST      the pusher looks at the idle ones before its push     WORK
 *   NO_CHAIN         a searcher that found work wakes nobody               WORK
 *   CHAIN_EARLY      it looks for more work, then leaves nsearch           WORK
 *   NO_CONSUME       a popped worker does not wait for its token           TOKEN
 *   BLOCK_NO_RECHECK Blocking leaves active and does not look again        WORK
 *   BLOCK_EARLY      Blocking looks, then leaves active                    WORK
 *   PHANTOM          nsearch is taken before the list is seen, and given
 *                    back after the mutex when the list was empty          WORK
 *   NO_SPARE         a pusher that sees nidle == 0 starts no spare, though
 *                    active < TARGET                                       WORK
 *   UNCOUNTED_BACK   a worker that the re-check brings back is no searcher WORK
 *   UNCOUNTED_STEAL  stealing several at once without being a searcher     WORK
 *   NSEARCH_LEAK     the woken worker, back asleep, does not leave nsearch COUNT
 *   POLL             a worker with nothing to do looks again, no sleep     SPIN
 */
#ifndef NW
#define NW 2
#endif
#ifndef MAXW
#define MAXW NW
#endif
#ifndef TARGET
#define TARGET NW
#endif
#ifndef ASLEEP
#define ASLEEP 0                        /* of the NW: asleep at first (the last ones) */
#endif
#ifndef NPUSH
#define NPUSH 2
#endif
#ifndef KIDS
#define KIDS 1
#endif
#ifndef LONG
#define LONG 1
#endif
#ifndef NATIVE
#define NATIVE 1
#endif
#ifndef CAP
#define CAP 2                           /* of a ring; the overflow goes to gq      */
#endif

/* ---- the machine ---------------------------------------------------------- */
byte gq;
byte lq[MAXW];
bit  mutex;
bit  onlist[MAXW];
bit  sem[MAXW];
byte nidle, nsearch;
byte nactive = NW - ASLEEP;
byte started = NW;                      /* workers, under the mutex                */

/* ---- ghosts --------------------------------------------------------------- */
byte kids = KIDS, longs = LONG, natives = NATIVE;
byte nlong, nnative;                    /* workers that are in an item for ever    */

inline lock()   { atomic { !mutex -> mutex = 1 } }
inline unlock() { mutex = 0 }
inline dec(x)   { assert(x > 0); x-- }

/* One pass over all queues, without a lock. */
inline anywork(yes) {
	yes = (gq > 0);
	i = 0;
	do
	:: !yes && i < MAXW -> atomic { yes = (lq[i] > 0); i++ }
	:: else -> break
	od;
	i = 0
}

/* Take a sleeping worker off the list, or start a spare one: it is nactive and it
 * searches before anybody can see that it is no longer idle. */
inline rouse(j) {
	onlist[j] = 0;
	nactive++;
	atomic { dec(nidle) }
	unlock();
	atomic { assert(!sem[j]); sem[j] = 1 }
}

inline casSearch() { d_step { if :: nsearch == 0 -> nsearch = 1; ok = 1 :: else -> ok = 0 fi } }

#define NOBODY (nidle == 0 && started == MAXW)

#ifdef NO_SPARE
#define PUSHER 0
#else
#define PUSHER 1
#endif
inline wake(mayStart) {
	if
	:: nsearch != 0                         /* it will look after it has left  */
	:: else ->
		if
		:: nactive >= TARGET             /* who leaves active looks again   */
		:: else ->
			ok = (nidle != 0);
			if :: !ok && mayStart -> ok = (started < MAXW) :: else fi;
			if
			:: !ok                  /* who joins the list looks again  */
			:: ok -> wakeSlow()
			fi
		fi
	fi
}
inline wakeSlow() {
#ifdef PHANTOM
	casSearch();
	if
	:: ok ->
		lock();
		if
		:: onlist[0] -> rouse(0)
		:: onlist[1] -> rouse(1)
#if MAXW > 2
		:: onlist[2] -> rouse(2)
#endif
		:: else ->
			unlock();
			atomic { dec(nsearch) }
		fi
	:: else
	fi
#else
	lock();
	if
	:: NOBODY || nactive >= TARGET -> unlock()
	:: else ->
		casSearch();
		if
		:: !ok -> unlock()
		:: ok && onlist[0] -> rouse(0)
		:: ok && onlist[1] -> rouse(1)
#if MAXW > 2
		:: ok && onlist[2] -> rouse(2)
#endif
		:: ok && nidle == 0 ->                  /* a spare one, as a searcher */
			nactive++;
			started++;
			run Worker(started - 1, 1, 0);
			unlock()
		fi
	fi
#endif
}

proctype Pusher() {
	bit ok;
#ifdef CHECK_FIRST
	bit none;
	none = (nsearch != 0 || nactive >= TARGET || NOBODY);
	gq++;
	if :: none :: else -> wakeSlow() fi
#else
	gq++;
	wake(PUSHER)
#endif
}

proctype Worker(byte me; bit searching; bit asleep) {
	byte i, n; bit ok, yes;
	if :: asleep -> goto end_sleep :: else fi;
find:
	atomic { n = 0; ok = 0; yes = 0 };
	atomic { if :: lq[me] > 0 -> lq[me]--; goto found :: else fi };
	atomic { if :: gq > 0 -> gq--; goto found :: else fi };
#ifndef UNCOUNTED_STEAL
	if
	:: searching
	:: !searching -> atomic { nsearch++; searching = 1 }
	:: !searching -> goto idle              /* enough searchers already        */
	fi;
#endif
	do
	:: i < MAXW ->
		atomic {                        /* half, at least one: CAS on head */
			if
			:: i != me && lq[i] > 0 -> n = (lq[i] + 1) / 2; lq[i] = lq[i] - n
#ifdef GREEDY
			:: i != me && lq[i] > 1 -> n = lq[i]; lq[i] = 0
#endif
			:: else
			fi;
			i++
		};
		if
		:: n > 0 ->
			i = 0;
			if
			:: n > 1 -> atomic { lq[me] = lq[me] + n - 1; n = 0 }
			:: else -> n = 0
			fi;
			goto found
		:: else
		fi
	:: else -> break
	od;
	i = 0;

idle:
#ifdef POLL
	goto find;
#endif
#ifdef LATE_ANNOUNCE
	anywork(yes);
	if :: yes -> goto find :: else fi;
#endif
	lock();
	atomic { onlist[me] = 1; nidle++ };
	atomic { dec(nactive) };
#ifndef NSEARCH_LEAK
#ifndef NSEARCH_LATE
	if :: searching -> atomic { dec(nsearch); searching = 0 } :: else fi;
#endif
#endif
	unlock();
#ifndef LATE_ANNOUNCE
#ifndef NO_RECHECK
	anywork(yes);
#endif
#endif
#ifdef NSEARCH_LATE
	if :: searching -> atomic { dec(nsearch); searching = 0 } :: else fi;
#endif
	if
	:: yes ->
		yes = 0;
		lock();
		if
		:: onlist[me] ->
			nactive++;
			atomic { onlist[me] = 0; dec(nidle) };
#ifndef UNCOUNTED_BACK
			atomic { nsearch++; searching = 1 };
#endif
			unlock();
			goto find
		:: else ->
			unlock();
#ifdef NO_CONSUME
			searching = 1;
			goto find
#endif
		fi
	:: else
	fi;
end_sleep:
	atomic { sem[me] -> sem[me] = 0; assert(!onlist[me]); searching = 1 };
	goto find;

found:
	if
	:: searching ->
#ifdef CHAIN_EARLY
		anywork(yes);
#endif
		atomic { searching = 0; dec(nsearch); ok = (nsearch == 0) };
#ifndef NO_CHAIN
		if
		:: ok ->                        /* the last one: chain             */
#ifndef CHAIN_EARLY
			anywork(yes);
#endif
			if :: yes -> yes = 0; wake(1) :: else fi
		:: else
		fi
#endif
	:: else
	fi;

progress_item:
	if
	:: true -> goto find
	:: atomic { kids > 0 -> kids-- };
		atomic { if :: lq[me] < CAP -> lq[me]++ :: else -> gq++ fi };
		wake(PUSHER);
		goto progress_item
	:: atomic { longs > 0 -> longs--; nlong++ };
end_long:	false
	:: atomic { natives > 0 -> natives-- };
native:
#ifdef BLOCK_EARLY
		anywork(yes);
#endif
		atomic { dec(nactive) };
#ifndef BLOCK_NO_RECHECK
#ifndef BLOCK_EARLY
		anywork(yes);
#endif
		if :: yes -> yes = 0; wake(1) :: else fi;
#endif
		if
		:: true -> nactive++; goto progress_item
		:: true -> nnative++;
end_native:		false
		fi
	fi
}

init {
	byte i, items, idlers;
	atomic {
		for (i : 0 .. NW-1)  { if :: i >= NW-ASLEEP -> onlist[i] = 1; nidle++ :: else fi }
		for (i : 1 .. NW)    { run Worker(i-1, 0, onlist[i-1]) }
		for (i : 1 .. NPUSH) { run Pusher() }
		i = 0
	}
	timeout;                                /* at rest                         */
	d_step {
		items = gq;
		for (i : 0 .. MAXW-1) {
			items = items + lq[i];
			idlers = idlers + onlist[i];
			assert(!sem[i])
		}
		assert(!mutex);
		assert(nsearch == 0);
		assert(nidle == idlers);
		assert(nactive == nlong);
		assert(started == nidle + nlong + nnative);
		assert(items == 0 || nactive >= TARGET || NOBODY)
	}
}
