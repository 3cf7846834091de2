package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"
)

// nodeMonitorGrace is how long a node may be silent before it counts as lost.
// The fake nodes report every few minutes (heartbeatInterval), so that thousands
// of them cost next to nothing.
const nodeMonitorGrace = 15 * time.Minute

// command returns the command line of part.
func (s *Sandbox) command(part Part) []string {
	var arguments []string
	switch part {
	case Etcd:
		return []string{s.binary, string(part), "--config-file=" + s.folder.etcdConfig()}
	case APIServer:
		arguments = s.apiServerArguments()
	case ControllerManager:
		arguments = s.controllerManagerArguments()
	case Scheduler:
		arguments = s.schedulerArguments()
	case Kwok:
		arguments = s.kwokArguments()
	}
	arguments = append(arguments, s.options.ExtraArgs[part]...)
	if part == Scheduler && s.options.SchedulerBinary != "" {
		return append([]string{s.options.SchedulerBinary}, arguments...)
	}
	return append([]string{s.binary, string(part)}, arguments...)
}

// environment returns what part finds in its environment beside ours.
func (s *Sandbox) environment(part Part) []string {
	env := []string{
		// Five idle programs share the machine with tests: collect earlier than
		// Go's default, which trades memory for speed.
		"GOGC=50",
		// A proxy of the machine is not for the loopback interface.
		"NO_PROXY=" + loopback + ",localhost",
	}
	if part == Kwok {
		env = append(env, "KWOK_WORKDIR="+s.folder.scratch()) // never the user's ~/.kwok
	}
	return env
}

func (s *Sandbox) apiServerArguments() []string {
	certificates := s.folder.certificates()
	return append(s.servingArguments(APIServer),
		"--etcd-servers="+s.ports[Etcd].url(),
		"--etcd-cafile="+certificates.caCert(),
		"--etcd-certfile="+certificates.clientCert(etcdClientUser),
		"--etcd-keyfile="+certificates.clientKey(etcdClientUser),
		"--client-ca-file="+certificates.caCert(),
		"--authorization-mode=RBAC",
		"--allow-privileged=true", // CSI drivers and node agents are privileged
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+certificates.serviceAccount(),
		"--service-account-signing-key-file="+certificates.serviceAccount(),
		"--service-cluster-ip-range="+s.options.ServiceClusterIPRange,
		// The Service "kubernetes" has no endpoints: a loopback address is not
		// allowed there, and no pod runs that could call it.
		"--advertise-address="+loopback,
		"--endpoint-reconciler-type=none",
		"--feature-gates="+s.options.featureGates(),
		"--runtime-config="+s.options.runtimeConfig(),
	)
}

func (s *Sandbox) controllerManagerArguments() []string {
	certificates := s.folder.certificates()
	kubeconfig := s.folder.userConfig(controllerManagerUser)
	return append(s.servingArguments(ControllerManager),
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--kube-api-qps="+strconv.FormatFloat(float64(s.options.QPS), 'f', -1, 32),
		"--kube-api-burst="+strconv.Itoa(s.options.Burst),
		"--leader-elect=false",
		// It tells kubelets how long to cache secrets, by rewriting every node.
		"--controllers=*,-ttl-controller",
		"--root-ca-file="+certificates.caCert(),
		"--cluster-signing-cert-file="+certificates.caCert(),
		"--cluster-signing-key-file="+certificates.caKey(),
		"--service-account-private-key-file="+certificates.serviceAccount(),
		"--use-service-account-credentials=true", // each controller is a user of its own, as in real clusters
		"--node-monitor-grace-period="+nodeMonitorGrace.String(),
		"--feature-gates="+s.options.featureGates(),
	)
}

func (s *Sandbox) schedulerArguments() []string {
	kubeconfig := s.folder.userConfig(schedulerUser)
	return append(s.servingArguments(Scheduler),
		"--config="+s.folder.schedulerConfig(),
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--feature-gates="+s.options.featureGates(),
	)
}

