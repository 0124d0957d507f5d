package awsfake

import "context"

// Baselines stores a rack's baselines in memory, like the rack's records.
type Baselines struct {
	*Calls
	Kept map[string]string
}

// NewBaselines returns an empty store. Its calls count among the cloud's.
func NewBaselines(cloud *Cloud) *Baselines {
	return &Baselines{Calls: cloud.Calls, Kept: map[string]string{}}
}

// Keep records a baseline, if none of that name exists.
func (b *Baselines) Keep(_ context.Context, _, name string, value []byte) error {
	if err := b.call("Baselines.Keep", name); err != nil {
		return err
	}
	if _, ok := b.Kept[name]; !ok {
		b.Kept[name] = string(value)
	}
	return nil
}

// Replace records a baseline in the place of another.
func (b *Baselines) Replace(_ context.Context, _, name string, value []byte) error {
	if err := b.call("Baselines.Replace", name); err != nil {
		return err
	}
	b.Kept[name] = string(value)
	return nil
}

// Get returns what Keep or Replace recorded.
func (b *Baselines) Get(_ context.Context, _, name string) ([]byte, bool, error) {
	if err := b.call("Baselines.Get", name); err != nil {
		return nil, false, err
	}
	value, ok := b.Kept[name]
	return []byte(value), ok, nil
}

// Forget removes a baseline.
func (b *Baselines) Forget(_ context.Context, _, name string) error {
	if err := b.call("Baselines.Forget", name); err != nil {
		return err
	}
	delete(b.Kept, name)
	return nil
}
