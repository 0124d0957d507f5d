package main

import (
	"context"
	"flag"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

// runEtcd serves one etcd member until it is told to stop.
func runEtcd() int {
	flags := flag.NewFlagSet("etcd", flag.ExitOnError)
	dir := flags.String("data-dir", "", "folder of the data")
	client := flags.String("listen-client-url", "", "URL that clients use")
	peer := flags.String("listen-peer-url", "", "URL of the member itself")
	_ = flags.Parse(os.Args[1:])

	config := embed.NewConfig()
	config.Dir = *dir
	config.LogLevel = "warn"
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration // with 0, each request is logged
	config.UnsafeNoFsync = true                                                   // the sandbox's data need not survive a crash of the machine
	for _, u := range []struct {
		text   string
		listen *[]url.URL
		public *[]url.URL
	}{
		{*client, &config.ListenClientUrls, &config.AdvertiseClientUrls},
		{*peer, &config.ListenPeerUrls, &config.AdvertisePeerUrls},
	} {
		parsed, err := url.Parse(u.text)
		if err != nil {
			return fail("etcd", err)
		}
		*u.listen, *u.public = []url.URL{*parsed}, []url.URL{*parsed}
	}
	config.InitialCluster = config.InitialClusterFromName(config.Name)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	server, err := embed.StartEtcd(config)
	if err != nil {
		return fail("etcd", err)
	}
	defer server.Close()
	select {
	case <-ctx.Done():
		return 0
	case err := <-server.Err():
		return fail("etcd", err)
	}
}
