package stage

import "golang.org/x/sync/errgroup"

// Write writes parameters of the rack demo, all concurrently.
func (s *Stage) Write(values map[string]string) {
	s.t.Helper()
	writes, ctx := errgroup.WithContext(s.t.Context())
	for name, value := range values {
		writes.Go(func() error { return s.Environment.Put(ctx, "demo", name, value) })
	}
	if err := writes.Wait(); err != nil {
		s.t.Fatal(err)
	}
}
