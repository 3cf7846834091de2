package e2e

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// moment is a point of time in the course of a write.
type moment string

const (
	// arriving: the API server has not seen the request yet.
	arriving moment = "before"
	// answered: the API server has done it, and the client does not know.
	answered moment = "after"
)

// gate stands between the plugin and the API server, and counts the writes that
// pass: requests that change something, no dry runs and no questions.
type gate struct {
	server *httptest.Server
	writes atomic.Int64
	// on is called for each write, with its number from 1, before and after it.
	on func(number int, when moment, request *http.Request)
}

func newGate(t *testing.T, config *rest.Config, on func(int, moment, *http.Request)) *gate {
	t.Helper()
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{on: on}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isWrite(r) {
			proxy.ServeHTTP(w, r)
			return
		}
		number := int(g.writes.Add(1))
		g.on(number, arriving, r)
		proxy.ServeHTTP(delayed{w, func() { g.on(number, answered, r) }}, r)
	}))
	g.server.EnableHTTP2 = true
	g.server.StartTLS()
	t.Cleanup(g.server.Close)
	return g
}

// delayed runs a function when the answer is there, before it is passed on.
type delayed struct {
	http.ResponseWriter
	before func()
}

func (d delayed) WriteHeader(code int) {
	d.before()
	d.ResponseWriter.WriteHeader(code)
}

func isWrite(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return !r.URL.Query().Has("dryRun") && !strings.Contains(r.URL.Path, "/authorization.k8s.io/") && !strings.Contains(r.URL.Path, "/authentication.k8s.io/")
	}
	return false
}

// config is the configuration to reach the API server through the gate.
func (g *gate) config() *rest.Config {
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
	return &rest.Config{Host: g.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: certificate}}
}
