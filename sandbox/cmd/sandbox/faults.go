package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/sawhorse-io/sawhorse/sandbox/apifront"
	"github.com/sawhorse-io/sawhorse/sandbox/ask"
	"github.com/sawhorse-io/sawhorse/sandbox/caller"
	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/standin"
)

// functionPrefix is the prefix of the names of the stack's functions.
const functionPrefix = "Sawhorse-"

// prepareFaults prepares fault injection into the calls of the functions.
func (s *sandbox) prepareFaults() {
	s.functions = &caller.Functions{MiniStack: local(s.ministack), Prefix: functionPrefix}
	s.faults = &fault.Injector{Hooks: map[fault.Kind]func(context.Context) error{
		"stop":              s.stopExecutions,
		"restart-apiserver": s.restartAPIServer,
		"restart-ministack": s.restartMiniStack,
	}}
}

// restartLimit bounds a restart. The restart continues if the caller gives up earlier.
const restartLimit = time.Minute

func (s *sandbox) restartAPIServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartLimit)
	defer cancel()
	return s.cluster.RestartAPIServer(ctx)
}

// restartMiniStack restarts MiniStack with its state. Running functions and executions end.
func (s *sandbox) restartMiniStack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartLimit)
	defer cancel()
	if err := ask.JSON(ctx, http.MethodPost, local(s.ministack).JoinPath("/_sandbox/keep").String(), nil, nil); err != nil {
		return fmt.Errorf("ministack: have it keep its state: %w", err)
	}
	if err := s.processes.Restart("ministack"); err != nil {
		return err
	}
	return answers(ctx, "ministack", s.ministack, "/_ministack/health")
}

// apiFront returns the proxy in front of the API server, and in front of the stand-ins of other clusters' API servers.
func (s *sandbox) apiFront() (http.Handler, error) {
	apiserver, err := url.Parse(s.cluster.Endpoint())
	if err != nil {
		return nil, fmt.Errorf("API front: %w", err)
	}
	front, err := apifront.New(apifront.Config{
		APIServer: apiserver, CA: s.cluster.CA(), Away: s.cluster.Restarting, Function: s.functions.Of, Faults: s.faults,
	})
	if err != nil {
		return nil, err
	}
	standIns := s.standIns()
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasPrefix(req.URL.Path, standin.Prefix) {
			standIns.ServeHTTP(w, req)
			return
		}
		front.ServeHTTP(w, req)
	}), nil
}

// secure makes a listener use TLS with the API server's certificate, and HTTP/1.1 only.
func (s *sandbox) secure(listener net.Listener) (net.Listener, error) {
	certificate, err := s.cluster.Certificate()
	if err != nil {
		return nil, fmt.Errorf("API front: certificate: %w", err)
	}
	return tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}}), nil
}

// stopExecutions stops the running executions, as an operator would. An execution may have ended since it was listed: a
// write to a parameter starts one, which ends as soon as it finds that another has the lease.
func (s *sandbox) stopExecutions(ctx context.Context) error {
	states := sfn.NewFromConfig(s.awsConfig(local(s.ministack)))
	machines, err := states.ListStateMachines(ctx, &sfn.ListStateMachinesInput{})
	if err != nil {
		return fmt.Errorf("state machines: list: %w", err)
	}
	stopped, failures := 0, []error{errors.New("no execution was stopped")}
	for _, machine := range machines.StateMachines {
		running, err := states.ListExecutions(ctx, &sfn.ListExecutionsInput{
			StateMachineArn: machine.StateMachineArn, StatusFilter: types.ExecutionStatusRunning,
		})
		if err != nil {
			return fmt.Errorf("executions: list: %w", err)
		}
		for _, execution := range running.Executions {
			if _, err := states.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: execution.ExecutionArn}); err != nil {
				failures = append(failures, fmt.Errorf("execution %s: stop: %w", *execution.Name, err))
				continue
			}
			stopped++
		}
	}
	if stopped == 0 {
		return errors.Join(failures...)
	}
	return nil
}
