/*
 * shutdown.pml: Close of the scheduler against spawns, parks, wakes and idle workers.
 *
 * Close says `closing`, cancels the nurseries, waits until no admitted fiber lives,
 * says `stopping`, wakes every idle worker, waits until all workers have gone, and
 * only then lets the free coroutines exit (they must be quiet: see DESIGN section 5).
 * Meanwhile NSPAWN goroutines from outside spawn a fiber each, and fibers that run may spawn
 * (KIDS in all).  A fiber parks up to NPARK times; it is woken by a timer that
 * fires at any time, also after its end; by a canceller of its scope that has nothing to do with
 * Close and may be as late; by Close's own cancel.
 *
 * In the code (internal/sched)            here
 *   admit (live++, then look at closing)  inline admit
 *   leave (live--, the last one signals)  inline leave
 *   arm, disarm, commit, wake             inlines; word.pml has them in full: here
 *                                         a state a fiber and its ticket change in one step
 *   enqueue (push, then wake an idle one) inline enqueue; idle.pml has it in full
 *   worker's loop, idle, exit             proctype Worker
 *   Close                                 proctype Closer
 *   Nursery.cancel (flag, then the walk)  inline cancelAll
 *
 * Properties
 *   END      every admitted fiber ends, every worker exits, Close returns: no invalid
 *            end state (a fiber's wait may have no other waker than the cancel).
 *            Spec: SH-03, SH-04, SH-05, SH-06, SH-07, SH-12
 *   GONE     nothing is enqueued once `stopping` is set; late wakes get lost or stale.
 *            Spec: SH-13
 *   EXACT    live and nidle never go below 0; at the end live is 0, no token is left
 *   STILL    when the coroutines are let go none of them is on a cpu or suspended in a fiber.
 *            Spec: SH-09
 *   REFUSED  a spawn that was refused is never run; one that was admitted is
 *
 * Mutants, each of which the check has to find, and what finds it
 *   ADMIT_EARLY     looks at closing, then live++                            GONE
 *   STOP_EARLY      stopping is set before live == 0                         GONE
 *   IDLE_STOP_EARLY a worker looks at stopping, then announces itself idle   END
 *   NO_RECHECK      an idle worker does not look at the queue again          END
 *   REFUSE_SILENT   a refused spawn that was the last one does not signal    END
 *   CANCEL_NO_RECHECK the parker does not look at the flag after arm         END
 *   CANCEL_LATE     the nurseries are cancelled, the flag set afterwards     END
 *   NO_JOIN         the coroutines are let go before the workers have gone   STILL
 *   LEAVE_EARLY     a fiber leaves live before its last wait is over         GONE
 *   WAKE_ONE        stop wakes one idle worker in place of all               END
 */
#ifndef NW
#define NW 2
#endif
#ifndef NSPAWN
#define NSPAWN 1
#endif
#ifndef KIDS
#define KIDS 1
#endif
#ifndef NPARK
#define NPARK 1                         /* waits of a fiber, at most               */
#endif
#ifndef TIMER
#define TIMER 1
#endif
#ifndef CANCELLER
#define CANCELLER 1
#endif
#define NF (NSPAWN + KIDS)

#define RUNNING  0
#define PARKING  1
#define PARKED   2
#define NOTIFIED 3
#define RUNNABLE 4

/* ---- the machine ---------------------------------------------------------- */
byte state[NF], ticket[NF];             /* the words: changed in one step          */
bit  cancelled;                         /* the nursery's flag                      */
bit  closing, stopping;
byte live;
bit  quiet;                             /* one-slot semaphore: Close waits on it   */
bit  queued[NF];                        /* the run queue                           */
byte nqueued;
bit  mutex, onlist[NW], sem[NW];
byte nidle;
byte workers = NW;

/* ---- ghosts --------------------------------------------------------------- */
byte next;                              /* frames given out so far                 */
byte kids = KIDS;
byte parks[NF];
bit  admitted[NF], ended[NF], inwait[NF], oncpu[NF];
bit  closed;

