package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A table is a part of the document that this command writes.
type table struct{ name, text string }

func (r *results) tables(ops []operation) []table {
	return []table{
		{"machine", r.machine()}, {"inputs", r.inputTable()}, {"fibers", r.growthTable()}, {"check", r.checkTable()},
		{"words", r.wordTable(ops)}, {"million", r.millionTable()}, {"walls", r.wallTable(ops)},
	}
}

func (r *results) machine() string {
	m := r.Machine
	text := fmt.Sprintf("%s, %d processors, %s, %s. Measured on %s at commit %s.\n",
		m.Processor, m.Processors, m.Platform, m.Go, m.Date, m.Commit)
	if m.Load > float64(m.Processors) {
		text += fmt.Sprintf("The machine was busy, with a load average of %.1f: rates are too low, and times too long.\n", m.Load)
	}
	return text
}

func (r *results) inputTable() string {
	var b strings.Builder
	b.WriteString("| input | value | what | measured or assumed |\n|---|---|---|---|\n")
	for _, in := range inputs {
		kind := "**assumed**: "
		if in.assumed == 0 {
			kind = "measured: "
		}
		value := strings.TrimSpace(number(r.Inputs[in.name]) + " " + in.unit)
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", in.name, value, in.what, kind+in.by)
	}
	return b.String()
}

// growthTable shows the cost of an operation among few and among many things.
func (r *results) growthTable() string {
	var b strings.Builder
	b.WriteString("| one operation | smallest n | cost | largest n | cost | growth |\n|---|---|---|---|---|---|\n")
	for i, p := range r.Growth {
		if i == 0 || r.Growth[i-1].Series != p.Series {
			last := p
			for _, q := range r.Growth[i:] {
				if q.Series == p.Series {
					last = q
				}
			}
			fmt.Fprintf(&b, "| %s: %s | %s | %s %s | %s | %s %s | %.2f |\n", p.Series, p.What, number(float64(p.N)),
				number(p.Cost), p.Unit, number(float64(last.N)), number(last.Cost), p.Unit, last.Growth)
		}
	}
	return b.String()
}

// checkTable compares the model with two cores.
func (r *results) checkTable() string {
	var b strings.Builder
	b.WriteString("| all fibers use | work between | one core | gain of two, measured | quartiles | gain of two, model |\n" +
		"|---|---|---|---|---|---|\n")
	for _, m := range r.Programs {
		places := program{name: m.Name}.places(r.Inputs)
		fmt.Fprintf(&b, "| %s | %s ns | %s ns | %.2f | %.2f to %.2f | %.2f |\n", m.Name, number(m.Between), number(m.One),
			m.Gain, m.Lo, m.Hi, 2*m.One/cycle(2, m.One, r.Inputs["line"], places))
	}
	return b.String()
}

// large lists the machines for which the model is computed: the cores, and how much longer a line takes.
func (r *results) large() []struct{ cores, line float64 } {
	return []struct{ cores, line float64 }{{64, r.Inputs["line"]}, {256, r.Inputs["line"] * r.Inputs["far"]}}
}

// shared returns the operations with places that all workers write, or that a program can make all of them write.
func (r *results) shared(ops []operation) []operation {
	all := slices.DeleteFunc(slices.Clone(ops), func(op operation) bool { return len(op.places) == 0 })
	for _, name := range []string{"one channel", "one nursery"} {
		all = append(all, operation{name + " for all fibers", program{name: name}.places(r.Inputs)})
	}
	return all
}

