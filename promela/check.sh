#!/bin/bash
# check.sh [short|long]: runs SPIN on every model and every mutant of it.
#
# A clean configuration has to be searched to its end without an error; a mutant has to be
# found broken, by the property that it breaks.  One line a run; exit 1 if any run
# disagrees.  `short` is for CI (under 2 minutes on 2 cores); `long` adds the large
# clean configurations (more than 10 million states each, some GB of memory).
# Needs spin 6.5 and gcc.  JOBS=n sets the runs at a time (default 2).
# To see how a mutant fails: check.sh trail <name>.
set -u
here=$(cd "$(dirname "$0")" && pwd)
mode=${1:-short}
only=${2:-}
case $mode in
short | long) ;;
trail) [ -n "$only" ] || { echo "usage: check.sh trail <name>" >&2; exit 2; } ;;
*) echo "usage: check.sh [short|long] | trail <name>" >&2; exit 2 ;;
esac
W=$(mktemp -d) || exit 2
trap 'rm -rf "$W"' EXIT
trap 'exit 130' INT TERM

# property: which of the models' properties pan's complaint is about. In word.pml and chan.pml
# a mutant is run with -DONLY=<property>, so the complaint can be about nothing else.
property() { # model complaint defs
	case $2 in
	'') echo NONE; return ;;
	*'non-progress cycle'*) echo SPIN; return ;;
	*'invalid end state'*) [ "$1" = word ] && echo LOST || echo END; return ;;
	esac
	case $1 in
	word | chan) case $3 in *-DONLY=*) x=${3##*-DONLY=}; echo "${x%% *}" ;; *) echo ASSERT ;; esac ;;
	idle) case $2 in
		*items*) echo WORK ;;
		*sem*|*onlist*) echo TOKEN ;;
		*nsearch*|*nidle*|*nactive*|*started*) echo COUNT ;;
		*) echo ASSERT ;;
		esac ;;
	shutdown) case $2 in
		*stopping*) echo GONE ;;
		*closed*|*workers*|*live*|*admitted*==*|*==*admitted*) echo END ;;
		*oncpu*|*inwait*|*queued*) echo STILL ;;
		*) echo ASSERT ;;
		esac ;;
	esac
}

run() { # when model name want defs...
	local when=$1 model=$2 name=$3 want=$4; shift 4
	local d=$W/$name defs="$*" cflags=-O1 search=-DSAFETY opts= got err why t0 t1 states
	case $mode in
	short) [ "$when" = short ] || return 0 ;;
	trail) [ "$name" = "$only" ] || return 0 ;;
	esac
	[ "$when" = long ] && cflags="-O2 -DCOLLAPSE"     # -O1: a short run ends before -O2 has compiled
	[ "$want" != PASS ] && cflags=-O0            # the compiler would take longer than pan
	case $defs in *-DONLY=LOST* | *-DONLY=END*) ;; *-DONLY=*) opts=-E ;; esac   # other properties: off
	case $name in *-spin*) search=-DNP opts=-l ;; esac           # non-progress cycles
	mkdir -p "$d" && cp "$here/$model.pml" "$d" && cd "$d" || exit 2
	t0=$(date +%s%N)
	if ! spin -a $defs "$model.pml" >gen 2>&1 ||
	   ! gcc $cflags -w $search -DMEMLIM=10000 -o pan pan.c >>gen 2>&1; then
		echo "$name want=$want got=BUILD"; cat gen; touch "$W/failed"; return
	fi
	./pan -m200000 $opts >out 2>&1
	t1=$(date +%s%N)
	err=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' out)
	states=$(awk '/states, stored/ { printf "%d", $1 }' out)
	why=$(sed -n 's/^pan:1: //p' out | head -1)
	got=PASS
	if [ "${err:-x}" != 0 ]; then
		got=FAIL:$(property "$model" "$why" "$defs")
	elif grep -q -e 'Search not completed' -e 'max search depth too small' out; then
		got=INCOMPLETE
	fi
	printf '%-26s want=%-10s got=%-10s states=%-9s %d.%01ds\n' "$name" "$want" "$got" "${states:-0}" \
		$(((t1 - t0) / 1000000000)) $(((t1 - t0) / 100000000 % 10))
	if [ "$got" != "$want" ]; then
		touch "$W/failed"
		echo "  $model.pml $defs"; echo "  ${why:-$(tail -3 out)}"
	fi
	if [ "$mode" = trail ] && [ -e "$model.pml.trail" ]; then
		echo "spin -t -p -g $defs $model.pml"
		spin -t -p -g $defs "$model.pml" | grep -v ':init:'
	fi
	rm -f pan pan.*
}

