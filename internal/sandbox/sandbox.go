package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Sandbox is a control plane that this process started and will end. Its methods
// may be called from several goroutines at once.
type Sandbox struct {
	options   Options
	binary    string
	folder    folder
	temporary bool // the folder is ours to remove
	release   func() error
	ports     map[Part]*port
	etcdPeer  *port
	config    *rest.Config
	clients   kubernetes.Interface

	lifelineIn, lifelineOut *os.File

	mu        sync.Mutex
	processes map[Part]*process
	killed    map[Part]bool // ended on purpose, and not started since
	ready     bool          // Start has returned it
	stopped   bool
}

// Start starts a control plane and returns when it is ready: the API server and
// all its post-start hooks, the controllers, the scheduler, the namespace
// "default" with its service account, and the built-in priority classes.
//
// ctx bounds the start only; the sandbox lives until Stop, or until this process
// ends in any way. The error of a part that does not come up holds the last
// lines of its log and the log's path, and the folder then stays for reading.
func Start(ctx context.Context, options Options) (*Sandbox, error) {
	options = options.withDefaults()
	_, services, err := net.ParseCIDR(options.ServiceClusterIPRange)
	if err != nil {
		return nil, fmt.Errorf("service cluster IP range: %w", err)
	}
	if len(options.ExtraArgs[Etcd]) > 0 {
		return nil, fmt.Errorf("etcd takes no extra arguments: it is started from a configuration file")
	}
	s := &Sandbox{
		options:   options,
		ports:     map[Part]*port{},
		processes: map[Part]*process{},
		killed:    map[Part]bool{},
	}
	if s.binary = options.Binary; s.binary == "" {
		if s.binary, err = Binary(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.claimFolder(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, options.StartTimeout)
	defer cancel()
	if err := s.start(ctx, services); err != nil {
		s.temporary = false // its logs are what explains the error
		return nil, fmt.Errorf("start sandbox: %w", errors.Join(err, s.Stop()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
	return s, nil
}

func (s *Sandbox) claimFolder() error {
	if s.options.DataDir == "" {
		dir, err := os.MkdirTemp("", "sched-sandbox-")
		if err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
		s.folder, s.temporary = folder(dir), true
	} else {
		dir, err := filepath.Abs(s.options.DataDir)
		if err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
		s.folder = folder(dir)
	}
	release, err := s.folder.claim()
	s.release = release
	return err
}

func (s *Sandbox) start(ctx context.Context, services *net.IPNet) error {
	if err := s.prepare(services); err != nil {
		return err
	}
	for _, part := range []Part{Etcd, APIServer} {
		if err := s.StartPart(ctx, part); err != nil {
			return err
		}
	}
	// The others need only the API server: they come up together.
	others := []Part{ControllerManager, Scheduler, Kwok}
	for _, part := range others {
		if err := s.launch(part); err != nil {
			return err
		}
	}
	for _, part := range others {
		if err := s.waitForPart(ctx, part); err != nil {
			return err
		}
	}
	return s.waitForDefaults(ctx)
}

// prepare makes everything that the parts need: ports, certificates, files.
func (s *Sandbox) prepare(services *net.IPNet) (err error) {
	// An earlier run of the same folder may have left a part that hangs.
	if state, err := s.folder.readState(); err == nil {
		if err := s.folder.killLeftovers(state); err != nil {
			return err
		}
	}
	if s.lifelineOut, s.lifelineIn, err = os.Pipe(); err != nil {
		return err
	}
	if s.ports[APIServer], err = reservePort(s.options.Port); err != nil {
		return err
	}
	for _, part := range []Part{Etcd, ControllerManager, Scheduler} {
		if s.ports[part], err = reservePort(0); err != nil {
			return err
		}
	}
	if s.etcdPeer, err = reservePort(0); err != nil {
		return err
	}
	if err := s.folder.certificates().ensure(services); err != nil {
		return err
	}
	if err := s.writeConfiguration(); err != nil {
		return err
	}
	if s.config, err = clientcmd.BuildConfigFromFlags("", s.folder.kubeconfig()); err != nil {
		return err
	}
	s.config.QPS = -1 // no limit: the API server's own fairness is enough
	s.clients, err = NewClient(s.config)
	return err
}

// NewClient returns a client that asks for protobuf, which is many times cheaper
// for both sides than JSON when there are thousands of nodes.
func NewClient(config *rest.Config) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return kubernetes.NewForConfig(config)
}

// Name returns the sandbox's name, which is also its context's in the kubeconfig.
func (s *Sandbox) Name() string { return s.options.Name }

// DataDir returns the path of the sandbox's folder.
func (s *Sandbox) DataDir() string { return string(s.folder) }

// Kubeconfig returns the path of a kubeconfig with all rights.
func (s *Sandbox) Kubeconfig() string { return s.folder.kubeconfig() }

// RESTConfig returns a fresh client configuration with all rights and no limit
// on requests a second.
func (s *Sandbox) RESTConfig() *rest.Config { return rest.CopyConfig(s.config) }

// Client returns a client with all rights.
func (s *Sandbox) Client() kubernetes.Interface { return s.clients }

// LogPath returns the path of the file that part writes its log to.
func (s *Sandbox) LogPath(part Part) string { return s.folder.log(part) }

// State returns the state of the sandbox as it is now.
func (s *Sandbox) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state()
}

// state is State for callers that hold s.mu.
func (s *Sandbox) state() State {
	state := State{
		Name:       s.options.Name,
		Supervisor: os.Getpid(),
		Supervised: !s.stopped,
		Server:     s.ports[APIServer].url(),
		Kubeconfig: s.folder.kubeconfig(),
	}
	for _, part := range Parts() {
		entry := PartState{Part: part, Log: s.folder.log(part), Killed: s.killed[part]}
		if p := s.processes[part]; p != nil {
			entry.PID, entry.Running = p.cmd.Process.Pid, p.running()
		}
		if port := s.ports[part]; port != nil {
			entry.Address = port.address()
		}
		state.Parts = append(state.Parts, entry)
	}
	return state
}

// Kill ends part with SIGKILL, as a crash would, and returns when it is gone.
// Killing a part that does not run does nothing.
func (s *Sandbox) Kill(part Part) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.processes[part]
	if p == nil || !p.running() {
		return nil
	}
	s.killed[part] = true
	if err := p.kill(); err != nil {
		return err
	}
	return s.folder.writeState(s.state())
}

// StartPart starts part if it does not run, with the ports, certificates and
// data that it had, and returns when it is ready or ctx is over.
func (s *Sandbox) StartPart(ctx context.Context, part Part) error {
	if err := s.launch(part); err != nil {
		return err
	}
	return s.waitForPart(ctx, part)
}

// launch starts part without waiting for it.
func (s *Sandbox) launch(part Part) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return fmt.Errorf("start %s: the sandbox is stopped", part)
	}
	if p := s.processes[part]; p != nil && p.running() {
		return nil
	}
	p, err := startProcess(part, s.command(part), s.environment(part), s.folder.log(part), s.lifelineOut)
	if err != nil {
		return err
	}
	s.processes[part] = p
	go s.watch(p)
	delete(s.killed, part)
	return s.folder.writeState(s.state())
}

