package sandbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pollInterval is how often a condition is looked at while waiting for it.
const pollInterval = 50 * time.Millisecond

// waitFor returns nil when check does. When ctx is over first, the error is
// what check said last.
func waitFor(ctx context.Context, what string, check func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		var ended *endedError
		if errors.As(err, &ended) {
			return err
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.Canceled) {
				return &interruptedError{what}
			}
			return fmt.Errorf("wait for %s: %w (last: %w)", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// endedError ends a wait early: the process that is waited for is gone.
type endedError struct{ reason error }

func (e *endedError) Error() string { return e.reason.Error() }
func (e *endedError) Unwrap() error { return e.reason }

// interruptedError ends a wait that the caller gave up: nobody is to blame.
type interruptedError struct{ what string }

func (e *interruptedError) Error() string { return "interrupted while waiting for " + e.what }
func (e *interruptedError) Unwrap() error { return context.Canceled }

// waitForPart returns when part serves and says that it is ready. When part ends
// first, or ctx does, the error shows the end of its log.
func (s *Sandbox) waitForPart(ctx context.Context, part Part) error {
	p := s.process(part)
	check, err := s.readiness(part)
	if err != nil {
		return err
	}
	err = waitFor(ctx, string(part), func(ctx context.Context) error {
		if !p.running() {
			return &endedError{p.exitReason()}
		}
		return check(ctx)
	})
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return p.failure(err)
}

// readiness returns the check of whether part is ready.
func (s *Sandbox) readiness(part Part) (func(context.Context) error, error) {
	switch part {
	case Etcd:
		return s.dialEtcd, nil
	case APIServer:
		return s.healthCheck(s.ports[APIServer].url() + "/readyz")
	case ControllerManager:
		return s.healthCheck(s.ports[ControllerManager].url() + "/healthz")
	case Scheduler:
		return s.healthCheck(s.ports[Scheduler].url() + "/readyz")
	case Kwok:
		// kwok serves nothing; that nodes become Ready is seen in Nodes.
		return func(context.Context) error { return nil }, nil
	}
	return nil, fmt.Errorf("no part is called %q", part)
}

func (s *Sandbox) dialEtcd(ctx context.Context) error {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", s.ports[Etcd].address())
	if err != nil {
		return err
	}
	return connection.Close()
}

// healthCheck returns a check that GET url answers 200, with the sandbox's own
// authority trusted.
func (s *Sandbox) healthCheck(url string) (func(context.Context) error, error) {
	ca, err := os.ReadFile(s.folder.certificates().caCert())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
	}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s: %s", url, response.Status, strings.TrimSpace(string(body)))
		}
		return nil
	}, nil
}

// waitForDefaults returns when the objects are there without which the first pod
// or policy of a test might be refused.
func (s *Sandbox) waitForDefaults(ctx context.Context) error {
	err := waitFor(ctx, "the service account \"default\"", func(ctx context.Context) error {
		_, err := s.clients.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return s.unlessEnded(ControllerManager, err)
	})
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		return s.process(ControllerManager).failure(err)
	}
	for _, name := range []string{"system-cluster-critical", "system-node-critical"} {
		err := waitFor(ctx, "priority class "+name, func(ctx context.Context) error {
			_, err := s.clients.SchedulingV1().PriorityClasses().Get(ctx, name, metav1.GetOptions{})
			return s.unlessEnded(APIServer, err)
		})
		if err != nil {
			return s.process(APIServer).failure(err)
		}
	}
	if p := s.process(Kwok); !p.running() {
		return p.failure(p.exitReason())
	}
	return s.createStorageClass(ctx)
}

// unlessEnded returns err, or the end of part when that explains it.
func (s *Sandbox) unlessEnded(part Part, err error) error {
	if p := s.process(part); err != nil && !p.running() {
		return &endedError{p.exitReason()}
	}
	return err
}