inline lock()   { atomic { !mutex -> mutex = 1 } }
inline unlock() { mutex = 0 }

inline admit() {                        /* ok: f is a frame, admitted              */
#ifdef ADMIT_EARLY
	ok = !closing;
	if :: ok -> live++ :: else fi;
#else
	live++;
	ok = !closing;
#endif
	if
	:: ok -> d_step { f = next; next++; admitted[f] = 1 }
	:: else ->
#ifndef ADMIT_EARLY
#ifdef REFUSE_SILENT
		d_step { assert(live > 0); live-- }
#else
		leave()
#endif
#else
		skip
#endif
	fi
}

inline leave() {                        /* the last one tells Close                */
	d_step { assert(live > 0); live--; z = (live == 0) };
	if
	:: z && closing -> quiet = 1
	:: else
	fi;
	z = 0
}

inline rouse(j) {
	d_step { assert(nidle > 0); onlist[j] = 0; nidle-- };
	unlock();
	d_step { assert(!sem[j]); sem[j] = 1 }
}
inline enqueue(f) {
	d_step { assert(!stopping); assert(!queued[f]); queued[f] = 1; nqueued++ };
	if
	:: nidle == 0                   /* who joins the list looks again          */
	:: else ->
		lock();
		if
		:: onlist[0] -> rouse(0)
#if NW > 1
		:: onlist[1] -> rouse(1)
#endif
		:: else -> unlock()
		fi
	fi
}

/* wake(t) of fiber g: won while PARKING or PARKED with that ticket, else lost or stale */
inline wake(g, t) {
	d_step {
		won = 0;
		if
		:: ticket[g] == t && state[g] == PARKING -> state[g] = NOTIFIED
		:: ticket[g] == t && state[g] == PARKED  -> state[g] = RUNNABLE; won = 1
		:: else
		fi;
		assert(!won || !ended[g])
	};
	if :: won -> won = 0; enqueue(g) :: else fi
}

inline cancelAll() {                    /* flag, then the children                 */
#ifndef CANCEL_LATE
	cancelled = 1;
#endif
	g = 0;
	do
	:: g < NF ->
		d_step { t = ticket[g]; ok = (state[g] == PARKING || state[g] == PARKED) };
		if :: ok -> wake(g, t) :: else fi;
		atomic { g++; t = 0; ok = 0 }
	:: else -> break
	od;
#ifdef CANCEL_LATE
	cancelled = 1;
#endif
	g = 0
}

proctype Spawner() {
	byte f; bit ok, z;
	admit();
	if :: ok -> enqueue(f) :: else fi
}

proctype Timer() {                      /* (frame, ticket) of some wait, whenever  */
	byte g, t; bit won;
	if
	:: d_step { inwait[0] -> g = 0; t = ticket[0] }
#if NF > 1
	:: d_step { inwait[1] -> g = 1; t = ticket[1] }
#endif
	:: true -> goto out
	fi;
	wake(g, t);
out:	skip
}

proctype Canceller() {                  /* somebody else's cancel, whenever        */
	byte g, t; bit ok, won;
	if
	:: true -> cancelAll()
	:: true
	fi
}

proctype Closer() {
	byte g, t; bit ok, won;
	closing = 1;
	cancelAll();
#ifndef STOP_EARLY
	do
	:: live == 0 -> break
	:: else -> atomic { quiet -> quiet = 0 }
	od;
#endif
	stopping = 1;
	g = 0;
	do
	:: g < NW ->
		lock();
		if
		:: onlist[g] ->
			rouse(g);
#ifdef WAKE_ONE
			break
#endif
		:: else -> unlock()
		fi;
		g++
	:: else -> break
	od;
	g = 0;
#ifndef NO_JOIN
	workers == 0;
#endif
	d_step {                        /* let the coroutines go: all must be quiet */
		for (g : 0 .. NF-1) {
			assert(!oncpu[g]);
			assert(!inwait[g]);
			assert(!queued[g])
		}
	};
	closed = 1
}

