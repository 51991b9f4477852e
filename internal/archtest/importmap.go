package archtest

import (
	"fmt"
	"html"
	"strings"
)

// ImportMapFile is the drawing of Layers.
const ImportMapFile = "docs/imports.svg"

// ImportMap draws the layers, the highest on top: a package may import those of the bands below its own. Satellites,
// which import no internal package, have another colour.
func ImportMap() string {
	const (
		width, left, right, top = 860, 236, 844, 62
		box, gap, letter        = 24, 8, 7.3
	)
	var b strings.Builder
	y := float64(top)
	for i := len(Layers) - 1; i >= 0; i-- {
		l := Layers[i]
		x, from := float64(left), y
		var boxes strings.Builder
		y += gap
		for _, p := range l.Packages {
			name := p
			if p == "." {
				name = "coir (the root)"
			}
			w := float64(len(name))*letter + 16
			if x+w > right-gap {
				x, y = left, y+box+gap
			}
			fmt.Fprintf(&boxes, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="5" class="%s"/>`, x, y, w, box, kindOf(p))
			fmt.Fprintf(&boxes, `<text x="%.1f" y="%.1f" class="code">%s</text>`+"\n", x+8, y+16, html.EscapeString(name))
			x += w + gap
		}
		title := folded(l.Name, 30)
		y = max(y+box+gap, from+16*float64(len(title)+1))
		fmt.Fprintf(&b, `<rect x="16" y="%.1f" width="%d" height="%.1f" rx="6" class="band"/>`+"\n", from, width-32, y-from)
		for j, line := range title {
			text := html.EscapeString(line)
			fmt.Fprintf(&b, `<text x="28" y="%.1f" class="dim">%s</text>`+"\n", from+24+float64(j)*16, text)
		}
		b.WriteString(boxes.String())
		y += 6
	}
	height := int(y) + 10
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">
<title>The import order of the root module</title>
<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328; } .code { font: 12px ui-monospace, monospace; }
.title { font-size: 15px; font-weight: 600; } .dim { fill: #59636e; } .paper { fill: #fff; }
.band { fill: #f4f5f7; } .public { fill: #cfe0fb; } .satellite { fill: #d3ecd6; } .hidden { fill: #e4e6ea; }
@media (prefers-color-scheme: dark) {
text { fill: #e2e5ea; } .dim { fill: #969da8; } .paper { fill: #16181c; } .band { fill: #1f2228; }
.public { fill: #24406e; } .satellite { fill: #23502b; } .hidden { fill: #363b44; }
}
</style>
<rect class="paper" width="%d" height="%d" rx="8"/>
<text x="16" y="26" class="title">Who may import whom: a package imports only from bands below its own</text>
<rect x="16" y="38" width="12" height="12" rx="3" class="public"/><text x="34" y="48" class="dim">for users</text>
<rect x="110" y="38" width="12" height="12" rx="3" class="satellite"/>
<text x="128" y="48" class="dim">satellites: for users, and without internal packages</text>
<rect x="440" y="38" width="12" height="12" rx="3" class="hidden"/>
<text x="458" y="48" class="dim">internal, commands and examples</text>
%s</svg>
`, width, height, width, height, width, height, b.String())
}

// kindOf returns the class of a package in the drawing.
func kindOf(pkg string) string {
	for _, s := range Satellites {
		if s == pkg {
			return "satellite"
		}
	}
	if pkg == "." || !strings.Contains(pkg, "/") {
		return "public"
	}
	return "hidden"
}

// folded breaks text into lines of at most so many letters.
func folded(text string, most int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > most {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
