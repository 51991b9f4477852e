/*
 * word.pml: the park word, [ ticket:48 | reason:12 | state:4 ], of internal/park.
 *
 * One frame with one word.  A fiber on it waits NPARK times; each wait has its
 * own ticket.  Its wakers do not know of each other and may be arbitrarily late:
 *
 *   ChanWaker   pops the published waiter, then wakes it (NCHAN channels, as a
 *               select over them would have it; one waker each, or two)
 *   Timer       captured (frame, ticket) when the wait was registered
 *   Canceller   holds no registration: sets its scope's flag, then looks at the word
 *
 * Every waker may also decide never to fire, so each subset of them is covered.
 * The first REUSE waits belong to one owner of the frame, the others to the next:
 * pooled frames, whose tickets go on counting.
 *
 *              arm                   commit (after the switch, by the resumed side)
 *    any ------------> PARKING(t) --------------------------------> PARKED(t)
 *                       |      |                                       |
 *       disarm: RUNNING(t)    wake: NOTIFIED(t, reason)              wake: RUNNABLE(t, reason)
 *                             (the committer enqueues)            (the waker enqueues)
 *
 * Nothing is stored on resume: the word keeps RUNNABLE, NOTIFIED or RUNNING of
 * the wait that ended until the next arm, and a late waker gets `lost` from it.
 *
 * In the code (internal/park)             here
 *   arm, disarm, commit                   inlines of the same names
 *   wake: won, lost, stale                inline wake
 *   the unregistered cancel               proctype Canceller
 *   park of a fiber, resume               proctype Worker (NWORKER of them)
 *   park of a guest goroutine             proctype Guest (-DGUEST): its own stack commits,
 *                                         and "enqueue" releases a one-slot semaphore
 *
 * Each d_step is one atomic operation (load, store, CAS) on one word, plus ghosts.
 * SPIN's memory is sequentially consistent; Go's sync/atomic promises the same.
 *
 * Properties (-DONLY=NAME checks that one alone; LOST is an invalid end state)
 *   LOST     no wake is lost: at rest the fiber has ended, or it is PARKED in a wait
 *            that nobody sent a wake for and whose scope is not cancelled.  So a
 *            cancel ends the wait even when nothing else does.  Spec: PK-14, PK-34
 *   ONCE     the fiber is enqueued at most once (a guest's semaphore holds at most
 *            one token, and none when it arms again).  Spec: PK-15, PK-18, PK-38
 *   ONCPU    it is never resumed while it still runs on a cpu.  Spec: PK-16
 *   OWN      a wait ends only by a wake sent for that wait, or by its own disarm.
 *            Spec: PK-09, PK-29
 *   ONE      at most one waker of a wait is told `won`, none after the wait has ended.
 *            Spec: PK-10
 *   REASON      the reason that the parker reads is the winner's.  Spec: PK-12
 *   TRUTH    `lost` and `stale` are said only of waits that something else has ended.
 *            Spec: PK-08, PK-11, PK-32
 *   SCOPE    a cancel ends no wait of another scope
 *   QUIET    commit and disarm fail only because of NOTIFIED of the same wait.  Spec: PK-17
 *
 * Mutants, each of which the check has to find (Spec: PK-49), and what finds it
 *   D1  pending is a flag of its own, the waker stores it and leaves     LOST
 *   D2  the fiber commits on its own stack, then switches                ONCPU
 *   D3  three words; the parker ignores the result of its own claim      ONCE
 *   D4  three words; a late exchange of pending eats the next park's     LOST
 *   D5  the ticket is checked, then the state changed (ABA)              OWN
 *   D6  three words; a waker that met PARKING cannot know if it won      ONE
 *   RESTART         tickets start again when the frame is reused         OWN
 *   NOTIFY_STORE    NOTIFIED is stored, not CASed                        LOST
 *   NO_RECHECK      the cancel flag is read before arm only              LOST
 *   DISARM_STORE    disarm stores RUNNING, no CAS                        ONE
 *   REASON_APART       the reason is written beside the word, after the CAS    REASON
 *   SCOPE_FIRST     the canceller reads waitScope before the word        SCOPE
 *   CANCEL_LATE     the canceller looks at the word, then sets the flag  LOST
 *   COMMIT_STORE    commit stores PARKED, no CAS                         LOST
 *   GUEST_NOTOKEN   a guest that lost the commit waits for a token       LOST
 *   (TMOD=n keeps tickets modulo n: what a wrap of the 48 bits would do) OWN
 */
