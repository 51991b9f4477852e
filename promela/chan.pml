/*
 * chan.pml: channels and select (chan.go, select.go), and the cells of internal/wait.
 *
 * NF fibers, each with one park word and two cells, one a case.  A fiber does two operations, one
 * after the other, with the same cells: a cell that a waker still has in its hands while
 * its owner is on to the next wait is what this is about.  An operation is a select over
 * one case or two; Send and Recv are a select over one.  -DF0=r0,no,s0,r1 says that fiber 0
 * receives from channel 0, and then selects over a send to 0 and a receive from 1.
 * Its wakers do not know of each other and may be arbitrarily late:
 *
 *   Fiber       a peer: shifts a waiter out, hands over or takes, claims
 *   Closer      Close, Abort, or Close and then Abort
 *   Timer       captured the ticket of some wait of some fiber; may never fire
 *   Canceller   sets the flag of some operation, then looks at the word; may never fire
 *   Happening   an event, the case `ev`: the end of a fiber, or of a side of a pipe
 *
 * In the code                             here
 *   Chan.put, Chan.take                   inlines of the same names
 *   Parker.Claim, Node.Claim              inlines cas and claim: one step, proved in word.pml
 *   Parker.MakeReady                      inline rouse, without a lock
 *   scratch.try, channel.LockAll          proctype Fiber, until it arms
 *   register, subscribe, parks            from there
 *   leave, withdraw, unregister, finish   inline withdraw
 *   end, endWaits, discard                proctype Closer
 *
 * A channel's lock is a bit.  Each claim is a step of its own, and so is what is done under the lock
 * between one claim and the next, and letting go.  Lock, change and unlock without a
 * claim are one step.  endWaits lets go of the lock whenever it likes, as it does when its
 * batch is full.  What select sees without locks may be anything: it may find one case or the
 * other ready, or none.  With the locks it tries cases that are not ready too, which has no effect.
 *
 * Properties (-DONLY=NAME checks that one alone; END is an invalid end state)
 *   VALUE   nothing is lost and nothing comes twice: a value was received, or stayed with its sender, or is
 *           in the store, or was handed over as undelivered, and its send said so; the cases of a
 *           select that lost have no effect.
 *           Spec: CH-05, CH-25, CH-26, CH-40, CH-55, CH-56, SE-01, SE-03, SE-19
 *   ONE     a wait is ended by a wake that was meant for it, and roused once.  Spec: CH-39, SE-02, SE-15
 *   LEFT    a node is in no queue when its operation has returned, nor when it is pushed.  Spec: CH-28, SE-05
 *   CLOSED  no receiver is told closed while a value or a sender is left.  Spec: CH-42
 *   GRACE   a sender that waits is told closed by an abort alone.  Spec: CH-35, CH-37
 *   ORDER   the values of one sender are taken in the order in which they were sent.  Spec: CH-21
 *   IDLE    the invariants of Chan.  When a lock is let go of: with room no sender waits, with a value no
 *           receiver, and never both, but for one select; when a close is done: no receiver, and
 *           after an abort nobody.  Spec: CH-11, CH-20, CH-34, SE-16
 *   END     at rest everybody has returned, or sleeps rightly: no peer, no room, no value, no close.
 *           So no wake is lost and no lock is held.  Spec: CH-10, CH-33, CH-36, SE-12, SE-17
 *
 * Mutants, and what finds them
 *   WRITE_LATE      the value is written into a receiver's cell after the claim     VALUE
 *   READ_LATE       the value is read from a sender's cell after the claim          VALUE
 *   CLAIM_BLIND     a send that lost the claim believes that it won                 VALUE
 *   LEAVE_UNLOCKED  a cell is used again without taking the lock first.  It takes
 *                   two channels: on the same one the next wait needs the lock     VALUE
 *   SHIFT_LATE      a waiter is taken out of its queue after it was claimed         LEFT
 *   STALE           a wake does not look at the ticket                              ONE
 *   CLOSED_FIRST    a receive looks at closed before it looks at the store          CLOSED
 *   CLOSE_ALL       a gentle close ends the waits of senders too                    GRACE
 *   CLOSE_MUTE      a close does not wake the receivers                             END
 *   ABORT_MUTE      an abort does not wake the senders                              END
 *   NO_ROUSE        a waker that found its waiter asleep leaves it so               END
 *   NO_REFILL       a receive that makes room does not look at the senders          IDLE
 *   SENDER_FIRST    a receive prefers a sender that waits to the store              ORDER
 *   PUBLISH_LATE    the locks are let go of between looking and registering         END
 *   REG_APART       a select looks at and registers with one channel after another  VALUE
 *   KEEP_LOSERS     a select leaves the registrations that lost where they are      LEFT, VALUE
 *   CASE_ORDER      a select locks its channels in the order of its cases           END
 *   EVENT_BLIND     a select does not look at an event again when it subscribes     END
 */
