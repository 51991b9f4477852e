//go:build coirmutants

package mutants_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/coir-go/coir/internal/mutant"
)

var mutants = []mutant.Mutant{
	{
		Name: "an ID is made for each attempt", File: "send.go", Test: "TestSimEffectsHappenOnce",
		Edits: []string{
			"		err = s.limit.Do(ctx, func(ctx context.Context) error { return s.post(ctx, s.m) })\n",
			"		c.cond.Lock()\n		c.seq++\n		s.m.ID.Seq = c.seq\n		c.cond.Unlock()\n" +
				"		err = s.limit.Do(ctx, func(ctx context.Context) error { return s.post(ctx, s.m) })\n",
		},
	},
	{
		Name: "the limit of attempts does not grow", File: "internal/attempt/attempt.go", Test: "TestALimitGrows",
		Edits: []string{"		l.last = min(2*limit, Long)\n", ""},
	},
	{
		Name: "a value is acknowledged before its effect", File: "recv.go", Test: "TestSimEffectsHappenOnce",
		Edits: []string{
			"	if err := effect(ctx, it); err != nil {\n",
			"	if err := it.Ack(ctx); err != nil {\n		return err\n	}\n	if err := effect(ctx, it); err != nil {\n",
		},
	},
	{
		Name: "a value is seen from its delivery on", File: "pull.go", Test: "TestSimEffectsHappenOnce",
		Edits: []string{
			"	c.held[it.ID] = c.order.PushBack(it)\n", "	c.held[it.ID] = c.order.PushBack(it)\n	c.seen.add(it.ID)\n",
		},
	},
	{
		Name: "a dead letter is stored after the removal", File: "item.go", Test: "TestSimPoisonBecomesADeadLetter",
		Edits: []string{
			"	if d != nil {\n		if err := it.c.bury(ctx, d, reason); err != nil {\n			return err\n		}\n	}\n	return it.Ack(ctx)\n",
			"	if err := it.Ack(ctx); err != nil {\n		return err\n	}\n	if d != nil {\n		return it.c.bury(ctx, d, reason)\n	}\n	return nil\n",
		},
	},
	{
		Name: "values are pulled with one that ends the process", File: "pull.go", Test: "TestSimAValueThatEndsItsProcess",
		Edits: []string{"	credit := 1\n", "	credit := c.set.prefetch\n", "		return 1\n	}\n	if len(ds) == 0 {", "		return credit\n	}\n	if len(ds) == 0 {"},
	},
	{
		Name: "a dead letter has an ID for each attempt", File: "dead.go", Test: "TestSimPoisonBecomesADeadLetter",
		Edits: []string{
			"func(ctx context.Context) error { return c.t", "func(ctx context.Context) error { dead.ID.Seq += 1 << 40; return c.t",
		},
	},
	{
		Name: "a revived value keeps its ID", File: "revive.go", Test: "TestSimARevivedValueHasItsEffectOnce",
		Edits: []string{"it.Value.ID.revived()", "it.Value.ID"},
	},
	{
		Name: "a revived value has an ID for each attempt", File: "revive.go", Test: "TestSimARevivedValueHasItsEffectOnce",
		Edits: []string{
			"		m := Msg{", "		c.cond.Lock()\n		c.seq++\n		it.Value.ID.Seq += c.seq << 40\n		c.cond.Unlock()\n		m := Msg{",
		},
	},
	{
		Name: "full is a failure, also after an attempt that may have succeeded", File: "send.go", Test: "TestSimFullFails",
		Edits: []string{"attempt.Doubt(s.doubt,", "attempt.Doubt(s.doubt && !errors.Is(err, ErrFull),"},
	},
	{
		Name: "the end of time is a failure, also after an attempt that may have succeeded", File: "send.go",
		Test:  "TestSimEffectsHappenOnce",
		Edits: []string{"attempt.Doubt(s.doubt,", "attempt.Doubt(s.doubt && !errors.Is(err, coir.ErrTimeout),"},
	},
	{
		Name: "attempts are repeated when the ID is forgotten", File: "send.go", Test: "TestSimNoAttemptAfterTheWindow",
		Edits: []string{"if s.atMostOnce || coir.Now(ctx)-s.since >= s.window {", "if s.atMostOnce {"},
	},
	{
		Name: "a sender waits for credit that was lost", File: "line.go", Test: "TestSimLostCredit",
		Edits: []string{"		if i == 0 || l.isFirst(p) {\n", "		if i == 0 {\n"},
	},
	{
		Name: "a removal that finds no want is forgotten", File: "line.go", Test: "TestSimCreditIsPrompt",
		Edits: []string{"		w.spare = true\n", ""},
	},
	{
		Name: "credit overtakes the removal", File: "item.go", Test: "TestSimCreditIsPrompt",
		Edits: []string{
			"	err = attempt.Repeat(ctx, 0, func", "	c.removed()\n	err = attempt.Repeat(ctx, 0, func",
			"	c.count(func(st *Stats) { st.Acked++ })\n	c.removed()\n", "	c.count(func(st *Stats) { st.Acked++ })\n",
		},
	},
	{
		Name: "credit of a send that gives up is lost", File: "send.go", Test: "TestSimOneLineIsServed",
		Edits: []string{"	case p.credit:\n		c.pass()\n", "	case p.credit:\n"},
	},
	{
		Name: "spare credit is for one send only", File: "send.go", Test: "TestSimSpareCreditIsForAll",
		Edits: []string{"			if p != nil && p.more {\n				c.pass()\n			}\n", ""},
	},
	{
		Name: "an old want replaces a new one", File: "line.go", Test: "TestSimOneLineIsServed",
		Edits: []string{"	case i >= 0 && x.number <= w.senders[i].number: // it is old\n", ""},
	},
	{
		Name: "a lease is not renewed", File: "pull.go", Test: "TestSimAHeldValueIsGivenToNoOther",
		Edits: []string{"			d.Progress()\n", "			_ = d\n"},
	},
	{
		Name: "a lease is renewed when its fiber has ended", File: "item.go", Test: "TestSimAnAbandonedValueComesAgain",
		Edits: []string{" || fiber != nil && fiber.State() == coir.StateEnded)", " || fiber == nil && false)"},
	},
	{
		Name: "a value is held when its turn comes", File: "pull.go", Test: "TestSimAHeldValueIsGivenToNoOther",
		Edits: []string{
			"		if c.hold(ctx, it) {\n			its = append(its, it)\n		}\n", "		its = append(its, it)\n",
			"	for i, it := range its {\n		if !c.hand(ctx, it) {\n", "	for i, it := range its {\n		if c.hold(ctx, it) && !c.hand(ctx, it) {\n",
		},
	},
	{
		Name: "an end keeps values that no fiber receives", File: "pull.go", Test: "TestSimAnEndThatDoesNotReceiveKeepsNothing",
		Edits: []string{"waits == parts {", "waits < 0 {"},
	},
	{
		Name: "a value that is held is handed over again", File: "pull.go", Test: "TestSimAHeldValueIsHandedOverOnce",
		Edits: []string{"	if at, ok := c.held[it.ID]; ok {\n		at.Value", "	if at, ok := c.held[it.ID]; ok && false {\n		at.Value"},
	},
	{
		Name: "a value whose acknowledgement was lost is handed over again", File: "item.go", Test: "TestSimALostAckIsHidden",
		Edits: []string{"	c.seen.add(it.ID)\n", ""},
	},
	{
		Name: "a send on a volatile channel is repeated", File: "send.go", Test: "TestSimVolatileAtMostOnce",
		Edits: []string{"if s.atMostOnce || coir", "if coir"},
	},
	{
		Name: "each attempt to complete a promise is a call of its own", File: "promise.go", Test: "TestSimPromiseFirstWins",
		Edits: []string{
			"func(ctx context.Context) error {\n		stored, err = p.t.Put(",
			"func(ctx context.Context) error {\n		call = unique.Number(ctx)\n" +
				"		mine = append(binary.BigEndian.AppendUint64([]byte{kind}, call), data...)\n		stored, err = p.t.Put(",
		},
	},
	{
		Name: "each completion of a promise wins", File: "promise.go", Test: "TestSimPromiseFirstWins",
		Edits: []string{"	return number(stored[1:resultHead]) == call, nil\n", "	return true, nil\n"},
	},
	{
		Name: "an operation that may have succeeded has failed", File: "internal/attempt/attempt.go", Test: "TestDoubtStays",
		Edits: []string{"		return Doubt(doubt, err)\n", "		return Doubt(doubt && false, err)\n"},
	},
	{
		Name: "a wait for a promise looks only when it is told", File: "promise.go", Test: "TestSimPromiseFirstWins",
		Edits: []string{"coir.Now(ctx) + poll.Next", "coir.Now(ctx) + 1000*time.Hour"},
	},
	{
		Name: "a wait for a promise looks before it can be told", File: "promise.go", Test: "TestSimPromiseIsPrompt",
		Edits: []string{
			"		data, err := w.look(ctx)\n		if data != nil || err != nil {\n			return data, err\n		}\n", "",
			"	for serving := false; ; {\n", "	for serving := false; ; {\n		data, err := w.look(ctx)\n" +
				"		if data != nil || err != nil {\n			return data, err\n		}\n",
		},
	},
	{
		Name: "a ticket is completed by answers with any key", File: "ticket/slots.go",
		Test:  "TestSimEachTicketIsResumedOnce",
		Edits: []string{"	case x.key != key:\n		return id, gone\n", ""},
	},
	{
		Name: "a claim is not noted", File: "ticket/slots.go",
		Test:  "TestSimEachTicketIsResumedOnce",
		Edits: []string{"		x.state, x.key = claimed, key\n", "		x.key = key\n"},
	},
	{
		Name: "a claim counts as an answer", File: "ticket/slots.go",
		Test:  "TestSimAnswersAtTheEnd",
		Edits: []string{"		return id, pending\n", "		return id, duplicate\n"},
	},
	{
		Name: "an answer that finds a claim is too late", File: "ticket/slots.go",
		Test:  "TestSimAnswersAtTheEnd",
		Edits: []string{"		return id, pending\n", "		return id, gone\n"},
	},
	{
		Name: "a generation is not compared", File: "ticket/slots.go",
		Test:  "TestASlotIsUsedAgain",
		Edits: []string{"x == nil || x.generation != generation || x.state", "x == nil || x.state"},
	},
	{
		Name: "a ticket that is cancelled counts as answered", File: "ticket/slots.go",
		Test:  "TestSimAnswersAtTheEnd",
		Edits: []string{"	if byAnswer {\n", "	if byAnswer || x.key != (keyHash{}) {\n"},
	},
	{
		Name: "owners are not told apart", File: "ticket/desk.go",
		Test:  "TestSimEachTicketIsResumedOnce",
		Edits: []string{"owner: unique.Number(ctx),", "owner: 0 * unique.Number(ctx),"},
	},
	{
		Name: "a MAC is not compared", File: "ticket/keys.go",
		Test:  "TestDerivedTokensAreRefused",
		Edits: []string{"ok = hmac.Equal(sum, b[headLen:])", "ok = len(sum) == len(b[headLen:])"},
	},
	{
		Name: "a MAC is not of the audience", File: "ticket/keys.go",
		Test:  "TestDerivedTokensAreRefused",
		Edits: []string{"	m.Write(audience)\n", "	_ = audience\n"},
	},
	{
		Name: "line breaks in a token are skipped", File: "ticket/token.go",
		Test:  "TestTokenText",
		Edits: []string{"err != nil || n != tokenLen", "err != nil || n < tokenLen-3"},
	},
	{
		Name: "a right is not needed", File: "ticket/desk.go",
		Test:  "TestDerivedTokensAreRefused",
		Edits: []string{" || token.rights()&r != r {", " || token.rights()&r != r && false {"},
	},
	{
		Name: "a token never expires", File: "ticket/desk.go",
		Test:  "TestTokensExpire",
		Edits: []string{"	if !d.now().Before(until) {", "	if d.now().Before(until) && false {"},
	},
}

func TestMutantsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the tests once for each mutant")
	}
	suite := mutant.Suite{
		Mutants: mutants,
		Parts:   14,
		Args: func(m mutant.Mutant) []string {
			return []string{"-timeout=5m", "-failfast", "-run=^" + m.Test + "$", "./" + filepath.Dir(m.File)}
		},
		Found: regexp.MustCompile(`(?s)--- FAIL: (\w+).*?(\S[^\n]*\(schedule (\d+)[^\n]*).*-sim\.replay=(\S+)`),
		Tell: func(groups []string) string {
			return "by " + groups[1] + ": " + groups[2] + "; token " + groups[4]
		},
		Ends: []string{"--- FAIL: "}, // of a test without schedules
	}
	suite.Run(t)
}