// wordTable shows what each operation of design/0012 allows on large machines.
func (r *results) wordTable(ops []operation) string {
	var b strings.Builder
	b.WriteString("| operation | bottleneck | saturated at, 64 cores | saturated at, 256 cores | busy of 64 cores, 10 µs apart | of 256 |" +
		" of 64, 100 µs apart | of 256 |\n|---|---|---|---|---|---|---|---|\n")
	var none []string
	for _, op := range ops {
		if len(op.places) == 0 {
			none = append(none, op.name)
		}
	}
	fmt.Fprintf(&b, "| %s | none | - | - | 64 | 256 | 64 | 256 |\n", strings.Join(none, "; "))
	for _, op := range r.shared(ops) {
		at, _ := fullest(64, r.Inputs["line"], op.places)
		fmt.Fprintf(&b, "| %s | %s |", op.name, at.name)
		for _, m := range r.large() {
			_, most := fullest(int(m.cores), m.line, op.places)
			fmt.Fprintf(&b, " %s/s |", number(most))
		}
		for _, between := range []float64{10_000, 100_000} {
			for _, m := range r.large() {
				fmt.Fprintf(&b, " %.0f |", m.cores*between/cycle(int(m.cores), between, m.line, op.places))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// cpu returns the processor time of a request, in microseconds: its own, and that of the operations that it uses.
func (r *results) cpu() float64 {
	in := r.Inputs
	return in["work"] + in["hops"]*in["hop"]/1000 + in["durable-cpu"] + in["volatile-cpu"] + in["ticket-cpu"]
}

// millionTable computes the load in inputs.
func (r *results) millionTable() string {
	in := r.Inputs
	cells := math.Ceil(in["requests"] / in["cell"])
	cores := in["cell"] * r.cpu() / 1e6
	processes := math.Ceil(cores / (in["cores"] * in["use"]))
	streams := math.Ceil(in["cell"] / (in["durable"] * in["use"]))
	waiting := in["cell"] * in["wait"]
	var b strings.Builder
	b.WriteString("| what | how | a cell | all |\n|---|---|---|---|\n")
	for _, row := range []struct {
		what, how string
		cell      float64
		unit      string
		sum       bool
	}{
		{"cells", "requests / cell", 1, "", true},
		{"processor time of a request", "work + hops × hop + durable-cpu + volatile-cpu + ticket-cpu", r.cpu(), " µs", false},
		{"part of that outside of the program", "the same without work", 100 * (1 - in["work"]/r.cpu()), " %", false},
		{"busy cores", "cell × that time", cores, "", true},
		{"processes and brokers", "busy cores / (cores × use)", processes, "", true},
		{"requests that wait", "cell × wait", waiting, "", true},
		{"memory of their fibers", "that × fiber", waiting * in["fiber"] / 1e9, " GB", true},
		{"durable partitions (streams)", "cell / (durable × use)", streams, "", true},
		{"bytes to the disk of each of three brokers", "cell × value × copies", in["cell"] * in["value"] * in["copies"] / 1e6, " MB/s", false},
		{"values in each sync, at least", "cell × sync, if the syncs of a disk follow each other", in["cell"] * in["sync"] / 1e6, "", false},
		{"network of each of three brokers, both directions", "cell × value × (6 durable + 2 volatile) / 3",
			in["cell"] * in["value"] * 8 / 3 * 8 / 1e9, " Gbit/s", false},
		{"IDs in each of three brokers", "cell × window × id", in["cell"] * in["window"] * in["id"] / 1e9, " GB", false},
	} {
		all := "-"
		if row.sum {
			all = number(row.cell*cells) + row.unit
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", row.what, row.how, number(row.cell)+row.unit, all)
	}
	return b.String()
}

// A wall is what one thing lets through in a second.
type wall struct {
	what, from string
	most       float64
}

// walls returns the walls, if there is one of each thing, in the order in which they are full.
func (r *results) walls(ops []operation) []wall {
	in := r.Inputs
	cores := fmt.Sprintf("a process of %.0f cores, ", in["cores"])
	all := []wall{
		{"one stream of a durable channel, synced on three servers", "durable", in["durable"]},
		{"one queue on PostgreSQL, synced", "postgres", in["postgres"]},
		{"a disk that syncs each value by itself", "1 / sync", 1e6 / in["sync"]},
		{cores + "with all that a request uses", "cores / processor time of a request", in["cores"] * 1e6 / r.cpu()},
		{cores + "without remote channels and tickets", "cores / (work + hops × hop)",
			in["cores"] * 1e6 / (in["work"] + in["hops"]*in["hop"]/1000)},
	}
	for _, op := range r.shared(ops) {
		at, most := fullest(64, in["line"], op.places)
		all = append(all, wall{op.name + ", 64 cores", "the model: " + at.name, most})
	}
	slices.SortFunc(all, func(a, b wall) int { return cmp.Compare(a.most, b.most) })
	return all
}

func (r *results) wallTable(ops []operation) string {
	var b strings.Builder
	b.WriteString("| resource | saturated at (requests/s) | computed from |\n|---|---|---|\n")
	for _, w := range r.walls(ops) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", w.what, number(w.most), w.from)
	}
	return b.String()
}

// number returns v with three digits, and with a unit for thousands and millions.
func number(v float64) string {
	switch {
	case v >= 999_500:
		return fmt.Sprintf("%.3g M", v/1e6)
	case v >= 9_995:
		return fmt.Sprintf("%.3g k", v/1e3)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