at() { # like run, JOBS of them at a time
	while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-2}" ]; do wait -n; done
	( run "$@" ) &
}

# ---- word.pml: the park word --------------------------------------------------
W3="-DNCHAN=1 -DNWAKE=2 -DNTIMER=1 -DNCANCEL=0"         # for the three-word mutants
at long  word word-2waits        PASS -DNPARK=2 -DREUSE=1
at long  word word-2scopes       PASS -DNPARK=2 -DNCHAN=1 -DNCANCEL=2 -DREUSE=1
at long  word word-3waits-2wakers PASS -DNPARK=3 -DNCHAN=1 -DNWAKE=2 -DREUSE=1
at long  word word-3waits-guest  PASS -DNPARK=3 -DGUEST -DNCHAN=1 -DNWAKE=2
at short word word-1wait         PASS -DNPARK=1
at short word word-3waits        PASS -DNPARK=3 -DNCHAN=1 -DREUSE=1
at short word word-cancel-alone  PASS -DNPARK=3 -DNCHAN=1 -DNWAKE=1 -DNTIMER=0 -DNCANCEL=1
at short word word-2waits-guest  PASS -DNPARK=2 -DGUEST -DNCHAN=1
at short word D1-pending-apart   FAIL:LOST  -DD1 -DONLY=LOST -DNPARK=1 $W3
at short word D2-own-stack       FAIL:ONCPU -DD2 -DONLY=ONCPU -DNPARK=1
at short word D3-own-claim       FAIL:ONCE  -DD3 -DONLY=ONCE -DNPARK=1 $W3
at short word D4-late-exchange   FAIL:LOST  -DD4 -DONLY=LOST -DNPARK=2 $W3
at short word D5-ticket-apart    FAIL:OWN   -DD5 -DONLY=OWN -DNPARK=2 -DNCHAN=1
at short word D6-who-won         FAIL:ONE   -DD6 -DONLY=ONE -DNPARK=1 $W3
at short word word-restart       FAIL:OWN   -DRESTART -DONLY=OWN -DNPARK=2 -DREUSE=1 -DNCHAN=1
at short word word-wrap          FAIL:OWN   -DTMOD=1 -DONLY=OWN -DNPARK=2 -DNCHAN=1
at short word word-notify-store  FAIL:LOST  -DNOTIFY_STORE -DONLY=LOST -DNPARK=1
at short word word-no-recheck    FAIL:LOST  -DNO_RECHECK -DONLY=LOST -DNPARK=1
at short word word-cancel-late   FAIL:LOST  -DCANCEL_LATE -DONLY=LOST -DNPARK=1
at short word word-disarm-store  FAIL:ONE   -DDISARM_STORE -DONLY=ONE -DNPARK=1
at short word word-commit-store  FAIL:LOST  -DCOMMIT_STORE -DONLY=LOST -DNPARK=1
at short word word-reason-apart  FAIL:REASON -DREASON_APART -DONLY=REASON -DNPARK=1
at short word word-scope-first   FAIL:SCOPE -DSCOPE_FIRST -DONLY=SCOPE -DNPARK=2 -DNCHAN=1
at short word word-guest-token   FAIL:LOST  -DGUEST -DGUEST_NOTOKEN -DONLY=LOST -DNPARK=1