#ifndef NPARK
#define NPARK 2
#endif
#ifndef NWORKER
#define NWORKER 2
#endif
#ifndef NCHAN
#define NCHAN 2
#endif
#ifndef NWAKE
#define NWAKE NCHAN             /* channel wakers in all                         */
#endif
#ifndef NTIMER
#define NTIMER 1
#endif
#ifndef NCANCEL
#define NCANCEL 1               /* 1: scope 0 may be cancelled; 2: scope 1 too    */
#endif
#ifndef REUSE
#define REUSE 0
#endif
#ifndef TMOD
#define TMOD 255
#endif

#define RUNNING  0
#define PARKING  1
#define PARKED   2
#define NOTIFIED 3
#define RUNNABLE 4

#define LOST  1
#define ONCE  2
#define ONCPU 3
#define OWN   4
#define ONE   5
#define REASON   6
#define TRUTH 7
#define SCOPE 8
#define QUIET 9
#ifndef ONLY
#define ONLY 0
#endif
#define CHECK(p, e) assert((ONLY != 0 && ONLY != p) || (e))

#if defined(D1) || defined(D3) || defined(D4) || defined(D6)
#define THREEWORDS
#endif

#ifdef RESTART
#define SEQ(w) ((w) - REUSE*((w) > REUSE))
#else
#define SEQ(w) (w)
#endif
#define TKT(w)   (SEQ(w) % TMOD)        /* the ticket in the word, of ghost wait w  */
#define INSCOPE(w) (((w) + 1) % 2)      /* waits 1, 3 in scope 0; wait 2 in scope 1 */

#define BY_TIMER  8                     /* args; channel waker i uses i, from 1     */
#define BY_CANCEL 9                     /* plus the scope                           */

/* ---- the machine ---------------------------------------------------------- */
byte ticket;                            /* these three are the one word            */
byte reason;
byte state = RUNNING;

bit  pending;                           /* THREEWORDS only                         */
byte waitScope;                         /* scope of the current wait, before arm   */
bit  cancelled[2];
byte pub[NCHAN];                        /* the waiter in each channel's queue      */
byte reg;                               /* the waiter in the timer wheel           */
bit  queued = 1;                        /* run queue, or the guest's semaphore     */

/* ---- ghosts --------------------------------------------------------------- */
bit  oncpu, inwait, reborn, fdone;
byte k;                                 /* the wait that was armed last, 1..NPARK  */
bit  sent[NPARK+1];                     /* a wake for the wait was begun           */
byte won[NPARK+1];                      /* reason of the waker that was told won      */
bit  ended[NPARK+1];                    /* the wait has returned or disarmed       */
byte left;                              /* wakers that have not ended yet          */

inline enqueue() { d_step { CHECK(ONCE, !queued); queued = 1 } }

inline tellWon(w, why) {                /* ghost, within the winner's CAS          */
	CHECK(ONE, won[w] == 0 && !ended[w]);
	CHECK(SCOPE, why < BY_CANCEL || INSCOPE(w) == why - BY_CANCEL);
	won[w] = why
}
inline tellLost(w) { d_step { CHECK(TRUTH, won[w] != 0 || ended[w]) } }

#ifdef D5
#define SAME(w) true                    /* the CAS does not cover the ticket       */
#else
#define SAME(w) (ticket == TKT(w))
#endif
#ifdef REASON_APART
#define PUTREASON(why) skip
#else
#define PUTREASON(why) reason = why
#endif

/* ---- wake: one CAS decides; ok tells the caller whether it won ------------- */
inline casWake(w, old, new, why) {
	d_step {
		if
		:: SAME(w) && state == old -> state = new; PUTREASON(why); ok = 1; tellWon(w, why)
		:: else -> ok = 0
		fi
	}
#ifdef REASON_APART
	if :: ok -> reason = why :: else fi
#endif
}