#ifndef NF
#define NF 2
#endif
#ifndef NCH
#define NCH 1
#endif
#ifndef CAP
#define CAP 0
#endif
#ifndef NTIMER
#define NTIMER 0
#endif
#ifndef NCANCEL
#define NCANCEL 0
#endif
#ifndef F2
#define F2 no,no,no,no
#endif

#define no 0                            /* cases                                   */
#define s0 1
#define r0 2
#define s1 3
#define r1 4
#define ev 6                            /* an event: a receive from E, where       */
#define E  2                            /* nothing is sent, that ends when E does  */
#define CH(k)    (((k) - 1) / 2)
#define SENDS(k) ((k) % 2)

#define RUNNING  0
#define PARKING  1
#define PARKED   2
#define NOTIFIED 3
#define RUNNABLE 4
#define GONE     5                      /* the fiber has ended                     */

#define NONE      0                     /* reasons                                 */
#define DATA      1
#define SHUT      2
#define CANCELLED 3
#define TIMEDOUT  4

#define open    0                       /* states of a channel                     */
#define closed  1
#define aborted 2

#define VALUE  1
#define ONE    2
#define LEFT   3
#define CLOSED 4
#define GRACE  5
#define ORDER  6
#define IDLE   7
#define END    8
#ifndef ONLY
#define ONLY 0
#endif
#define CHECK(p, e) assert((ONLY != 0 && ONLY != p) || (e))

#define CELL(f, i)     ((f)*2 + (i))
#define VAL(f, op, i)  ((f)*4 + (op)*2 + (i) + 1)
#define BIT(v)         (1 << (v))
#define WAITS(f)       (state[f] == PARKING || state[f] == PARKED)

/* ---- the machine ---------------------------------------------------------- */
byte ticket[NF];                        /* these four are the fiber's one word     */
byte state[NF];
byte reason[NF];
byte index[NF];
bit  ready[NF];                         /* it has been enqueued                    */

byte value[NF*2];                       /* of a cell                               */
byte wait[NF*2];                        /* Node.Ticket                             */

bit  mu[3];
byte is[3];                             /* open, closed, aborted                   */
chan store[2]     = [CAP+1] of { byte };
chan senders[3]   = [NF*2]  of { byte };
chan receivers[3] = [NF*2]  of { byte };

byte op[NF];                            /* the operation that it is in             */
byte quit[NF];                          /* the operation that was cancelled        */

/* ---- ghosts --------------------------------------------------------------- */
int  sent, kept, got, undelivered;      /* values by what became of them           */
byte last[NF];                          /* the newest value that was taken of it   */
byte left;                              /* wakers that have not ended yet          */

