package process

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports of children are below Linux's own range (net.ipv4.ip_local_port_range). From that range, any other
// connection could take a port between its selection and the child's start.
const (
	lowest  = 20000
	highest = 32767
)

// FreePorts returns n ports of the loopback address on which nothing listens. They are reserved until giveBack is
// called: no other call of FreePorts returns them, in this process or another one. The caller must keep giveBack,
// because the reservation ends when giveBack is garbage-collected. It also ends with the process.
func FreePorts(n int) (ports []int, giveBack func(), err error) {
	var claims []io.Closer
	giveBack = func() {
		for _, claim := range claims {
			_ = claim.Close()
		}
	}
	const all = highest - lowest + 1
	first := rand.IntN(all)
	for i := 0; i < all && len(ports) < n; i++ {
		port := lowest + (first+i)%all
		claim, err := net.Listen("unix", "@sawhorse-sandbox-port-"+strconv.Itoa(port))
		if err != nil {
			continue // another process has reserved it
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			_ = claim.Close()
			continue
		}
		_ = listener.Close()
		claims, ports = append(claims, claim), append(ports, port)
	}
	if len(ports) < n {
		giveBack()
		return nil, nil, fmt.Errorf("ports: %d of the %d needed are free from %d to %d", len(ports), n, lowest, highest)
	}
	return ports, giveBack, nil
}