#ifndef THREEWORDS
inline wake(w, why) {
	sent[w] = 1;
	do
#ifdef D5
	:: t = ticket; s = state;
#else
	:: d_step { t = ticket; s = state }
#endif
	   if
	   :: t != TKT(w) -> tellLost(w); break                        /* stale */
	   :: t == TKT(w) && s == PARKING ->
#ifdef NOTIFY_STORE
		d_step { state = NOTIFIED; reason = why; ok = 1; tellWon(w, why) }
#else
		casWake(w, PARKING, NOTIFIED, why);
#endif
		if :: ok -> break :: else fi            /* won: the committer enqueues */
	   :: t == TKT(w) && s == PARKED ->
		casWake(w, PARKED, RUNNABLE, why);
		if :: ok -> enqueue(); break :: else fi /* won: so we enqueue       */
	   :: t == TKT(w) && s != PARKING && s != PARKED -> tellLost(w); break /* lost */
	   fi
	od
}
#else
inline claim3(w, why) {                         /* ticket, then PARKED to RUNNABLE */
	t = ticket;
	if
	:: t == TKT(w) ->
		d_step {
			if
			:: state == PARKED -> state = RUNNABLE; reason = why; ok = 1; tellWon(w, why)
			:: else -> ok = 0
			fi
		}
		if :: ok -> enqueue() :: else fi
	:: else
	fi
}
inline wake(w, why) {
	sent[w] = 1;
	s = state;
	if
	:: s == PARKING ->
		pending = 1;
#ifdef D1
		d_step { tellWon(w, why) }              /* and leave                */
#else
		s = state;                              /* re-read after the store  */
		if
		:: s == PARKED -> claim3(w, why)
		:: else -> d_step { tellWon(w, why) }   /* it can only suppose so   */
		fi
#endif
	:: s == PARKED -> claim3(w, why)
	:: else
	fi
}
#endif

proctype ChanWaker(byte c; byte why) {
	byte w, s, t; bit ok;
	if
	:: d_step { pub[c] != 0 -> w = pub[c]; pub[c] = 0 }     /* pop, channel's lock */
	   wake(w, why)
	:: true
	fi;
	atomic { w = 0; s = 0; t = 0; ok = 0; left-- }
}

proctype Timer() {
	byte w, s, t; bit ok;
	if
	:: d_step { reg != 0 -> w = reg }
	   wake(w, BY_TIMER)
	:: true
	fi;
	atomic { w = 0; s = 0; t = 0; ok = 0; left-- }
}

/*
 * The parker stores waitScope, arms, and only then loads the flag; the canceller
 * stores the flag, loads the word, and only then waitScope.  A wait armed after
 * that load finds the flag itself; one armed before it is woken by its ticket.
 */
proctype Canceller(byte sc) {
	byte w, s, t, x; bit ok;
	if
	:: true ->
#ifdef SCOPE_FIRST
		cancelled[sc] = 1;
		x = waitScope;
		d_step { s = state; w = k };
#else
#ifndef CANCEL_LATE
		cancelled[sc] = 1;
#endif
		d_step { s = state; w = k };            /* one load; w: its ticket  */
		x = waitScope;
#ifdef CANCEL_LATE
		cancelled[sc] = 1;
#endif
#endif
		if
		:: (s == PARKING || s == PARKED) && x == sc -> wake(w, BY_CANCEL + sc)
		:: else
		fi
	:: true
	fi;
	atomic { w = 0; s = 0; t = 0; x = 0; ok = 0; left-- }
}

/* ---- the owner's transitions ---------------------------------------------- */
#ifdef D5
inline arm() {
	d_step { k++; ticket = TKT(k); inwait = 1 };
	d_step { state = PARKING; reason = 0 }
}
#else
#ifdef THREEWORDS
inline arm() {
	d_step { k++; ticket = TKT(k); inwait = 1 };
	pending = 0;
	d_step { state = PARKING; reason = 0 }
}
#else
inline arm() { d_step { k++; ticket = TKT(k); state = PARKING; reason = 0; inwait = 1 } }
#endif
#endif

inline publish() {
	pub[0] = k;
#if NCHAN > 1
	pub[1] = k;
#endif
#if NTIMER > 0
	reg = k
#endif
}
inline unpublish() {                    /* each under its own lock                 */
	d_step { if :: pub[0] == k -> pub[0] = 0 :: else fi };
#if NCHAN > 1
	d_step { if :: pub[1] == k -> pub[1] = 0 :: else fi };
#endif
#if NTIMER > 0
	d_step { if :: reg == k -> reg = 0 :: else fi }
#endif
}

inline disarm() {                       /* PARKING to RUNNING; ok = 0: NOTIFIED    */
	d_step {
#ifdef DISARM_STORE
		ok = 1;
#else
		ok = (state == PARKING);
#endif
		if
		:: ok -> CHECK(ONE, won[k] == 0); state = RUNNING; ended[k] = 1; inwait = 0
		:: else -> CHECK(QUIET, state == NOTIFIED)
		fi
	}
}