#define QUEUED(c, x)  (senders[c]??[eval(x)] || receivers[c]??[eval(x)])
#define ANYWHERE(x)   (QUEUED(0, x) || QUEUED(1, x) || QUEUED(E, x))
#define LIVE(q, x)    (q??[eval(x)] && WAITS((x)/2) && ticket[(x)/2] == wait[x])
#define ONE_OF(q, f)  (LIVE(q, CELL(f, 0)) || LIVE(q, CELL(f, 1)))
#if NF == 2
#define BUT(q, f)     (((f) != 0 && ONE_OF(q, 0)) || ((f) != 1 && ONE_OF(q, 1)))
#define PAIR(c)       (BOTH(c, 0) || BOTH(c, 1))
#define ALL(p)        (p(0) && p(1))
#else
#define BUT(q, f)     (((f) != 0 && ONE_OF(q, 0)) || ((f) != 1 && ONE_OF(q, 1)) || ((f) != 2 && ONE_OF(q, 2)))
#define PAIR(c)       (BOTH(c, 0) || BOTH(c, 1) || BOTH(c, 2))
#define ALL(p)        (p(0) && p(1) && p(2))
#endif
#define NOBODY NF
#define BOTH(c, f)    (ONE_OF(senders[c], f) && BUT(receivers[c], f))

inline invariants(c) {                  /* of Chan, when its lock is let go of     */
	CHECK(IDLE, len(store[c]) == CAP || is[c] == aborted || !BUT(senders[c], NOBODY));
	CHECK(IDLE, len(store[c]) == 0 || !BUT(receivers[c], NOBODY));
	CHECK(IDLE, !PAIR(c))
}

inline taken(v) {                       /* v has reached its receiver              */
#if NCH == 1
	CHECK(ORDER, v == 0 || v > last[(v-1)/4]);
	if :: v != 0 -> last[(v-1)/4] = v :: else fi
#else
	skip
#endif
}

/* ---- the word -------------------------------------------------------------- */
#ifdef STALE
#define SAME(f, t) true
#else
#define SAME(f, t) (ticket[f] == t)
#endif

inline cas(f, t, why, i) {              /* Parker.Claim; within a d_step           */
	if
	:: SAME(f, t) && state[f] == PARKING ->
		CHECK(ONE, ticket[f] == t);
		state[f] = NOTIFIED; reason[f] = why; index[f] = i; ok = 1
	:: SAME(f, t) && state[f] == PARKED ->
		CHECK(ONE, ticket[f] == t);
		state[f] = RUNNABLE; reason[f] = why; index[f] = i; ok = 1;
		asleep = asleep | BIT(f)
	:: else -> ok = 0
	fi
}

inline claim(why) { cas(x/2, wait[x], why, x%2) }       /* Node.Claim, of x; within a d_step */

inline rouse() {                        /* without the lock                        */
#ifdef NO_ROUSE
	asleep = 0
#else
	if
	:: d_step { asleep != 0 ->
		CHECK(ONE, !(asleep & 1) || !ready[0]);
		CHECK(ONE, !(asleep & 2) || !ready[1]);
		ready[0] = ready[0] | (asleep & 1);
		ready[1] = ready[1] | ((asleep >> 1) & 1);
#if NF > 2
		CHECK(ONE, !(asleep & 4) || !ready[2]);
		ready[2] = ready[2] | ((asleep >> 2) & 1);
#endif
		asleep = 0 }
	:: else
	fi
#endif
}

/* ---- the channel ----------------------------------------------------------- */
inline drop(q) { if :: q??[eval(x)] -> q??eval(x) :: else fi }

#ifdef SHIFT_LATE
#define SHIFT(q)   q?<x>
#define SHIFTED(q) ; d_step { drop(q) }
#else
#define SHIFT(q)   q?x
#define SHIFTED(q)
#endif
#ifdef WRITE_LATE
#define EARLY(s)
#define LATE(s)    ; if :: ok -> s :: else fi
#else
#define EARLY(s)   s
#define LATE(s)
#endif
#ifdef CLOSED_FIRST
#define REFUSES closed
#else
#define REFUSES aborted
#endif
#ifdef NO_REFILL
#define REFILLS(c) (v == 0 && len(store[c]) == 0)
#else
#define REFILLS(c) true
#endif
#ifdef SENDER_FIRST
#define STORE_FIRST(c)
#else
#define STORE_FIRST(c) fetch(c);
#endif
#ifdef CLAIM_BLIND
#define WON true
#else
#define WON ok
#endif