# ---- idle.pml: the idle worker's sleep ------------------------------------------
at long  idle idle-3workers      PASS -DNW=3 -DASLEEP=1 -DNPUSH=2 -DKIDS=0 -DLONG=1 -DNATIVE=0
at long  idle idle-spare3        PASS -DNW=2 -DMAXW=3 -DTARGET=1 -DNPUSH=2 -DKIDS=0 -DLONG=1 -DNATIVE=2
at short idle idle-2workers      PASS -DNW=2
at short idle idle-1of2          PASS -DNW=2 -DTARGET=1
at short idle idle-spare         PASS -DNW=1 -DMAXW=2 -DTARGET=1 -DNATIVE=2
at short idle idle-steal         PASS -DNW=3 -DASLEEP=2 -DNPUSH=1 -DKIDS=2 -DLONG=1 -DNATIVE=0 -DGREEDY
at short idle idle-spin          PASS -DASLEEP=1 -DNPUSH=1
at short idle idle-spin-poll     FAIL:SPIN  -DPOLL -DNPUSH=1
at short idle idle-no-recheck    FAIL:WORK  -DNO_RECHECK
at short idle idle-late-announce FAIL:WORK  -DLATE_ANNOUNCE
at short idle idle-nsearch-late  FAIL:WORK  -DNSEARCH_LATE
at short idle idle-check-first   FAIL:WORK  -DCHECK_FIRST
at short idle idle-no-chain      FAIL:WORK  -DNO_CHAIN
at short idle idle-chain-early   FAIL:WORK  -DCHAIN_EARLY
at short idle idle-no-consume    FAIL:TOKEN -DNO_CONSUME
at short idle idle-block-blind   FAIL:WORK  -DBLOCK_NO_RECHECK -DTARGET=1
at short idle idle-block-early   FAIL:WORK  -DBLOCK_EARLY -DTARGET=1
at short idle idle-phantom       FAIL:WORK  -DPHANTOM -DKIDS=0 -DNPUSH=3 -DNATIVE=0 -DLONG=0
at short idle idle-no-spare      FAIL:WORK  -DNO_SPARE -DNW=1 -DMAXW=2 -DTARGET=1 -DLONG=0 -DKIDS=0
at short idle idle-back-unseen   FAIL:WORK  -DUNCOUNTED_BACK -DASLEEP=1 -DKIDS=0 -DNATIVE=0
at short idle idle-steal-unseen  FAIL:WORK  -DUNCOUNTED_STEAL -DNW=3 -DNPUSH=1 -DKIDS=2 -DLONG=2 -DNATIVE=0 -DGREEDY
at short idle idle-nsearch-leak  FAIL:COUNT -DNSEARCH_LEAK

# ---- shutdown.pml: Close ----------------------------------------------------------
at long  shutdown shutdown-late  PASS -DKIDS=0 -DTIMER=1 -DCANCELLER=1
at long  shutdown shutdown-timer PASS -DKIDS=1 -DTIMER=1 -DCANCELLER=0
at short shutdown shutdown-1     PASS -DKIDS=0 -DTIMER=1 -DCANCELLER=0
at short shutdown shutdown-child PASS -DKIDS=1 -DTIMER=0 -DCANCELLER=0
S1="-DKIDS=0 -DTIMER=0 -DCANCELLER=0"
at short shutdown shut-admit-early FAIL:GONE -DADMIT_EARLY $S1
at short shutdown shut-stop-early  FAIL:GONE -DSTOP_EARLY $S1
at short shutdown shut-idle-early  FAIL:END  -DIDLE_STOP_EARLY $S1
at short shutdown shut-no-recheck  FAIL:END  -DNO_RECHECK $S1
at short shutdown shut-refuse-mute FAIL:END  -DREFUSE_SILENT $S1
at short shutdown shut-park-blind  FAIL:END  -DCANCEL_NO_RECHECK $S1
at short shutdown shut-cancel-late FAIL:END  -DCANCEL_LATE $S1
at short shutdown shut-no-join     FAIL:STILL -DNO_JOIN $S1
at short shutdown shut-leave-early FAIL:GONE -DLEAVE_EARLY $S1
at short shutdown shut-wake-one    FAIL:END  -DWAKE_ONE $S1