inline commit(w) {                      /* PARKING to PARKED; ok = 0: NOTIFIED     */
	d_step {
#ifdef COMMIT_STORE
		state = PARKED; ok = 1
#else
		ok = (state == PARKING && SAME(w));
		if
		:: ok -> state = PARKED
		:: else -> CHECK(QUIET, state == NOTIFIED && ticket == TKT(w))
		fi
#endif
	}
}

inline outcome() {                      /* the wait has ended: read the word       */
	d_step {
		CHECK(OWN, sent[k]);
		CHECK(REASON, reason == won[k]);
		CHECK(OWN, won[k] != 0);
		ended[k] = 1; inwait = 0
	}
}

#ifdef NO_RECHECK
#define SEEN(sc) early                  /* as it was before arm                    */
#else
#define SEEN(sc) cancelled[sc]
#endif

/* ---- a worker: resumes the fiber, is its stack, and commits after it -------- */
proctype Worker() {
	byte mine; bit ok, early, ex;
end_idle:
	do
	:: fdone -> break
	:: d_step { queued -> queued = 0; CHECK(ONCPU, !oncpu); oncpu = 1 };
	   if
	   :: inwait ->
back:
		outcome();
		unpublish()
	   :: else
	   fi;
body:
	   if
	   :: k == NPARK -> d_step { fdone = 1; oncpu = 0 }; break
	   :: REUSE > 0 && k == REUSE && !reborn ->             /* pooled, taken again */
		d_step { reborn = 1; oncpu = 0 }; enqueue()
	   :: else ->
		d_step { waitScope = INSCOPE(k+1);
#ifdef NO_RECHECK
			early = cancelled[waitScope]
#else
			early = 0
#endif
		};
		arm();
		publish();
#ifndef THREEWORDS
		if
		:: true ->                               /* cancelled, or the condition came true */
			disarm();
			if :: ok -> unpublish(); goto body :: else -> goto back fi
		:: state == NOTIFIED -> goto back       /* no switch at all         */
		:: !SEEN(waitScope)                     /* go on to switch out      */
		fi;
#endif
		d_step { mine = k };
#ifdef D2
		commit(mine);
		if :: ok -> oncpu = 0 :: else -> goto back fi
#else
		oncpu = 0;                              /* the swap                 */
#ifdef THREEWORDS
		state = PARKED;
		d_step { ex = pending; pending = 0 };
		if
		:: ex ->
			d_step { ok = (state == PARKED); if :: ok -> state = RUNNABLE :: else fi };
#ifdef D3
			enqueue()
#else
			if :: ok -> enqueue() :: else fi
#endif
		:: else
		fi
#else
		commit(mine);
		if :: ok :: else -> enqueue() fi        /* NOTIFIED: once, by us    */
#endif
#endif
		;
		d_step { mine = 0; ok = 0; ex = 0; early = 0 }
	   fi
	od
}

/* ---- a guest: a plain goroutine with a pooled parker ----------------------- */
proctype Guest() {
	bit ok, early;
	queued = 0;                                     /* the semaphore: empty     */
	do
	:: k == NPARK -> fdone = 1; break
	:: else ->
		waitScope = INSCOPE(k+1);
		d_step { CHECK(ONCE, !queued) };        /* no token left over       */
		arm();
		publish();
		if
		:: true ->
			disarm();
			if :: ok -> unpublish(); goto next :: else fi
		:: state == NOTIFIED
		:: !SEEN(waitScope) ->
			commit(k);
			if
#ifdef GUEST_NOTOKEN
			:: true ->
#else
			:: else                                 /* NOTIFIED         */
			:: ok ->
#endif
end_sem:			d_step { queued -> queued = 0 }
			fi
		fi;
		outcome();
		unpublish();
next:		skip
	od
}

init {
	byte i;
	atomic {
		left = NWAKE + NTIMER + NCANCEL;
#ifdef GUEST
		run Guest();
#else
		for (i : 1 .. NWORKER) { run Worker() }
#endif
		for (i : 1 .. NWAKE)   { run ChanWaker((i-1) % NCHAN, i) }
		if :: NTIMER > 0  -> run Timer()      :: else fi;
		if :: NCANCEL > 0 -> run Canceller(0) :: else fi;
		if :: NCANCEL > 1 -> run Canceller(1) :: else fi;
		i = 0
	}
	/* at rest: ended, or rightly asleep */
	(fdone || (left == 0 && inwait && state == PARKED && !queued &&
	           !sent[k] && !cancelled[waitScope]))
}