func (s *Sandbox) kwokArguments() []string {
	return []string{
		"--kubeconfig=" + s.folder.userConfig(kwokUser),
		"--config=" + s.folder.stages(),
		"--manage-all-nodes=true",
		"--cidr=10.244.0.0/16",
		// Leases would bind each node to the one kwok process that took it, so
		// that one started in its place had to wait for them to run out.
		"--node-lease-duration-seconds=0",
	}
}

// servingArguments returns the flags by which part serves on its port.
func (s *Sandbox) servingArguments(part Part) []string {
	certificates := s.folder.certificates()
	return []string{
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(s.ports[part].number),
		"--permit-port-sharing=true", // with the socket that reserves the port
		"--tls-cert-file=" + certificates.serverCert(),
		"--tls-private-key-file=" + certificates.serverKey(),
		"--cert-dir=" + s.folder.scratch(),
		"--profiling=false",
	}
}

// writeConfiguration writes all files that the parts read.
func (s *Sandbox) writeConfiguration() error {
	certificates := s.folder.certificates()
	server := s.ports[APIServer].url()
	for user, file := range map[string]string{
		adminUser:             s.folder.kubeconfig(),
		kwokUser:              s.folder.userConfig(kwokUser),
		controllerManagerUser: s.folder.userConfig(controllerManagerUser),
		schedulerUser:         s.folder.userConfig(schedulerUser),
	} {
		if err := writeKubeconfig(file, s.options.Name, server, user, certificates); err != nil {
			return err
		}
	}
	if err := s.writeEtcdConfig(); err != nil {
		return fmt.Errorf("write configuration of etcd: %w", err)
	}
	if err := s.writeSchedulerConfig(); err != nil {
		return err
	}
	stages, err := kwokConfiguration()
	if err != nil {
		return err
	}
	return os.WriteFile(s.folder.stages(), stages, 0o600)
}

// writeEtcdConfig writes etcd's own configuration format, as JSON.
func (s *Sandbox) writeEtcdConfig() error {
	certificates := s.folder.certificates()
	security := map[string]any{
		"cert-file":        certificates.serverCert(),
		"key-file":         certificates.serverKey(),
		"trusted-ca-file":  certificates.caCert(),
		"client-cert-auth": true,
	}
	client, peer := s.ports[Etcd].url(), s.etcdPeer.url()
	data, err := json.MarshalIndent(map[string]any{
		"name":                        "sandbox",
		"data-dir":                    s.folder.etcdData(),
		"listen-client-urls":          client,
		"advertise-client-urls":       client,
		"listen-peer-urls":            peer,
		"initial-advertise-peer-urls": peer,
		"initial-cluster":             "sandbox=" + peer,
		"client-transport-security":   security,
		"peer-transport-security":     security,
		"socket-options":              map[string]any{"reuse-port": true},
		"log-level":                   "warn",
		"unsafe-no-fsync":             !s.options.Fsync,
		"snapshot-count":              10_000,
		"auto-compaction-mode":        "periodic",
		"auto-compaction-retention":   "5m",
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(s.folder.etcdConfig(), data, 0o600)
}

// writeSchedulerConfig writes the user's KubeSchedulerConfiguration, or an empty
// one, with this sandbox's connection in it: kube-scheduler takes that from
// nowhere else once it has a configuration.
func (s *Sandbox) writeSchedulerConfig() error {
	config := map[string]any{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
	if file := s.options.SchedulerConfig; file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("scheduler configuration: %w", err)
		}
		config = nil
		if err := yaml.Unmarshal(data, &config); err != nil {
			return fmt.Errorf("scheduler configuration %s: %w", file, err)
		}
		if config["kind"] != "KubeSchedulerConfiguration" {
			return fmt.Errorf("scheduler configuration %s: kind is %q; it must be \"KubeSchedulerConfiguration\"", file, fmt.Sprint(config["kind"]))
		}
	}
	config["clientConnection"] = map[string]any{
		"kubeconfig": s.folder.userConfig(schedulerUser),
		"qps":        s.options.QPS,
		"burst":      s.options.Burst,
	}
	config["leaderElection"] = map[string]any{"leaderElect": false}
	data, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("scheduler configuration: %w", err)
	}
	return os.WriteFile(s.folder.schedulerConfig(), data, 0o600)
}