proctype Worker(byte me) {
	byte f, c; bit ok, won, z;
find:
	if
	:: atomic { queued[0] -> queued[0] = 0; nqueued--; f = 0 }
#if NF > 1
	:: atomic { queued[1] -> queued[1] = 0; nqueued--; f = 1 }
#endif
#if NF > 2
	:: atomic { queued[2] -> queued[2] = 0; nqueued--; f = 2 }
#endif
	:: nqueued == 0 -> goto idle
	fi;
	d_step { assert(!oncpu[f] && admitted[f] && !ended[f]); oncpu[f] = 1; inwait[f] = 0 };

fiber:
	if
	:: atomic { kids > 0 -> kids-- };       /* spawn a child                   */
		c = f;
		admit();                        /* sets f                          */
		if :: ok -> enqueue(f) :: else fi;
		atomic { f = c; c = 0; ok = 0 };
		goto fiber
	:: parks[f] < NPARK ->
#ifdef LEAVE_EARLY
		leave();
#endif
		d_step { parks[f]++; ticket[f]++; state[f] = PARKING; inwait[f] = 1 }; /* arm */
#ifndef CANCEL_NO_RECHECK
		if
		:: cancelled ->                 /* disarm                          */
			d_step { if :: state[f] == PARKING -> state[f] = RUNNING :: else fi;
				inwait[f] = 0 };
			goto fiber
		:: else
		fi;
#endif
		oncpu[f] = 0;                   /* the swap, then commit           */
		d_step { ok = (state[f] == PARKING); if :: ok -> state[f] = PARKED :: else fi };
		if :: ok :: else -> enqueue(f) fi;
		atomic { f = 0; ok = 0; goto find }
	:: true ->                              /* end                             */
		d_step { ended[f] = 1; assert(!inwait[f]) };
#ifdef LEAVE_EARLY
		if :: parks[f] > 0 :: else -> leave() fi;
#else
		leave();
#endif
		oncpu[f] = 0;                   /* its coroutine is free now       */
		atomic { f = 0; goto find }
	fi;

idle:
#ifdef IDLE_STOP_EARLY
	if :: stopping -> goto exit :: else fi;
#endif
	lock();
	d_step { onlist[me] = 1; nidle++ };
	unlock();
#ifdef NO_RECHECK
	ok = 0;
#else
	ok = (nqueued > 0);
#endif
#ifndef IDLE_STOP_EARLY
	if :: !ok -> ok = stopping :: else fi;
#endif
	if
	:: ok ->
		ok = 0;
		lock();
		if
		:: onlist[me] ->
			d_step { onlist[me] = 0; nidle-- };
			unlock();
			goto again
		:: else -> unlock()             /* popped: the token is on its way */
		fi
	:: else
	fi;
	atomic { sem[me] -> sem[me] = 0; assert(!onlist[me]) };
again:
	if
	:: stopping && nqueued == 0 -> goto exit        /* GONE: the queue stays empty */
	:: else -> goto find
	fi;

exit:
	workers--
}

init {
	byte i;
	atomic {
		for (i : 1 .. NW)     { run Worker(i-1) }
		for (i : 1 .. NSPAWN) { run Spawner() }
		if :: TIMER -> run Timer() :: else fi;
		if :: CANCELLER -> run Canceller() :: else fi;
		run Closer();
		i = 0
	}
	timeout;                                /* at rest                         */
	d_step {
		assert(closed);
		assert(workers == 0);
		assert(live == 0);
		assert(nidle == 0 && nqueued == 0);
		for (i : 0 .. NF-1) { assert(ended[i] == admitted[i]) }
		for (i : 0 .. NW-1) { assert(!sem[i]) }
	}
}
