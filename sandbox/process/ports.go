package process

import (
	"fmt"
	"net"
)

// FreePorts returns n ports of the loopback address that nothing listens on. They are held together while they are
// chosen, so that they differ; a child should take its port soon.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("ports: find a free one: %w", err)
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
