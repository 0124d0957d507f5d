// Package gatewaytest runs the gateway in front of the real emulators, for tests.
package gatewaytest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sawhorse-io/sawhorse/sandbox/ask"
	"github.com/sawhorse-io/sawhorse/sandbox/caller"
	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/gateway"
	"github.com/sawhorse-io/sawhorse/sandbox/images"
	"github.com/sawhorse-io/sawhorse/sandbox/process"
)

// Cluster is the API server that the gateway reports.
var Cluster = gateway.Cluster{Endpoint: "https://127.0.0.1:6443", CA: []byte("the CA"), OIDCIssuer: "https://oidc.example/id/1"}

// FunctionPrefix is the prefix of the session names of Lambda functions.
const FunctionPrefix = "Test-"

// Prices are the prices that the gateway answers with.
var Prices = map[string]float64{"m5.large": 0.096, "m5.metal": 4.608}

// Sandbox is a running gateway with its emulators.
type Sandbox struct {
	URL       string // the AWS endpoint
	MiniStack *url.URL
	Decisions string // the file with the authorization decisions about the stack's roles

	server   *httptest.Server
	group    *process.Group
	giveBack func()
	logs     string
	root     string
	known    sync.Once
}

// Start starts MiniStack, moto and the gateway on free ports. Stop must be called to end them.
func Start() (*Sandbox, error) {
	root, err := checkout()
	if err != nil {
		return nil, err
	}
	ports, giveBack, err := process.FreePorts(2)
	if err != nil {
		return nil, err
	}
	logs, err := os.MkdirTemp("", "gatewaytest")
	if err != nil {
		return nil, fmt.Errorf("gatewaytest: make log folder: %w", err)
	}
	ministack, moto := local(ports[0]), local(ports[1])
	s := &Sandbox{
		MiniStack: ministack, Decisions: filepath.Join(logs, "decisions.jsonl"), logs: logs, group: process.NewGroup(logs, 5*time.Second),
		giveBack: giveBack, root: root,
	}
	functions := &caller.Functions{MiniStack: ministack, Prefix: FunctionPrefix}
	s.server = httptest.NewServer(gateway.New(gateway.Config{
		MiniStack: ministack, Moto: moto, Account: "000000000000", Region: "us-east-1",
		Cluster: func(string) gateway.Cluster { return Cluster },
		Prices:  func() (map[string]float64, error) { return Prices, nil },
		Faults:  &fault.Injector{}, Function: functions.Of,
	}))
	s.URL = s.server.URL
	if err := s.start(ports); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Sandbox) start(ports []int) error {
	root := s.root
	published := filepath.Join(s.logs, "images.json")
	if err := images.Write(published, time.Now()); err != nil {
		return fmt.Errorf("gatewaytest: %w", err)
	}
	specs := []process.Spec{
		{
			Name: "ministack", Dir: root, Path: filepath.Join(root, ".cache/ministack/bin/python"),
			Args: []string{filepath.Join(root, "sandbox/ministack/wrapper.py")},
			Env: []string{
				"PATH=" + os.Getenv("PATH"), "AUTH=true", "AWS_ENDPOINT_URL=" + s.URL, "BIND_HOST=127.0.0.1",
				fmt.Sprintf("GATEWAY_PORT=%d", ports[0]), "MINISTACK_REGION=us-east-1",
				"MINISTACK_ACCOUNT_ID=000000000000", "SFTP_ENABLED=0", "IOT_MTLS_ENABLED=0",
				"PYTHONDONTWRITEBYTECODE=1", "SANDBOX_UPDATE_SECONDS=0.3",
				"STATE_DIR=" + filepath.Join(s.logs, "ministack"), "S3_PERSIST=1", "S3_DATA_DIR=" + filepath.Join(s.logs, "s3"),
				"SANDBOX_DECISIONS=" + s.Decisions, "SANDBOX_IMAGES=" + published,
			},
		},
		{
			Name: "moto", Dir: root, Path: filepath.Join(root, ".cache/venv/bin/moto_server"),
			Args: []string{"-H", "127.0.0.1", "-p", fmt.Sprint(ports[1])},
			Env:  []string{"PATH=" + os.Getenv("PATH"), "MOTO_ACCOUNT_ID=000000000000", "MOTO_AMIS_PATH=" + published},
		},
	}
	for _, spec := range specs {
		if err := s.group.Start(spec); err != nil {
			return fmt.Errorf("gatewaytest: %w", err)
		}
	}
	if err := s.ready(local(ports[0]).String() + "/_ministack/health"); err != nil {
		return err
	}
	return s.ready(local(ports[1]).String() + "/moto-api/data.json")
}

// RestartMiniStack restarts MiniStack with its state.
func (s *Sandbox) RestartMiniStack() error {
	if err := ask.JSON(context.Background(), http.MethodPost, s.MiniStack.JoinPath("/_sandbox/keep").String(), nil, nil); err != nil {
		return fmt.Errorf("gatewaytest: keep: %w", err)
	}
	if err := s.group.Restart("ministack"); err != nil {
		return fmt.Errorf("gatewaytest: %w", err)
	}
	return s.ready(s.MiniStack.JoinPath("/_ministack/health").String())
}

// ready waits until the address answers.
func (s *Sandbox) ready(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		if ask.JSON(ctx, http.MethodGet, address, nil, nil) == nil {
			return nil
		}
		select {
		case err := <-s.group.Died():
			return fmt.Errorf("gatewaytest: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("gatewaytest: %s does not answer (logs in %s)", address, s.logs)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop ends everything that Start started.
func (s *Sandbox) Stop() {
	s.server.Close()
	s.group.Stop()
	s.giveBack()
	_ = os.RemoveAll(s.logs) // it is in the system's folder for temporary files
}

// Config returns a configuration with the credentials of the account's root user, or with the given ones.
func (s *Sandbox) Config(keys ...string) aws.Config {
	s.known.Do(s.tellGo)
	if len(keys) == 0 {
		keys = []string{"test", "test", ""}
	}
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &s.URL,
		Credentials: credentials.NewStaticCredentialsProvider(keys[0], keys[1], keys[2]),
		Retryer:     func() aws.Retryer { return aws.NopRetryer{} },
	}
}

// tellGo has Go's cache of test results know the files that Python has read, and what says which packages it has. Go notes only
// what a test itself reads, and only while tests run: what a TestMain reads before them, which may call Start, is not noted.
func (s *Sandbox) tellGo() {
	for _, folder := range []string{"ministack", "python"} {
		if _, err := os.ReadDir(filepath.Join(s.root, "sandbox", folder)); err != nil {
			panic(err) // Start has found the folders' files
		}
	}
}

func local(port int) *url.URL {
	return &url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", fmt.Sprint(port))}
}

// checkout returns the root folder of the checkout around the working directory.
func checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("gatewaytest: working directory: %w", err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "sandbox/ministack/wrapper.py")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("gatewaytest: no checkout around the working directory")
}