inline put(c, v) {                      /* r: DATA, SHUT, or NONE: it has to wait  */
	do
	:: d_step { r == NONE && is[c] == open && len(receivers[c]) > 0 -> SHIFT(receivers[c]); EARLY(value[x] = v) };
	   d_step {
		claim(DATA);
		if :: WON -> taken(v); r = DATA :: else -> value[x] = 0 fi
	   }
	   LATE(value[x] = v)
	   SHIFTED(receivers[c])
	:: d_step { r != NONE || is[c] != open || len(receivers[c]) == 0 ->
		if
		:: r == NONE && is[c] != open -> r = SHUT
		:: r == NONE && is[c] == open && len(store[c]) < CAP -> store[c]!v; r = DATA
		:: else
		fi };
	   break
	od
}

inline fetch(c) {                       /* from the store; within a d_step         */
	if :: v == 0 && len(store[c]) > 0 -> store[c]?v :: else fi
}

inline take(c) {                        /* and v, if r is DATA                     */
	do
	:: d_step { r == NONE && is[c] < REFUSES && len(senders[c]) > 0 && REFILLS(c) ->
		STORE_FIRST(c)
		SHIFT(senders[c]); next = value[x] };
	   d_step {
		claim(DATA);
#ifdef READ_LATE
	   };
	   d_step {
		next = value[x];
#endif
		if
		:: ok && v == 0 -> v = next; r = DATA
		:: ok && v != 0 -> store[c]!next; r = DATA
		:: else
		fi;
		next = 0
	   }
	   SHIFTED(senders[c])
	:: d_step { r != NONE || is[c] >= REFUSES || len(senders[c]) == 0 || !REFILLS(c) ->
		if :: is[c] < REFUSES && r == NONE -> fetch(c) :: else fi;
		if
		:: v != 0 -> r = DATA; taken(v)
		:: v == 0 && r == NONE && is[c] != open ->
			r = SHUT;
			CHECK(CLOSED, is[c] == aborted || (len(store[c]) == 0 && !BUT(senders[c], NOBODY)))
		:: else
		fi };
	   break
	od
}

/* ---- a fiber ---------------------------------------------------------------- */
#define HAS(i) (k[i] != no)

inline lock(c)   { d_step { c == E || mu[c] == 0 -> if :: c != E -> mu[c] = 1 :: else fi } }
inline unlock(c) { if :: c != E -> invariants(c); mu[c] = 0 :: else fi }        /* within a d_step */

inline lockAll() {
#ifdef CASE_ORDER
	if :: lo != hi -> lock(CH(k[0])); lock(CH(k[1])) :: else -> lock(lo) fi
#else
	lock(lo);
	if :: lo != hi -> lock(hi) :: else fi
#endif
}
inline unlockAll() {
	d_step {
		unlock(lo);
		if :: lo != hi -> unlock(hi) :: else fi
	}
}

inline try(i) {                         /* r and v                                 */
	if
	:: k[i] == ev -> if :: is[E] == closed -> r = DATA :: else fi
	:: k[i] != ev && SENDS(k[i]) -> put(CH(k[i]), VAL(f, n, i))
	:: else -> take(CH(k[i]))
	fi
}

inline push(i) {                        /* publishSend, publishRecv; within a d_step */
	x = CELL(f, i);
	CHECK(LEFT, !ANYWHERE(x));
	wait[x] = ticket[f];
	if
	:: SENDS(k[i]) -> value[x] = VAL(f, n, i); senders[CH(k[i])]!x
	:: else -> receivers[CH(k[i])]!x
	fi
}

inline subscribe(i) {                   /* of an event, without the other locks    */
	d_step {
		mu[E] == 0 -> ok = 0; x = CELL(f, i);
#ifndef EVENT_BLIND
		if :: is[E] != open -> wait[x] = ticket[f]; ok = 1 :: else -> push(i) fi
#else
		push(i)
#endif
	};
	if :: ok -> d_step { claim(DATA); asleep = 0 } :: else fi
}

