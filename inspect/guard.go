package inspect

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// The handler often listens on localhost, and every page in the user's browser can send requests there. Such a page
// cannot read the answers, because they have no CORS headers. But if an attacker makes the name of the page's site
// point here (DNS rebinding), the browser treats the answers as answers of that site. Then the Host header has the name
// of the site, so the handler allows only names of this machine. An address is not a name, and cannot be made to point
// elsewhere.

// protect sets the headers of every response.
func protect(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// refusal returns the status for a request that is refused, and the reason. It returns 0 if the request is allowed.
func (h *handler) refusal(r *http.Request) (status int, why string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return http.StatusMethodNotAllowed, "the inspector is read-only: use GET"
	}
	if !h.known(r) {
		return http.StatusForbidden, "the request is for a host that is not known here: " +
			"use localhost, or allow the name with inspect.WithHost"
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	case "same-site": // such as another port of localhost: a link may lead here, but no script may fetch
		if r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
			break
		}
		return http.StatusForbidden, "the request comes from a page of another origin"
	default:
		return http.StatusForbidden, "the request comes from a page of another site: type the address instead"
	}
	if origin := r.Header.Get("Origin"); origin != "" { // for browsers without Sec-Fetch-Site
		if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) {
			return http.StatusForbidden, "the request comes from a page of another origin"
		}
	}
	return 0, ""
}

// known reports whether the host that a request is for is this machine, or is allowed.
func (h *handler) known(r *http.Request) bool {
	host := hostOf(r.Host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if slices.ContainsFunc(h.hosts, func(name string) bool { return hostOf(name) == host && host != "" }) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if ip = ip.Unmap(); ip.IsLoopback() {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.AddrPort().Addr().Unmap().WithZone("") == ip.WithZone("")
}

// hostOf returns a host without its port, in lower case.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
