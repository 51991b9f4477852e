package mutant

import "testing"

func TestCodeHasNoComments(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"	a() // b\n	c()\n", "	a()\n	c()\n"},
		{"	// a\n	b()\n", "	b()\n"},
		{"a()\n\n// b\n// c\nd()\n", "a()\n\nd()\n"},
		{"//go:norace\nfunc a() {}\n", "//go:norace\nfunc a() {}\n"},
		{"	s := \"// a\" // b", "	s := \"// a\""},
		{"	a(/* b */ c)\n", "	a( c)\n"},
		{"	} else if a { // b\n", "	} else if a {\n"},
		{"x // y", "x"},
		{"// y", ""},
	} {
		if got := string(code([]byte(test.in))); got != test.want {
			t.Errorf("code(%q) is %q; want %q", test.in, got, test.want)
		}
	}
}