#ifdef LEAVE_UNLOCKED
#define UNLOCKED(c) true
#else
#define UNLOCKED(c) (mu[c] == 0)
#endif

inline withdraw(i) {
	if
	:: d_step { won == i && r == DATA ->            /* the other side has let go of the cell */
		if :: !SENDS(k[i]) && k[i] != ev -> v = value[CELL(f, i)] :: else fi;
		value[CELL(f, i)] = 0 }
#ifdef KEEP_LOSERS
	:: won != i && (r == DATA || r == SHUT)
	:: d_step { !(won == i && r == DATA) && (r != DATA && r != SHUT) && UNLOCKED(CH(k[i])) ->
#else
	:: d_step { !(won == i && r == DATA) && UNLOCKED(CH(k[i])) ->
#endif
		x = CELL(f, i);
		drop(senders[CH(k[i])]); drop(receivers[CH(k[i])]);
		value[x] = 0 }
	fi
}

inline result(i) {                      /* ghost; within a d_step                  */
	if
	:: HAS(i) && SENDS(k[i]) && won == i && r == DATA -> sent = sent | BIT(VAL(f, n, i))
	:: HAS(i) && SENDS(k[i]) && !(won == i && r == DATA) ->
		CHECK(VALUE, !(got & BIT(VAL(f, n, i))));
		kept = kept | BIT(VAL(f, n, i));
		CHECK(GRACE, !(waited && won == i && r == SHUT) || is[CH(k[i])] == aborted)
	:: HAS(i) && !SENDS(k[i]) && won == i && r == DATA && k[i] != ev ->
		CHECK(VALUE, v != 0 && !((got | kept | undelivered) & BIT(v)));
		got = got | BIT(v)
	:: else
	fi
}

inline every() {                        /* all cases, and their channels in order  */
	lo = CH(k[0]); hi = lo; todo = 1;
	if
	:: HAS(1) && CH(k[1]) < lo -> lo = CH(k[1]); todo = 3
	:: HAS(1) && CH(k[1]) >= lo -> hi = CH(k[1]); todo = 3
	:: else
	fi
}

inline setup() {                        /* of the next operation; within a d_step  */
	op[f]++;
	k[0] = a; k[1] = b; a = a2; b = b2; a2 = no; b2 = no;
	every()
}

proctype Fiber(byte f, a, b, a2, b2) {
	byte k[2];                                              /* the cases        */
	byte lo, hi;                                            /* their channels   */
	byte v, next, x, r, asleep, won, todo; bit n, ok, alone, waited;
	d_step { setup() };
begin:
#ifdef REG_APART
	atomic { ticket[f]++; state[f] = PARKING };
	lock(CH(k[0])); won = 0; try(0);
	if :: r == NONE -> d_step { push(0); unlock(CH(k[0])) } :: else -> d_step { unlock(CH(k[0])) } fi;
	if
	:: r == NONE && HAS(1) ->
		lock(CH(k[1])); won = 1; try(1);
		if :: r == NONE -> d_step { push(1); unlock(CH(k[1])) } :: else -> d_step { unlock(CH(k[1])) } fi
	:: else
	fi;
	rouse();
	if
	:: r != NONE -> state[f] = RUNNING; if :: won == 1 -> withdraw(0) :: else fi; goto done
	:: else -> waited = 1; goto sleep
	fi;
#else
	if                                                      /* one seems ready  */
	:: HAS(1) -> lo = CH(k[0]); hi = lo; todo = 1; alone = 1
	:: HAS(1) -> lo = CH(k[1]); hi = lo; todo = 2; alone = 1
	:: true
	fi;
look:
	lockAll();
	do
	:: r == NONE && (todo & 1) -> todo = todo & 2; won = 0; try(0)
	:: r == NONE && (todo & 2) -> todo = todo & 1; won = 1; try(1)
	:: else -> break
	od;
	if
	:: r != NONE -> unlockAll(); rouse(); goto done
	:: r == NONE && alone -> unlockAll(); every(); alone = 0; goto look
	:: else
	fi;
#ifdef PUBLISH_LATE
	unlockAll();
	lockAll();
#endif
	waited = 1;
	d_step { ticket[f]++; state[f] = PARKING };             /* arm              */
	d_step {
		if :: k[0] != ev -> push(0) :: else fi;
		if :: HAS(1) && k[1] != ev -> push(1) :: else fi
	};
	unlockAll();
#endif
	if :: k[0] == ev -> subscribe(0) :: else fi;
	if :: k[1] == ev -> subscribe(1) :: else fi;
	if
	:: quit[f] != op[f]
	:: d_step { quit[f] == op[f] && state[f] == PARKING -> state[f] = RUNNING; reason[f] = CANCELLED };
		goto awake                                      /* disarmed         */
	:: quit[f] == op[f] && state[f] == NOTIFIED
	fi;
sleep:
	if
	:: d_step { state[f] == PARKING -> state[f] = PARKED };         /* commit    */
end_asleep:	d_step { ready[f] -> ready[f] = 0 }
	:: state[f] == NOTIFIED
	fi;
awake:
	r = reason[f]; won = (r == DATA || r == SHUT -> index[f] : 2);
	withdraw(0);
	if :: HAS(1) -> withdraw(1) :: else fi;
done:
	if                                                      /* no goto into a d_step */
	:: d_step { true ->
		CHECK(LEFT, !ANYWHERE(CELL(f, 0)) && !ANYWHERE(CELL(f, 1)));
		result(0); result(1);
		v = 0; x = 0; r = NONE; won = 0; ok = 0; alone = 0; waited = 0; todo = 0;
		k[0] = no; k[1] = no; lo = 0; hi = 0; n = 1;
		reason[f] = NONE; index[f] = 0;
		if
		:: a != no -> setup()
		:: else -> state[f] = GONE; n = 0; op[f] = 0; quit[f] = 0
		fi }
	fi;
	if :: op[f] != 0 -> goto begin :: else fi
}

/* ---- the other wakers --------------------------------------------------------- */
proctype Closer(byte c, to, then) {
	byte x, v, asleep; bit ok;
again:
	atomic { mu[c] == 0 -> mu[c] = 1; if :: is[c] < to -> is[c] = to :: else fi };
	do
#ifndef CLOSE_MUTE
	:: len(receivers[c]) > 0 ->
		d_step { SHIFT(receivers[c]);
			CHECK(CLOSED, is[c] == aborted || (len(store[c]) == 0 && !BUT(senders[c], x/2))) };
		d_step { claim(SHUT) };
		skip SHIFTED(receivers[c]);
		if :: true :: mu[c] = 0; rouse(); d_step { mu[c] == 0 -> mu[c] = 1 } fi
#endif
#ifdef CLOSE_ALL
	:: len(senders[c]) > 0 ->
#else
	:: is[c] == aborted && len(senders[c]) > 0 ->
#endif
#ifdef ABORT_MUTE
		break
#else
		d_step { SHIFT(senders[c]) };
		d_step { claim(SHUT) };
		skip SHIFTED(senders[c]);
		if :: true :: mu[c] = 0; rouse(); d_step { mu[c] == 0 -> mu[c] = 1 } fi
#endif
	:: else -> break
	od;
	atomic {
		CHECK(IDLE, !BUT(receivers[c], NOBODY) && (to != aborted || !BUT(senders[c], NOBODY)));
		mu[c] = 0; x = 0; ok = 0
	};
	rouse();
	do
	:: to == aborted && len(store[c]) > 0 ->
		d_step { mu[c] == 0 ->
			if
			:: len(store[c]) > 0 ->
				store[c]?v;
				CHECK(VALUE, !((got | undelivered) & BIT(v)));
				undelivered = undelivered | BIT(v); v = 0
			:: else
			fi }
	:: else -> break
	od;
	if
	:: then != 0 -> d_step { to = then; then = 0 }; goto again
	:: else -> d_step { left--; c = 0; to = 0 }
	fi
}

inline pick() {                         /* a wait of somebody, or none             */
	if
	:: d_step { WAITS(0) -> f = 0; t = ticket[0] }
	:: d_step { WAITS(1) -> f = 1; t = ticket[1] }
#if NF > 2
	:: d_step { WAITS(2) -> f = 2; t = ticket[2] }
#endif
	:: f = NOBODY
	fi
}

proctype Timer() {
	byte f, t, asleep; bit ok;
	pick();
	if
	:: f != NOBODY -> d_step { cas(f, t, TIMEDOUT, 0) }; rouse()
	:: else
	fi;
	d_step { left--; f = 0; t = 0; ok = 0 }
}

proctype Canceller() {                  /* scope.cancel: the flag, then the word   */
	byte f, t, asleep; bit ok;
	pick();
	if
	:: f != NOBODY ->
		quit[f] = op[f];
		d_step { ok = (WAITS(f) && quit[f] == op[f]); t = ticket[f] };
		if :: ok -> d_step { cas(f, t, CANCELLED, 0) }; rouse() :: else fi
	:: else
	fi;
	d_step { left--; f = 0; t = 0; ok = 0 }
}

proctype Happening() {
	byte x, asleep; bit ok;
	d_step { mu[E] == 0 -> mu[E] = 1; is[E] = closed };
	do
	:: len(receivers[E]) > 0 -> d_step { receivers[E]?x }; d_step { claim(DATA) }
	:: else -> break
	od;
	mu[E] = 0;
	rouse();
	d_step { left--; x = 0; ok = 0 }
}

/* ---- the end -------------------------------------------------------------------- */
#define NOTSENDER(c, f)   (!ONE_OF(senders[c], f) || \
	(len(store[c]) == CAP && is[c] != aborted && !BUT(receivers[c], f)))
