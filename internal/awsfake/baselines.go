package awsfake

import "context"

// Baselines keeps a rack's baselines in memory, as the rack's records do.
type Baselines struct {
	*Calls
	Kept map[string]string
}

// NewBaselines are none; its calls count among the cloud's.
func NewBaselines(cloud *Cloud) *Baselines {
	return &Baselines{Calls: cloud.Calls, Kept: map[string]string{}}
}

// Keep counts the first time only.
func (b *Baselines) Keep(_ context.Context, _, name string, value []byte) error {
	if err := b.call("Baselines.Keep", name); err != nil {
		return err
	}
	if _, ok := b.Kept[name]; !ok {
		b.Kept[name] = string(value)
	}
	return nil
}

// Get is what Keep recorded.
func (b *Baselines) Get(_ context.Context, _, name string) ([]byte, bool, error) {
	if err := b.call("Baselines.Get", name); err != nil {
		return nil, false, err
	}
	value, ok := b.Kept[name]
	return []byte(value), ok, nil
}

// Forget removes one.
func (b *Baselines) Forget(_ context.Context, _, name string) error {
	if err := b.call("Baselines.Forget", name); err != nil {
		return err
	}
	delete(b.Kept, name)
	return nil
}