# ---- chan.pml: channels and select ------------------------------------------------
SR="-DF0=s0,no,no,no -DF1=r0,no,no,no"                  # one sends, one receives
SSRR="-DF0=s0,no,s0,no -DF1=r0,no,r0,no"                # twice each
SRRS="-DF0=s0,no,r0,no -DF1=r0,no,s0,no"                # and then the other way round
MOVE="-DNCH=2 -DF0=s0,no,r1,no -DF1=r0,no,s1,no"        # and then on the other channel
CROSS="-DNCH=2 -DF0=s0,r1,no,no -DF1=s1,r0,no,no"       # two selects that can meet on either channel
at long  chan chan-all           PASS $SRRS -DNTIMER=1 -DNCANCEL=1 -DCLOSE0=closed,aborted
at long  chan chan-3fibers       PASS -DNF=3 $SSRR -DF2=s0,no,no,no -DNTIMER=1 -DCLOSE0=closed,0
at long  chan chan-3fibers-buffer PASS -DNF=3 -DCAP=1 $SSRR -DF2=s0,no,no,no -DNTIMER=1 -DCLOSE0=closed,0
at long  chan select-2closes     PASS -DNCH=2 -DF0=s0,r1,s0,r0 -DF1=s1,r0,r0,r1 -DCLOSE0=closed,0 -DCLOSE1=aborted,0
at long  chan select-cancel      PASS -DNCH=2 -DF0=s0,r1,s0,r0 -DF1=s1,r0,r0,r1 -DNCANCEL=1 -DCLOSE0=closed,0
at long  chan select-cross-timer PASS $CROSS -DNF=3 -DF2=r0,r1,no,no -DNTIMER=1
at long  chan select-itself-timer PASS -DNF=3 -DF0=s0,r0,no,no -DF1=r0,s0,no,no -DF2=s0,r0,no,no -DNTIMER=1
at long  chan select-3fibers     PASS -DNCH=2 -DNF=3 -DF0=s0,r1,r0,no -DF1=s1,r0,no,no -DF2=r0,r1,s0,s1 -DNTIMER=1
at long  chan select-2events     PASS -DEVENT -DF0=r0,ev,s0,ev -DF1=s0,no,ev,r0 -DNTIMER=1
at short chan chan-abort         PASS $SRRS -DNCANCEL=1 -DCLOSE0=aborted,0
at short chan chan-buffer        PASS -DCAP=1 -DF0=s0,no,s0,no -DF1=r0,no,s0,no -DNCANCEL=1 -DCLOSE0=closed,aborted
at short chan chan-close-abort   PASS $SSRR -DCLOSE0=closed,0 -DALSO0=aborted,0
at short chan chan-2channels     PASS $MOVE -DNTIMER=2
at short chan select-cross       PASS $CROSS -DNF=3 -DF2=r0,r1,no,no
at short chan select-itself      PASS -DNF=3 -DF0=s0,r0,no,no -DF1=r0,s0,no,no -DF2=s0,r0,no,no
at short chan select-close       PASS -DNCH=2 -DF0=s0,r1,no,no -DF1=s1,r0,r0,r1 -DCLOSE0=closed,0
at short chan select-timer       PASS -DNCH=2 -DF0=s0,r1,s1,no -DF1=s1,r0,r1,no -DNTIMER=1
at short chan select-event       PASS -DEVENT -DF0=r0,ev,no,no -DF1=s0,no,ev,r0 -DNTIMER=1
at short chan chan-write-late    FAIL:VALUE  -DWRITE_LATE -DONLY=VALUE $SR
at short chan chan-read-late     FAIL:VALUE  -DREAD_LATE -DONLY=VALUE $SR
at short chan chan-claim-blind   FAIL:VALUE  -DCLAIM_BLIND -DONLY=VALUE $SR -DNTIMER=1
at short chan chan-leave-unlocked FAIL:VALUE -DLEAVE_UNLOCKED -DONLY=VALUE $MOVE -DNTIMER=2
at short chan chan-shift-late    FAIL:LEFT   -DSHIFT_LATE -DONLY=LEFT $SR
at short chan chan-stale         FAIL:ONE    -DSTALE -DONLY=ONE $SSRR -DNTIMER=1
at short chan chan-closed-first  FAIL:CLOSED -DCLOSED_FIRST -DONLY=CLOSED -DCAP=1 $SR -DCLOSE0=closed,0
at short chan chan-close-all     FAIL:GRACE  -DCLOSE_ALL -DONLY=GRACE $SR -DCLOSE0=closed,0
at short chan chan-close-mute    FAIL:END    -DCLOSE_MUTE -DONLY=END $SR -DCLOSE0=closed,0
at short chan chan-abort-mute    FAIL:END    -DABORT_MUTE -DONLY=END $SR -DCLOSE0=aborted,0
at short chan chan-no-rouse      FAIL:END    -DNO_ROUSE -DONLY=END $SR
at short chan chan-no-refill     FAIL:IDLE   -DNO_REFILL -DONLY=IDLE -DCAP=1 $SSRR
at short chan chan-sender-first  FAIL:ORDER  -DSENDER_FIRST -DONLY=ORDER -DCAP=1 $SSRR
at short chan chan-publish-late  FAIL:END    -DPUBLISH_LATE -DONLY=END $SR
at short chan select-reg-apart   FAIL:VALUE  -DREG_APART -DONLY=VALUE $CROSS
at short chan select-look-apart  FAIL:END    -DPUBLISH_LATE -DONLY=END $CROSS
at short chan select-keep-losers FAIL:LEFT   -DKEEP_LOSERS -DONLY=LEFT $CROSS
at short chan select-losers-met  FAIL:VALUE  -DKEEP_LOSERS -DONLY=VALUE -DNCH=2 -DF0=s0,r1,r1,no -DF1=s1,r0,s0,no
at short chan select-case-order  FAIL:END    -DCASE_ORDER -DONLY=END $CROSS
at short chan select-event-blind FAIL:END    -DEVENT_BLIND -DONLY=END -DEVENT -DF0=r0,ev,no,no -DF1=r0,ev,no,no

wait
[ ! -e "$W/failed" ]