#define NOTRECEIVER(c, f) (!ONE_OF(receivers[c], f) || \
	(len(store[c]) == 0 && is[c] == open && !BUT(senders[c], f)))
#define RIGHTLY(f) (NOTSENDER(0, f) && NOTSENDER(1, f) && NOTRECEIVER(0, f) && NOTRECEIVER(1, f) && \
	(!ONE_OF(receivers[E], f) || is[E] == open) && (ANYWHERE(CELL(f, 0)) || ANYWHERE(CELL(f, 1))))
#define RESTS(f) (state[f] == GONE || (state[f] == PARKED && !ready[f] && quit[f] != op[f] && RIGHTLY(f)))

init {
	byte v; int inside;
	atomic {
		run Fiber(0, F0);
		run Fiber(1, F1);
#if NF > 2
		run Fiber(2, F2);
#endif
#ifdef CLOSE0
		left++; run Closer(0, CLOSE0);
#endif
#ifdef ALSO0
		left++; run Closer(0, ALSO0);
#endif
#ifdef CLOSE1
		left++; run Closer(1, CLOSE1);
#endif
		do :: v < NTIMER -> v++; left++; run Timer() :: else -> v = 0; break od;
		do :: v < NCANCEL -> v++; left++; run Canceller() :: else -> v = 0; break od;
#ifdef EVENT
		left++; run Happening()
#endif
	}
	(left == 0 && mu[0] == 0 && mu[1] == 0 && mu[E] == 0 && ALL(RESTS));
	d_step {
		do
		:: len(store[0]) > 0 -> store[0]?v; inside = inside | BIT(v)
		:: len(store[1]) > 0 -> store[1]?v; inside = inside | BIT(v)
		:: else -> break
		od;
		CHECK(VALUE, sent == (got | undelivered | inside));
		CHECK(VALUE, !(got & inside) && !(got & kept) && !(inside & kept) && !(undelivered & kept))
	}
}