// watch tells the owner when p ends and nobody wanted that.
func (s *Sandbox) watch(p *process) {
	<-p.done
	s.mu.Lock()
	failed := s.ready && !s.stopped && !s.killed[p.part]
	s.mu.Unlock()
	if failed && s.options.OnFailure != nil {
		s.options.OnFailure(p.part, p.failure(p.exitReason()))
	}
}

// process returns the process of part that was started last, or nil.
func (s *Sandbox) process(part Part) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[part]
}

// Stop ends all parts and returns when they are gone. It removes the folder if
// Start made it up. A second call does nothing.
func (s *Sandbox) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	var failed []error
	// From the last to the first, so that none complains of one that is gone.
	// SIGKILL will do: etcd's files survive it, and nothing else keeps data.
	for _, part := range slices.Backward(Parts()) {
		if p := s.processes[part]; p != nil {
			s.killed[part] = true
			failed = append(failed, p.kill())
		}
	}
	for _, end := range []*os.File{s.lifelineIn, s.lifelineOut} {
		if end != nil {
			failed = append(failed, end.Close())
		}
	}
	for _, port := range append([]*port{s.etcdPeer}, s.allPorts()...) {
		if port != nil {
			failed = append(failed, port.release())
		}
	}
	if s.config != nil && !s.temporary {
		failed = append(failed, s.folder.writeState(s.state()))
	}
	if s.temporary {
		failed = append(failed, s.folder.remove())
	}
	failed = append(failed, s.release())
	return errors.Join(failed...)
}

// allPorts returns the ports of the parts.
func (s *Sandbox) allPorts() []*port {
	var ports []*port
	for _, part := range Parts() {
		ports = append(ports, s.ports[part])
	}
	return ports
}
